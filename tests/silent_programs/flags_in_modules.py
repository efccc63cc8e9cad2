# A flagged statement of a construct, of a method that it calls, in a loop, behind a condition.
#: model Top() <- A(2,4)
#: model InMethod() <- A(2,4)
#: model InLoop() <- A(2,4)
#: model InBranch() <- A(2,4)
#: model OnOneLine() <- A(2,4)
#: model InExpression() <- A(2,4)
import torch
import torch.nn as nn


class Top(nn.Module):
    def forward(self, x):
        y = x.clone()
        y.diagonal().mul_(2)
        return y


class InMethod(nn.Module):
    def change(self, x):
        x.diagonal().add_(1)
        return x

    def forward(self, x):
        y = self.change(x.clone())
        return y * 2


class InLoop(nn.Module):
    def forward(self, x):
        y = x.clone()
        for i in range(2):
            y.diagonal().mul_(i + 2)
        return y


class InBranch(nn.Module):
    def forward(self, x):
        y = x.clone()
        if x.sum() > -1000:
            y.diagonal().mul_(2)
            y = y + 1
        return y


class OnOneLine(nn.Module):
    def forward(self, x):
        y = x.clone(); y.diagonal().mul_(2); return y


class InExpression(nn.Module):
    def forward(self, x):
        y = x.clone()
        z = y.diagonal().mul_(2) if self.training or True else x
        return y + z.sum()
