"""Wide & Deep: the linear part and the network each with a loss and an optimizer of its own."""

import numpy as np
import mindspore as ms
from mindspore import nn, ops
from mindspore.common import initializer
from mindspore.experimental import optim
from torch_helpers import Adam, BCEWithLogitsLoss, JointTrainStep, register_buffer


class WideDeep(nn.Cell):
    def __init__(self, fields=4, buckets=20, dim=8):
        super().__init__()
        self.wide = nn.Embedding(fields * buckets, 1, embedding_table=initializer.Normal(1.0))
        self.embedding = nn.Embedding(fields * buckets, dim, embedding_table=initializer.Normal(1.0))
        self.deep = nn.SequentialCell(
            nn.Dense(fields * dim, 16), nn.ReLU(), nn.Dense(16, 8), nn.ReLU(), nn.Dense(8, 1)
        )
        register_buffer(self, "offsets", ops.arange(fields) * buckets)

    def construct(self, ids):
        ids = ids + self.offsets
        wide = self.wide(ids).sum(axis=1)
        deep = self.deep(self.embedding(ids).flatten(start_dim=1))
        return wide, deep


def clicks(steps, seed):
    rng = np.random.RandomState(seed)
    for _ in range(steps):
        ids = rng.randint(0, 20, (16, 4)).astype(np.int64)
        labels = ((ids[:, 0] + ids[:, 1]) % 5 < 2).astype(np.float32)[:, None]
        yield ms.Tensor.from_numpy(ids), ms.Tensor.from_numpy(labels)


def build():
    return WideDeep()


class NetWithLoss(nn.Cell):
    def __init__(self, model, criterion):
        super().__init__(auto_prefix=False)
        self.model = model
        self.criterion = criterion

    def construct(self, ids, labels):
        wide, deep = self.model(ids)
        wide_loss = self.criterion(wide + ops.stop_gradient(deep), labels)
        deep_loss = self.criterion(deep, labels) + 1e-3 * self.model.embedding.embedding_table.pow(2).sum()
        return wide_loss + deep_loss, wide_loss, deep_loss


def run(model, steps=24):
    criterion = BCEWithLogitsLoss()
    wide_optimizer = optim.SGD(model.wide.trainable_params(), lr=0.5)
    deep_optimizer = Adam(
        list(model.embedding.trainable_params()) + list(model.deep.trainable_params()), lr=0.01
    )
    losses = []
    train_net = JointTrainStep(NetWithLoss(model, criterion), [wide_optimizer, deep_optimizer], has_aux=True)
    train_net.set_train()
    for ids, labels in clicks(steps, seed=3):
        # the wide part is trained against the sum, the deep part by itself with a penalty
        _, wide_loss, deep_loss = train_net(ids, labels)
        losses += [wide_loss.item(), deep_loss.item()]
    return losses


if __name__ == "__main__":
    ms.set_seed(0)
    print(run(build())[-2:])
