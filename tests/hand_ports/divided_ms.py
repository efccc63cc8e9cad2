"""In: nothing. Out: the models of divided_torch.py in MindSpore; arguments make mistakes."""

import mindspore as ms
from mindspore import Parameter, nn, ops
from mindspore.common.initializer import Uniform, initializer


class TwoPaths(nn.Cell):
    def __init__(self, crossed=False):
        super().__init__()
        self.conv1 = nn.Conv2d(4, 8, 3, has_bias=True)
        self.conv2_a = nn.Conv2d(4, 3, 3, has_bias=True)
        self.conv2_b = nn.Conv2d(4, 3, 3, has_bias=True)
        self.fc = nn.Dense(6, 3)
        self.crossed = crossed

    def construct(self, x):
        x = ops.relu(self.conv1(x))
        a, b = ops.split(x, 4, axis=1)
        if self.crossed:
            a, b = b, a
        x = ops.relu(ops.cat((self.conv2_a(a), self.conv2_b(b)), 1))
        return self.fc(ops.amax(x, (2, 3)))


class OneHead(nn.Cell):
    def __init__(self, squashed=True):
        super().__init__()
        self.body = nn.Dense(10, 16, activation="relu")
        self.head = nn.Dense(16, 9)
        self.squashed = squashed

    def construct(self, x):
        out = self.head(self.body(x))
        boxes = out[:, 5:]
        return out[:, :5], ops.sigmoid(boxes) if self.squashed else boxes


class TwoLstms(nn.Cell):
    def __init__(self, back=True):
        super().__init__()
        self.forward_lstm = nn.LSTM(6, 7, batch_first=True)
        self.backward_lstm = nn.LSTM(6, 7, batch_first=True)
        self.fc = nn.Dense(14, 2)
        self.back = back

    def construct(self, x):
        one, _ = self.forward_lstm(x)
        two, _ = self.backward_lstm(ops.flip(x, (1,)))
        two = ops.flip(two, (1,)) if self.back else two
        return self.fc(ops.cat((one, two), -1))


class GruLayers(nn.Cell):
    def __init__(self, state="all"):
        super().__init__()
        self.first = nn.GRU(6, 7, batch_first=True)
        self.second = nn.GRU(7, 7, batch_first=True)
        self.state = state

    def construct(self, x):
        x, one = self.first(x)
        x, two = self.second(x)
        return x, ops.cat((one, two) if self.state == "all" else (two, one), 0)


class Stacked(nn.Cell):
    def __init__(self, axis=-1):
        super().__init__()
        self.weight = Parameter(initializer(Uniform(0.4), (3, 5, 6)), name="weight")
        self.bias = Parameter(initializer("zeros", (3, 5)), name="bias")
        self.gate = nn.Dense(6, 3)
        self.axis = axis

    def construct(self, x):
        outs = ops.matmul(self.weight, x.T).transpose(2, 0, 1) + self.bias
        gate = ops.softmax(self.gate(x), self.axis).astype(ms.float32)
        return (gate.expand_dims(-1) * outs).sum(1)
