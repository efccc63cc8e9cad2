"""In: parameters and settings as torch.optim takes them. Out: optimizers with torch's own update.

They stand where mindspore.experimental.optim has no such optimizer or another update rule.
Formulas: the algorithm boxes of torch.optim's reference pages.
"""

import mindspore as ms
from mindspore import Parameter, Tensor, ops
from mindspore.experimental.optim.optimizer import Optimizer


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
        maximize=False,
        decoupled_weight_decay=False,
    ):
        settings = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, settings)
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
            first = 1 - ops.pow(Tensor(beta1, ms.float32), step)
            second = ops.sqrt(1 - ops.pow(Tensor(beta2, ms.float32), step))
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
