"""Training with an evaluation after every epoch: loss, accuracy and a confusion matrix."""

import numpy as np
import mindspore as ms
from mindspore import nn, ops
from torch_helpers import Adam, CrossEntropyLoss, DataLoader, Dataset


class Points(Dataset):
    """Points in two features; a third input says how sure the measurement is."""

    def __init__(self, count, seed):
        rng = np.random.RandomState(seed)
        self.labels = rng.randint(0, 3, count).astype(np.int64)
        self.points = (rng.randn(count, 2) + 2.0 * self.labels[:, None]).astype(np.float32)
        self.weights = rng.rand(count).astype(np.float32) + 0.5

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.points[index], self.weights[index], self.labels[index]


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.body = nn.SequentialCell(nn.Dense(2, 16, has_bias=False), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(p=0.0))
        self.head = nn.Dense(16, 3)

    def construct(self, x):
        return self.head(self.body(x))


class NetWithLoss(nn.Cell):
    def __init__(self, model, criterion):
        super().__init__(auto_prefix=False)
        self.model = model
        self.criterion = criterion

    def construct(self, points, labels, weights):
        logits = self.model(points)
        loss = (self.criterion(logits, labels) * weights).mean()
        return loss


def train_epoch(model, loader, criterion, optimizer):
    model.set_train(True)
    losses = []
    train_net = nn.TrainOneStepCell(NetWithLoss(model, criterion), optimizer)
    for points, weights, labels in loader:
        loss = train_net(points, labels, weights)
        losses.append(loss.item())
    return losses


def evaluate(model, loader, criterion):
    eval_net = nn.WithEvalCell(model, criterion)
    eval_net.set_train(False)
    total, correct, seen = 0.0, 0, 0
    confusion = np.zeros((3, 3), dtype=np.int64)
    for points, weights, labels in loader:
        batch_loss, logits, _ = eval_net(points, labels)
        loss = (batch_loss * weights).sum()
        total += loss.item()
        predicted = ops.argmax(logits, dim=1)
        correct += (predicted == labels).sum().item()
        seen += labels.shape[0]
        for p, t in zip(predicted.tolist(), labels.tolist()):
            confusion[t, p] += 1
    return total / seen, correct / seen, confusion


def build():
    return Net().set_train()


def run(model, epochs=4):
    train_loader = DataLoader(Points(72, seed=0), batch_size=12)
    valid_loader = DataLoader(Points(30, seed=1), batch_size=7)
    criterion = CrossEntropyLoss(reduction="none")
    optimizer = Adam(model.trainable_params(), lr=0.02)
    history = []
    for epoch in range(epochs):
        history += train_epoch(model, train_loader, criterion, optimizer)
        loss, accuracy, confusion = evaluate(model, valid_loader, criterion)
        print(f"epoch {epoch}: loss {loss:.4f}, accuracy {accuracy:.3f}")
        history += [loss, accuracy, *confusion.flatten().tolist()]
    return history


if __name__ == "__main__":
    ms.set_seed(0)
    run(build())
