# What graph mode passes over without a word: right, or stopped, in both modes.
#: script
import torch
import torch.nn as nn

SCALE = 1.0
FLAG = False
CFG = {'k': 2}
NAMES = ['a']


def set_scale(v):
    global SCALE
    SCALE = v


class Conf:
    def __init__(self):
        self.gain = 2.0


def counter():
    n = 1

    def get():
        return n

    def put(v):
        nonlocal n
        n = v
    return get, put


get, put = counter()


class Kid(nn.Module):
    def __init__(self):
        super().__init__()
        self.tau = 1.0

    def forward(self, x):
        return x * self.tau


class Net(nn.Module):
    step = 1

    def __init__(self, conf):
        super().__init__()
        self.conf = conf
        self.kid = Kid()
        self.act = nn.ReLU()
        self.blocks = nn.ModuleList([nn.Tanh()])
        self.aux = False
        self.names = ['q']

    def set_aux(self, on):
        self.aux = on

    def forward(self, x):
        x = self.act(self.kid(x) * SCALE) * self.conf.gain + len(NAMES) * CFG['k'] + get()
        for b in self.blocks:
            x = b(x * 0.1)
        if self.aux:
            x = x + 5
        if FLAG:
            x = x + 50
        return x * self.step + len(self.names)


conf = Conf()
n, x = Net(conf), torch.ones(1, 2)


def show():
    print([round(v, 4) for v in n(x)[0].tolist()])


show()
set_scale(3.0)
show()
FLAG = True
show()
CFG['k'] = 5
show()
NAMES.append('b')
show()
conf.gain = 4.0
show()
n.kid.tau = 0.5
show()
n.set_aux(True)
show()
n.act = nn.Tanh()
show()
n.blocks.append(nn.Sigmoid())
show()
Net.step = 3
show()
n.names.append('z')
show()
put(9)
show()
setattr(n, 'aux', False)
show()
for t in range(3):
    n.kid.tau = 0.1 * t
    show()
