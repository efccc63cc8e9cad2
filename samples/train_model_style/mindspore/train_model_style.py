"""A classifier with validation accuracy, the best weights, early stopping and a schedule."""

import numpy as np
import mindspore as ms
from mindspore import dataset, nn, ops
from mindspore.experimental import optim
from torch_helpers import CrossEntropyLoss, DataLoader, TensorDataset, last_lr, load_state_dict, state_dict


class Net(nn.Cell):
    def __init__(self, classes=3):
        super().__init__()
        self.body = nn.SequentialCell(nn.Dense(2, 16), nn.BatchNorm1d(16), nn.ReLU())
        self.head = nn.Dense(16, classes)

    def construct(self, x):
        return self.head(self.body(x))


def points(count, seed):
    """Three clouds of points that overlap."""
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 3, count)
    features = rng.randn(count, 2) + 1.5 * labels[:, None]
    return TensorDataset(ms.Tensor.from_numpy(features.astype(np.float32)), ms.Tensor.from_numpy(labels))


def build():
    return Net().set_train()


class LossAndAccuracy(ms.train.Metric):
    def __init__(self):
        super().__init__()
        self.clear()

    def clear(self):
        # over all held-out points
        self.val_loss, self.correct, self.seen = 0.0, 0, 0

    def update(self, *inputs):
        batch_loss, out, y = inputs
        self.val_loss += batch_loss.item() * y.shape[0]
        self.correct += (ops.argmax(out, dim=1) == y).sum().item()
        self.seen += y.shape[0]

    def eval(self):
        mean_loss, accuracy = self.val_loss / self.seen, self.correct / self.seen
        return mean_loss, accuracy


def run(model, epochs=20, patience=3):
    train_loader = DataLoader(points(72, seed=0), batch_size=12)
    valid_loader = DataLoader(points(40, seed=1), batch_size=10)
    criterion = CrossEntropyLoss()
    optimizer = optim.SGD(model.trainable_params(), lr=0.2, momentum=0.9)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.5)
    best, waited, history, weights = 0.0, 0, [], {}
    train_net = nn.TrainOneStepCell(nn.WithLossCell(model, criterion), optimizer)
    eval_net = nn.WithEvalCell(model, criterion)
    eval_data = dataset.GeneratorDataset(valid_loader, ["x", "y"], shuffle=False)
    evaluation = ms.train.Model(model, eval_network=eval_net, metrics={"loss_and_accuracy": LossAndAccuracy()})
    accuracy = epoch = None

    class TrainingLog(ms.train.Callback):
        def on_train_epoch_begin(self, run_context):
            nonlocal epoch
            epoch = run_context.original_args().cur_epoch_num - 1
            model.set_train(True)

        def on_train_step_end(self, run_context):
            loss = run_context.original_args().net_outputs
            history.append(loss.item())

    class Evaluation(ms.train.Callback):
        def on_train_epoch_end(self, run_context):
            nonlocal accuracy, history
            eval_net.set_train(False)
            mean_loss, accuracy = evaluation.eval(eval_data, dataset_sink_mode=False)["loss_and_accuracy"]
            history += [mean_loss, accuracy]
            print(f"epoch {epoch}: accuracy {accuracy:.3f}, lr {last_lr(scheduler)[0]:.4f}")

    class LearningRate(ms.train.Callback):
        def on_train_epoch_end(self, run_context):
            scheduler.step()

    class BestCheckpoint(ms.train.Callback):
        def on_train_epoch_end(self, run_context):
            nonlocal best, waited, weights
            if accuracy > best:
                best, waited = accuracy, 0
                weights = {name: ops.deepcopy(value) for name, value in state_dict(model).items()}
            else:
                waited += 1

    class EarlyStopping(ms.train.Callback):
        def on_train_epoch_end(self, run_context):
            if waited >= patience:
                print("no better for", patience, "epochs")
                run_context.request_stop()
                return

    train_data = dataset.GeneratorDataset(train_loader, ["x", "y"], shuffle=False)
    training = ms.train.Model(train_net)
    callbacks = [TrainingLog(), Evaluation(), LearningRate(), BestCheckpoint(), EarlyStopping()]
    training.train(epochs, train_data, callbacks=callbacks, dataset_sink_mode=False)
    load_state_dict(model, weights)
    return {"history": history, "best": best, "epochs": epoch + 1}


if __name__ == "__main__":
    ms.set_seed(0)
    run(build())
