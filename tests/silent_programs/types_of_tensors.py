# Classes of tensors by dtype: a loss that asks whether its target holds classes or weights.
#: model Loss() <- A(4,5), I(4)
#: model Loss() <- A(4,5), A(4,5)
import torch
import torch.nn as nn
import torch.nn.functional as F


def _is_long(x):
    if hasattr(x, "data"):
        x = x.data
    return isinstance(x, torch.LongTensor) or isinstance(x, torch.cuda.LongTensor)


class Loss(nn.Module):
    def forward(self, x, target):
        lsm = F.log_softmax(x, dim=-1)
        if not _is_long(target):
            return -(target * lsm).sum(-1)
        wide = isinstance(target, (torch.DoubleTensor, torch.IntTensor))
        return lsm.sum(-1) * target if not wide else lsm
