# What a function puts into a list, a dict or an object of its caller, in and out of no_grad.
import torch
from torch import nn

def push(box, v):
    box.append(v)

def put(d, k, *, v=None):
    d[k] = v

def many(box, *vs):
    box.extend(vs)

class Keep:
    def __init__(self, v=None):
        self.h = v
    def keep(self, v):
        self.h = v
    def keep2(self, v):
        setattr(self, "h", v)

#: call pushed(A(3, 4))
def pushed(x):
    y = x * 2
    box = []
    with torch.no_grad():
        push(box, y * 3)
    return box[0] + y

#: call pushed2(A(3, 4))
def pushed2(x):
    y = x * 2
    box = []
    with torch.no_grad():
        push(box, y)
    return box[0] + y

#: call pushed3(A(3, 4))
def pushed3(x):
    y = x * 2
    box = []
    with torch.no_grad():
        z = y * 3
        many(box, z, y)
    return box[0] + box[1]

#: call dicted(A(3, 4))
def dicted(x):
    y = x * 2
    box = {}
    with torch.no_grad():
        put(box, "a", v=y * 3)
    return box["a"] + y

#: call kept(A(3, 4))
def kept(x):
    y = x * 2
    k = Keep()
    with torch.no_grad():
        k.keep(y * 3)
    return k.h + y

#: call kept2(A(3, 4))
def kept2(x):
    y = x * 2
    k = Keep()
    with torch.no_grad():
        k.keep2(y * 3)
    return k.h + y

#: call kept3(A(3, 4))
def kept3(x):
    y = x * 2
    with torch.no_grad():
        k = Keep(y * 3)
    return k.h + y

#: call lam(A(3, 4))
def lam(x):
    y = x * 2
    box = []
    add = lambda v: box.append(v)
    with torch.no_grad():
        add(y * 3)
    return box[0] + y

#: call nested(A(3, 4))
def nested(x):
    y = x * 2
    box = []
    def add(v):
        box.append(v)
    with torch.no_grad():
        add(y * 3)
    return box[0] + y

#: call nested2(A(3, 4))
def nested2(x):
    y = x * 2
    box = []
    def add(v):
        box.append(v)
    add(y)
    y.mul_(3)
    return box[0] + 1

#: call nested3(A(3, 4))
def nested3(x):
    y = x * 2
    box = []
    def add(v):
        box.append(v)
    add(y.view(-1))
    y.mul_(3)
    return box[0] + 1

BOX = []
def glob(v):
    BOX.append(v)

#: call global1(A(3, 4))
def global1(x):
    y = x * 2
    BOX.clear()
    glob(y.view(-1))
    y.mul_(3)
    return BOX[0] + 1

#: call global2(A(3, 4))
def global2(x):
    y = x * 2
    BOX.clear()
    with torch.no_grad():
        glob(y * 3)
    return BOX[0] + y
