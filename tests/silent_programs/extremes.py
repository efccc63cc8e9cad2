# Halves, zeros with a sign, infinite norms, arguments in a dict.
#: call windows(A(2,3,8))
#: call nearest(A(1,1,3,3))
#: call signs(A(3,4))
#: call several_names(P(2,4))
import torch
import torch.nn.functional as F


def windows(x):
    return [F.lp_pool1d(x, p, 3, 2) for p in (float("inf"), -float("inf"), 2.0)]


def nearest(x):
    ends = torch.tensor([-1.0, 0.0, 1.0])
    grid = torch.stack(torch.meshgrid(ends, ends, indexing="xy"), -1)[None]
    return F.grid_sample(x, grid, mode="nearest", align_corners=False)


def signs(x):
    zero = x * 0 * -1
    return torch.signbit(zero - 0.0), torch.copysign(x, zero), torch.copysign(x, -0.0)


def several_names(x):
    options = {"return_inverse": True, "return_counts": True}
    return x.round().unique(**options)
