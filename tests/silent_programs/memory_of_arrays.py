# An array and the tensor made of it are one memory, whichever is written.
#: script
import numpy as np
import torch


def written_array():
    a = np.arange(3, dtype=np.float32)
    shared, copied = torch.as_tensor(a), torch.tensor(a)
    wide = torch.as_tensor(a, dtype=torch.float64)
    a[0] = 10.0
    a += 1
    return shared, copied, wide, torch.as_tensor(a) * 2


class Store:
    def __init__(self, n):
        self.host = np.zeros((n, 2), dtype=np.float32)
        self.memory = torch.from_numpy(self.host)

    def put(self, i, v):
        self.host[i] = v


def kept(n):
    store = Store(n)
    store.put(0, 3.0)
    store.put(1, 4.0)
    return store.memory.sum(), store.memory * 2


for one in (*written_array(), *kept(2)):
    print(one.tolist())
