# The data of a Parameter or buffer is read or written in forward.
#: model Codebook() <- A(6,4)
#: model Masked() <- A(3,4)
#: model Power() <- A(3,4)
#: model Standard() <- A(3,4)
#: model Clipped() <- A(3,4)
#: model Named() <- A(3,4)
#: model Items() <- A(3,4)
#: model Child() <- A(3,4)
#: model Method() <- A(3,4)
#: model Outside() <- A(3,4)
#: model Started() <- A(3,4)
#: model Scaled() <- A(3,4)
#: model Leaf() <- A(3,4)
#: model Swap() <- A(3,4)
import torch
import torch.nn as nn
import torch.nn.functional as F


class Codebook(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("codes", torch.linspace(-1, 1, 20).view(5, 4))
        self.register_buffer("count", torch.ones(5))

    def forward(self, x):
        near = (x.unsqueeze(1) - self.codes.data).pow(2).sum(-1).argmin(1)
        hot = F.one_hot(near, 5).float()
        picked = hot @ self.codes
        if self.training:
            self.count.data.mul_(0.9).add_(hot.sum(0), alpha=0.1)
            self.codes.data.copy_(self.codes.data * 0.9 + 0.1 * (hot.t() @ x) / self.count.unsqueeze(1))
        return x + (picked - x).detach()


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.register_buffer("mask", torch.tril(torch.ones(4, 4)))

    def forward(self, x):
        self.fc.weight.data.mul_(self.mask)
        return self.fc(x)


class Power(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 4))
        self.register_buffer("u", torch.ones(5))

    def forward(self, x):
        u = self.u.data
        for _ in range(2):
            v = F.normalize(self.weight.data.t().mv(u), dim=0)
            u = F.normalize(self.weight.data.mv(v), dim=0)
        self.u.data.copy_(u)
        sigma = torch.dot(self.u, self.weight.mv(v))
        return F.linear(x, self.weight / sigma)


class Standard(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 4))

    def forward(self, x):
        w = self.weight.data
        self.weight.data = (w - w.mean(1, keepdim=True)) / (w.std(1, keepdim=True) + 1e-5)
        return x @ self.weight.t()


class Clipped(nn.Module):
    def __init__(self):
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(4))

    def forward(self, x):
        self.alpha.data.clamp_(0.1, 0.4)
        return x * self.alpha ** 2


class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 4))

    def forward(self, x):
        w = self.weight.data
        w.clamp_(-0.2, 0.2)
        return x @ self.weight.t()


class Items(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 4))

    def forward(self, x):
        self.weight.data[0] = 0.0
        self.weight.data[1, :2] += 1.0
        return (x @ self.weight.t()) ** 2


class Child(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])

    def forward(self, x):
        for layer in self.layers:
            layer.weight.data /= layer.weight.data.norm()
            x = layer(x)
        return x


class Method(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 4))

    def shrink(self):
        self.weight.data.mul_(0.5)

    def forward(self, x):
        self.shrink()
        return (x @ self.weight.t()) ** 2


def shrink(layer):
    layer.weight.data.mul_(0.5)


class Outside(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        shrink(self.fc)
        return self.fc(x) ** 2


class Swap(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x):
        self.seen.data = self.seen.data + x.data.abs().mean(0)
        y = x * self.scale / (1 + self.seen)
        return y * y.data


class Started(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        self.start()

    def start(self):
        for layer in self.layers:
            b = layer.bias.view(2, -1)
            b.data[:, 1] += 1.5
            layer.bias = nn.Parameter(b.view(-1), requires_grad=True)

    def forward(self, x):
        return self.layers[1](self.layers[0](x)) + self.layers[0].bias


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
        self.held = self.layers[-1].weight
        with torch.no_grad():
            self.layers[-1].weight *= 0.25
            self.layers[0].bias += 1

    def forward(self, x):
        return self.layers(x) + self.held.sum()


class Leaf(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x) * nn.Parameter(self.fc(x).tanh()) + nn.Parameter(x)
