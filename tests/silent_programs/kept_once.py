# Lists whose tensors nobody else holds: nothing is flagged.
import torch


#: call rounds(A(3, 4))
def rounds(x: torch.Tensor):
    ys = [x * i for i in range(3)]
    for i in range(3):
        ys[i] += 1
    return ys[1] + ys[0] * ys[2]


#: call parts(A(3, 4))
def parts(x: torch.Tensor):
    ys = [x * 2] + [x * 3]
    zs = ys[1:]
    zs[0] = zs[0] + 1
    return ys[1] + zs[0]


#: call grown(A(3, 4))
def grown(x: torch.Tensor):
    ys = []
    for i in range(3):
        ys.append(x * i)
        ys[-1] += 1
    return sum(ys[1:], ys[0])
