"""In: parameters and settings as torch.optim takes them. Out: optimizers of whole matrices.

Formulas: the algorithm boxes of torch.optim's reference pages.
"""

import mindspore as ms
from mindspore import Parameter, ParameterTuple, Tensor, ops
from mindspore.experimental.optim.optimizer import Optimizer


class Adafactor(Optimizer):
    """Reproduces torch.optim.Adafactor: second moments of matrices kept as rows and columns."""

    def __init__(
        self,
        params,
        lr=1e-2,
        beta2_decay=-0.8,
        eps=(None, 1e-3),
        d=1.0,
        weight_decay=0.0,
        *,
        maximize=False,
    ):
        settings = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "maximize": maximize,
        }
        super().__init__(params, settings)
        self.row = self.moments("row_var", lambda s: (*s[:-1], 1) if len(s) > 1 else (1,))
        self.column = self.moments("col_var", lambda s: (*s[:-2], 1, s[-1]) if len(s) > 1 else (1,))
        self.variance = self.moments("variance", lambda s: (1,) if len(s) > 1 else s)
        self.state_step = Parameter(Tensor(0.0, ms.float32), "state_step", requires_grad=False)

    def moments(self, name, shape):
        """Zeros for every weight, of the shape that ``shape`` gives for the weight's."""
        return ParameterTuple(
            [
                Parameter(ops.zeros(shape(p.shape), ms.float32), f"{name}.{p.name}", False)
                for p in self.parameters
            ]
        )

    def estimate(self, index, gradient, fresh, smallest):
        """The second moments of the gradient of one weight; ``fresh`` is the weight of the new."""
        square = gradient * gradient
        if gradient.ndim < 2:
            kept = self.variance[index]
            new = kept + fresh * (square - kept)
            ops.assign(kept, new)
            return new
        kept_row, kept_column = self.row[index], self.column[index]
        row = kept_row + fresh * (square.mean(-1, keep_dims=True) - kept_row)
        column = kept_column + fresh * (square.mean(-2, keep_dims=True) - kept_column)
        ops.assign(kept_row, row)
        ops.assign(kept_column, column)
        return ops.matmul(row, column) / ops.clamp(row.mean(-2, keep_dims=True), min=smallest)

    def construct(self, gradients):
        step = ops.assign_add(self.state_step, Tensor(1.0, ms.float32))
        for index, group in enumerate(self.param_groups):
            start, rate = self.group_start_id[index], group["lr"]
            fresh = ops.pow(step, group["beta2_decay"])
            limited = ops.minimum(rate * 1.0, 1 / ops.sqrt(step))
            smallest, least = group["eps"]
            smallest = 1.1920928955078125e-07 if smallest is None else smallest
            for i in range(len(group["params"])):
                weight, gradient = self.parameters[start + i], gradients[start + i]
                gradient = -gradient if group["maximize"] else gradient
                value = weight * 1.0
                size = ops.clamp(ops.sqrt(ops.square(value).mean()), min=least)
                if group["weight_decay"] != 0:
                    value = value * (1 - rate * group["weight_decay"])
                moments = self.estimate(start + i, gradient, fresh, smallest)
                update = ops.rsqrt(ops.clamp(moments, min=smallest * smallest)) * gradient
                spread = ops.clamp(ops.sqrt(ops.square(update).mean()) / group["d"], min=1.0)
                ops.assign(weight, value - (size * limited / spread) * update)
        return True


def as_bfloat16(x):
    """The float32 tensor rounded to bfloat16."""
    return x.astype(ms.bfloat16).astype(ms.float32)


def orthogonalized(x, coefficients, steps, eps):
    """Newton-Schulz iteration of torch.optim.Muon, each product rounded to bfloat16 as there.

    MindSpore has no bfloat16 product on CPUs; a rounded float32 one gives the same numbers.
    """
    a, b, c = coefficients
    tall = x.shape[0] > x.shape[1]
    x = as_bfloat16(x.T if tall else x)
    norm = as_bfloat16(ops.sqrt(ops.square(x).sum()))
    x = as_bfloat16(x / ops.clamp(norm, min=eps))
    for _ in range(steps):
        gram = as_bfloat16(ops.matmul(x, x.T))
        update = as_bfloat16(b * gram + c * ops.matmul(gram, gram))
        x = as_bfloat16(a * x + ops.matmul(update, x))
    return x.T if tall else x


class Muon(Optimizer):
    """Reproduces torch.optim.Muon: momentum whose matrices are made orthogonal."""

    def __init__(
        self,
        params,
        lr=1e-3,
        weight_decay=0.1,
        momentum=0.95,
        nesterov=True,
        ns_coefficients=(3.4445, -4.775, 2.0315),
        eps=1e-7,
        ns_steps=5,
        adjust_lr_fn=None,
    ):
        settings = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, settings)
        self.momenta = self.parameters.clone(prefix="momentum_buffer", init="zeros")

    def construct(self, gradients):
        for index, group in enumerate(self.param_groups):
            start, rate, momentum = self.group_start_id[index], group["lr"], group["momentum"]
            for i in range(len(group["params"])):
                weight, gradient = self.parameters[start + i], gradients[start + i]
                kept = self.momenta[start + i]
                new = kept + (1 - momentum) * (gradient - kept)
                ops.assign(kept, new)
                update = gradient + momentum * (new - gradient) if group["nesterov"] else new
                update = orthogonalized(
                    update, group["ns_coefficients"], group["ns_steps"], group["eps"]
                )
                rows, columns = weight.shape
                scale = max(1.0, rows / columns) ** 0.5
                if group["adjust_lr_fn"] == "match_rms_adamw":
                    scale = 0.2 * max(rows, columns) ** 0.5
                kept_weight = weight * (1 - rate * group["weight_decay"])
                ops.assign(weight, kept_weight - rate * scale * update)
        return True
