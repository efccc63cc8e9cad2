# One name, two kinds: a list on the path through break, a Tensor on the other.
#: call pick(A(2, 3), True)
#: call pick(A(2, 3), False)
import torch


def pick(x: torch.Tensor, early: bool):
    v = x
    for step in range(3):
        if early and step == 1:
            v = [x, x * 2]
            break
    return v.count(3) if isinstance(v, list) else v.view(-1)
