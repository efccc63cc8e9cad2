"""Their ports: branches are built, named and called in other orders; arguments make mistakes."""

from mindspore import nn, ops


class TwinPort(nn.Cell):
    def __init__(self, factor=2, act=None):
        super().__init__()
        self.classifier = nn.Dense(8, 3)
        self.s_in, self.s_out = nn.Dense(8, 8), nn.Dense(8, 8)
        self.p_in, self.p_out = nn.Dense(8, 8), nn.Dense(8, 8)
        self.tanh, self.relu = nn.Tanh(), act or nn.ReLU()
        self.factor = factor

    def construct(self, x):
        subtracted = self.s_out(self.tanh(self.s_in(x)))
        added = self.p_out(self.relu(self.p_in(x)))
        return self.classifier(added - self.factor * subtracted)


class TwinLists(nn.Cell):
    def __init__(self, same=False, head_first=True):
        super().__init__()
        self.paths = nn.CellList(
            [
                nn.SequentialCell(nn.Dense(8, 8), nn.Tanh(), nn.Dense(8, 8)),
                nn.SequentialCell(nn.Dense(8, 8), nn.ReLU(), nn.Dense(8, 8)),
            ]
        )
        self.head = nn.Dense(8, 3)
        self.same = same

    def construct(self, x):
        two = self.paths[0](x)
        one = two if self.same else self.paths[1](x)
        return self.head(one - 2 * two)


def conv(bias=True):
    return nn.Conv2d(8, 8, 3, pad_mode="pad", padding=1, has_bias=bias)


class InceptionPort(nn.Cell):
    """The branches stand in another order in the list, and are put back before they meet."""

    def __init__(self, order=(2, 0, 1), act=True):
        super().__init__()
        self.branches = nn.CellList(
            [
                nn.SequentialCell(conv()),
                nn.SequentialCell(conv(), nn.BatchNorm2d(8)),
                nn.SequentialCell(conv(), nn.ReLU() if act else nn.Tanh(), conv()),
            ]
        )
        self.stem = nn.Conv2d(3, 8, 3, pad_mode="pad", padding=1, has_bias=True)
        self.fc = nn.Dense(24, 5)
        self.order = order

    def construct(self, x):
        x = ops.relu(self.stem(x))
        found = [branch(x) for branch in self.branches]
        joined = ops.cat([found[number] for number in self.order], 1)
        return self.fc(ops.mean(joined, (2, 3)))


class GatePort(nn.Cell):
    def __init__(self, product=True, act="tanh"):
        super().__init__()
        self.linears = nn.CellList([nn.Dense(6, 6) for _ in range(3)])
        self.outs = nn.CellList([nn.Dense(6, 6) for _ in range(3)])
        self.product = product
        self.act = act

    def construct(self, x):
        first = self.outs[2](ops.relu(self.linears[0](x)))
        hidden = self.linears[1](x)
        hidden = ops.tanh(hidden) if self.act == "tanh" else ops.silu(hidden)
        second = self.outs[0](hidden)
        third = self.outs[1](ops.sigmoid(self.linears[2](x)))
        return second * third + first if self.product else second + third + first


class BlocksPort(nn.Cell):
    def __init__(self, reverse=False, swapped=False):
        super().__init__()
        self.scale, self.mean = nn.Dense(6, 4), nn.Dense(6, 4)
        self.blocks = nn.CellList([nn.Dense(6, 6) for _ in range(3)])
        self.reverse, self.swapped = reverse, swapped

    def construct(self, x):
        for number in (2, 1, 0) if self.reverse else (0, 1, 2):
            x = ops.tanh(self.blocks[number](x))
        scale, mean = self.scale(x), self.mean(x)
        return ops.cat((scale, mean) if self.swapped else (mean, scale), -1)
