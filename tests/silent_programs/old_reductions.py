# The old arguments of losses: size_average=False is a sum, reduce=False no reduction at all.
#: call squares(A(3,4), A(3,4))
#: call rows(A(3,4), A(3,4))
#: call chosen(A(3,4), A(3,4))
import torch.nn.functional as F


def squares(x, y):
    return F.mse_loss(x, y, size_average=False) + F.l1_loss(x, y, size_average=False)


def rows(x, y):
    return F.smooth_l1_loss(x, y, reduce=False), F.kl_div(x, y.exp(), size_average=True)


def chosen(x, y):
    loss = F.l1_loss if x.dim() == 2 else F.mse_loss
    return loss(x, y, size_average=False)
