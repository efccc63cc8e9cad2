# torch2ms helpers 0.1.0: written by torch2mindspore, which knows this file by this line.
"""In: arguments as torch takes them. Out: what torch gives, from MindSpore."""

import math

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops
from mindspore.experimental.optim.optimizer import Optimizer


def reduction_of(size_average, reduce, reduction):
    """The reduction that torch's two old arguments stand for, where one of them is given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is not None and not reduce:
        return "none"
    return "mean" if size_average is None or size_average else "sum"


def keep_buffer(cell, name, value):
    """Makes ``value`` a buffer of the cell, as torch does with weights; None stays None."""
    if name in cell.__dict__:
        delattr(cell, name)
    if value is None:
        setattr(cell, name, None)
    else:
        cell.register_buffer(name, value)


def softplus_of(x, beta=1.0, threshold=20.0):
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x is above the threshold."""
    scaled = x * beta
    linear = scaled > threshold
    curved = ops.log1p(ops.exp(ops.where(linear, ops.zeros_like(x), scaled))) / beta
    return ops.where(linear, x, curved)


def reduced_by(loss, reduction):
    """The loss of each element, their mean, or their sum; of no elements NaN or 0."""
    if loss.size == 0 and reduction != "none":
        return ops.full((), float("nan") if reduction == "mean" else 0.0, dtype=loss.dtype)
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


class BCEWithLogitsLoss(nn.Cell):
    """Reproduces torch.nn.BCEWithLogitsLoss by its stable formula."""

    def __init__(
        self, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
    ):
        super().__init__()
        self.reduction = reduction_of(size_average, reduce, reduction)
        keep_buffer(self, "weight", weight)
        keep_buffer(self, "pos_weight", pos_weight)

    def construct(self, logits, labels):
        tail = softplus_of(-logits)
        if self.pos_weight is not None:
            tail = tail * (1 + (self.pos_weight - 1) * labels)
        loss = (1 - labels) * logits + tail
        if self.weight is not None:
            loss = loss * self.weight
        return reduced_by(loss, self.reduction)


def register_buffer(cell, name, tensor, persistent=True):
    """torch.nn.Module.register_buffer, in a form that graph mode may also assign.

    A buffer that is saved becomes a Parameter that is not trained, so it goes into checkpoints
    and ``self.name = value`` works in construct; the others stay MindSpore's own buffers.
    """
    if tensor is None:
        setattr(cell, name, None)
        return
    if name in cell.__dict__:  # None, until there is a tensor
        delattr(cell, name)
    if not persistent:
        cell.register_buffer(name, tensor, persistent=False)
        return
    old = cell.__dict__.get("registered_buffers", ())
    object.__setattr__(cell, "registered_buffers", (*old, name))
    cell.insert_param_to_cell(name, ms.Parameter(tensor, name=name, requires_grad=False))


def undifferentiable(differentiable):
    """Refuses a step that is to be differentiated. Raises NotImplementedError."""
    if differentiable:
        raise NotImplementedError("a step that can be differentiated")


def trainable(params):
    """Of parameters, or groups of them, those that require a gradient: what torch would train."""
    if hasattr(params, "with_frozen"):
        return params
    if isinstance(params, Parameter):
        return [params] if params.requires_grad else []
    if isinstance(params, dict):
        return {**params, "params": trainable(params["params"])}
    kept = [trainable(one) if isinstance(one, dict) else one for one in params]
    return [one for one in kept if isinstance(one, dict) or one.requires_grad]


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


def renamed_state(optimizer, tag):
    """The optimizer with names of its own for learning rates and state, as one Cell asks for."""
    for rate in optimizer.lrs:
        rate.name = f"{tag}.{rate.name}"
    weights = {id(parameter) for parameter in optimizer.parameters}
    for parameter in optimizer.get_parameters():
        if id(parameter) not in weights and not parameter.name.startswith(f"{tag}."):
            parameter.name = f"{tag}.{parameter.name}"
    return optimizer


def distinct_names(optimizers):
    """All weights; one whose name is taken, as when two nets are alike, gets a number in front."""
    weights, taken = [], set()
    for number, optimizer in enumerate(optimizers):
        for parameter in optimizer.parameters:
            if parameter.name in taken:
                parameter.name = f"{number}.{parameter.name}"
            taken.add(parameter.name)
            weights.append(parameter)
    return ms.ParameterTuple(weights)


def chosen_among(weights, clipped):
    """For each weight whether it is one of ``clipped``; all of them where that is None."""
    if clipped is None:
        return tuple(True for _ in weights)
    chosen = {id(parameter) for parameter in clipped}
    return tuple(id(parameter) in chosen for parameter in weights)


def total_norm(gradients, norm_type):
    """The norm of all gradients as one vector; the largest absolute value for infinity."""
    if norm_type == float("inf"):
        return ops.stack([gradient.abs().max() for gradient in gradients]).max()
    if norm_type == 2:
        return ops.stack([gradient.square().sum() for gradient in gradients]).sum().sqrt()
    powers = [gradient.abs().pow(norm_type).sum() for gradient in gradients]
    return ops.stack(powers).sum().pow(1.0 / norm_type)


def clip_by_total_norm(gradients, chosen, max_norm, norm_type):
    """(gradients, total norm): the chosen ones scaled as torch.nn.utils.clip_grad_norm_ does."""
    norm = total_norm([g for g, c in zip(gradients, chosen) if c], norm_type)
    scale = ops.minimum(max_norm / (norm + 1e-6), ops.ones_like(norm))
    return tuple([g * scale if c else g for g, c in zip(gradients, chosen)]), norm


def followed_by(outputs, done):
    """The outputs of a network (a tensor or a tuple), tied to an update that must happen."""
    if isinstance(outputs, tuple):
        return (ops.depend(outputs[0], done), *outputs[1:])
    return ops.depend(outputs, done)


class JointTrainStep(nn.TrainOneStepCell):
    """One gradient of one loss, applied by several optimizers, each to its own weights."""

    def __init__(
        self,
        network,
        optimizers,
        max_norm=None,
        norm_type=2.0,
        clipped=None,
        has_aux=False,
        returns_norm=False,
    ):
        super().__init__(network, optimizers[0])
        self.others = nn.CellList(
            [renamed_state(o, f"optimizer_{i}") for i, o in enumerate(optimizers[1:], 1)],
            auto_prefix=False,
        )
        self.weights = distinct_names(optimizers)
        if self.reducer_flag:
            self.grad_reducer = nn.DistributedGradReducer(self.weights, self.mean, self.degree)
        self.counts = tuple(len(o.parameters) for o in optimizers)
        self.max_norm, self.norm_type = max_norm, float(norm_type)
        self.chosen = chosen_among(self.weights, clipped)
        self.has_aux, self.returns_norm = has_aux, returns_norm
        self.value_and_grad = ms.value_and_grad(network, None, self.weights, has_aux=has_aux)

    def construct(self, *inputs):
        outputs, gradients = self.value_and_grad(*inputs)
        gradients = self.grad_reducer(gradients)
        norm = None
        if self.max_norm is not None:
            gradients, norm = clip_by_total_norm(
                gradients, self.chosen, float(self.max_norm), self.norm_type
            )
        done = (self.optimizer(gradients[: self.counts[0]]),)
        start = self.counts[0]
        for optimizer, count in zip(self.others, self.counts[1:]):
            done = (*done, optimizer(gradients[start : start + count]))
            start = start + count
        outputs = followed_by(outputs, done)
        if not self.returns_norm:
            return outputs
        return (*outputs, norm) if self.has_aux else (outputs, norm)
