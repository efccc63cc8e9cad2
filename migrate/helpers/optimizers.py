"""In: parameters and settings as torch.optim takes them. Out: optimizers with torch's own update.

They stand where mindspore.experimental.optim has no such optimizer or another update rule.
Formulas: the algorithm boxes of torch.optim's reference pages.
"""

import math

import mindspore as ms
from mindspore import Parameter, Tensor, ops
from mindspore.experimental import optim
from mindspore.experimental.optim.optimizer import Optimizer

from migrate.helpers.optimizers_by_value import undifferentiable
from migrate.helpers.parameter_groups import trainable


def shortfall(beta, step):
    """1 - beta ** step, without the cancellation that float32 has near 1."""
    if isinstance(beta, Tensor):
        return -ops.expm1(step * ops.log(beta))
    return -ops.expm1(step * math.log(beta)) if beta > 0 else step * 0.0 + 1.0


class Adam(Optimizer):
    """Reproduces torch.optim.Adam: weight decay added to the gradient, eps outside the root.

    ``decoupled_weight_decay`` takes the decay off the weights instead (AdamW).
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0.0,
        amsgrad=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
        fused=None,
        decoupled_weight_decay=False,
    ):
        undifferentiable(differentiable)
        settings = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(trainable(params), settings)
        self.exp_avg = self.parameters.clone(prefix="exp_avg", init="zeros")
        self.exp_avg_sq = self.parameters.clone(prefix="exp_avg_sq", init="zeros")
        self.max_exp_avg_sq = self.parameters.clone(prefix="max_exp_avg_sq", init="zeros")
        self.state_step = Parameter(Tensor(0.0, ms.float32), "state_step", requires_grad=False)

    def construct(self, gradients):
        step = ops.assign_add(self.state_step, Tensor(1.0, ms.float32))
        for index, group in enumerate(self.param_groups):
            start = self.group_start_id[index]
            beta1, beta2 = group["betas"]
            rate, decay = group["lr"], group["weight_decay"]
            first = shortfall(beta1, step)
            second = ops.sqrt(shortfall(beta2, step))
            for i in range(len(group["params"])):
                weight, gradient = self.parameters[start + i], gradients[start + i]
                mean, square = self.exp_avg[start + i], self.exp_avg_sq[start + i]
                gradient = -gradient if group["maximize"] else gradient
                value = weight * 1.0
                if decay != 0 and group["decoupled_weight_decay"]:
                    value = value * (1 - rate * decay)
                elif decay != 0:
                    gradient = gradient + decay * value
                new_mean = mean + (1 - beta1) * (gradient - mean)
                new_square = square * beta2 + (1 - beta2) * gradient * gradient
                ops.assign(mean, new_mean)
                ops.assign(square, new_square)
                root = new_square
                if group["amsgrad"]:
                    root = ops.maximum(self.max_exp_avg_sq[start + i], new_square)
                    ops.assign(self.max_exp_avg_sq[start + i], root)
                step_size = ops.sqrt(root) / second + group["eps"]
                ops.assign(weight, value - (rate / first) * new_mean / step_size)
        return True


class AdamW(Adam):
    """Reproduces torch.optim.AdamW where a schedule changes its betas while it trains."""

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=1e-2,
        amsgrad=False,
        *,
        maximize=False,
        foreach=None,
        capturable=False,
        differentiable=False,
        fused=None,
    ):
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            maximize=maximize,
            differentiable=differentiable,
            decoupled_weight_decay=True,
        )


def decay_kept_apart(optimizer, decoupled):
    """Each group's decay, which ``decayed`` applies; the optimizer itself applies none of them."""
    decays = [group["weight_decay"] if decoupled else 0.0 for group in optimizer.param_groups]
    for group in optimizer.param_groups if decoupled else ():
        group["weight_decay"] = 0.0
    return tuple(decays)


def decayed(optimizer, decays):
    """Take each group's decoupled decay off its weights."""
    for index, group in enumerate(optimizer.param_groups):
        start = optimizer.group_start_id[index]
        for i in range(len(group["params"])):
            if decays[index] != 0:
                weight = optimizer.parameters[start + i]
                ops.assign(weight, weight * (1 - group["lr"] * decays[index]))
    return True


class NAdam(optim.NAdam):
    """Reproduces torch.optim.NAdam with decoupled_weight_decay and maximize."""

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0.0,
        momentum_decay=4e-3,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ):
        undifferentiable(differentiable)
        super().__init__(trainable(params), lr, betas, eps, float(weight_decay), momentum_decay)
        self.maximize = maximize
        self.decays = decay_kept_apart(self, decoupled_weight_decay)

    def construct(self, gradients):
        decayed(self, self.decays)
        return super().construct(tuple([-g if self.maximize else g for g in gradients]))


class RAdam(optim.RAdam):
    """Reproduces torch.optim.RAdam with decoupled_weight_decay and maximize."""

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0.0,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ):
        undifferentiable(differentiable)
        super().__init__(trainable(params), lr, betas, eps, float(weight_decay))
        self.maximize = maximize
        self.decays = decay_kept_apart(self, decoupled_weight_decay)

    def construct(self, gradients):
        decayed(self, self.decays)
        return super().construct(tuple([-g if self.maximize else g for g in gradients]))


class SparseAdam(Optimizer):
    """Reproduces torch.optim.SparseAdam for the dense gradients of an embedding.

    Rows whose gradient is zero throughout count as not looked up: nothing of theirs changes.
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        self.exp_avg = self.parameters.clone(prefix="exp_avg", init="zeros")
        self.exp_avg_sq = self.parameters.clone(prefix="exp_avg_sq", init="zeros")
        self.state_step = Parameter(Tensor(0.0, ms.float32), "state_step", requires_grad=False)

    def construct(self, gradients):
        step = ops.assign_add(self.state_step, Tensor(1.0, ms.float32))
        for index, group in enumerate(self.param_groups):
            start = self.group_start_id[index]
            beta1, beta2 = group["betas"]
            rate = group["lr"] * ops.sqrt(shortfall(beta2, step)) / shortfall(beta1, step)
            for i in range(len(group["params"])):
                weight, gradient = self.parameters[start + i], gradients[start + i]
                mean, square = self.exp_avg[start + i], self.exp_avg_sq[start + i]
                gradient = -gradient if group["maximize"] else gradient
                size = gradient.abs().reshape(gradient.shape[0], -1).sum(-1)
                used = (size != 0).reshape((-1,) + (1,) * (gradient.ndim - 1))
                new_mean = mean + (1 - beta1) * (gradient - mean)
                new_square = square + (1 - beta2) * (gradient * gradient - square)
                change = rate * new_mean / (ops.sqrt(new_square) + group["eps"])
                ops.assign(weight, ops.where(used, weight - change, weight * 1.0))
                ops.assign(mean, ops.where(used, new_mean, mean * 1.0))
                ops.assign(square, ops.where(used, new_square, square * 1.0))
        return True
