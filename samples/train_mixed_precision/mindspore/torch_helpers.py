# torch2ms helpers 0.1.0: written by torch2mindspore, which knows this file by this line.
"""In: arguments as torch takes them. Out: what torch gives, from MindSpore."""

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops


def full_precision(device_type, enabled=True):
    """Raises where torch.autocast would lower the precision on a CPU: here it stays float32."""
    lowers = enabled and str(device_type).partition(":")[0] == "cpu"
    if lowers and ms.get_context("device_target") == "CPU":
        raise NotImplementedError("torch2ms LOP105 torch.autocast computes in bfloat16 here")


class Device:
    """torch.device as a name: its ``type`` and ``index``. It places nothing."""

    def __init__(self, type, index=None):
        name, _, number = str(type).partition(":")
        self.type = name
        self.index = int(number) if number else index

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self):
        return f"device({str(self)!r})"

    def __eq__(self, other):
        return isinstance(other, Device) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))


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


def as_labels(target):
    """Class labels as int32, which the kernels want; probabilities stay."""
    return target.astype(ms.int32) if target.dtype in (ms.int64, ms.uint8) else target


class CrossEntropyLoss(nn.CrossEntropyLoss):
    """Reproduces torch.nn.CrossEntropyLoss; labels may be int64, or class probabilities."""

    def __init__(
        self,
        weight=None,
        size_average=None,
        ignore_index=-100,
        reduce=None,
        reduction="mean",
        label_smoothing=0.0,
    ):
        super().__init__(
            None, ignore_index, reduction_of(size_average, reduce, reduction), label_smoothing
        )
        keep_buffer(self, "weight", weight)

    def construct(self, logits, labels):
        return ops.cross_entropy(
            logits,
            as_labels(labels),
            self.weight,
            self.ignore_index,
            self.reduction,
            self.label_smoothing,
        )


class GradScaler(nn.Cell):
    """Reproduces torch.amp.GradScaler: the scale of a loss, halved when a gradient overflows."""

    def __init__(
        self,
        init_scale=65536.0,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        super().__init__(auto_prefix=False)
        self.growth_factor, self.backoff_factor = float(growth_factor), float(backoff_factor)
        self.growth_interval, self.enabled = growth_interval, enabled
        self.current = Parameter(
            Tensor(init_scale if enabled else 1.0, ms.float32), "loss_scale", requires_grad=False
        )
        self.growth = Parameter(Tensor(0, ms.int32), "loss_scale_growth", requires_grad=False)

    def adjust(self, finite):
        """After a step: smaller when a gradient was not finite, larger after enough that were."""
        if not self.enabled:
            return finite
        growth = ops.where(finite, self.growth + 1, ops.zeros_like(self.growth))
        full = growth >= self.growth_interval
        grown = ops.where(full, self.current * self.growth_factor, self.current)
        grown = ops.where(ops.isfinite(grown), grown, self.current.value())
        scale = ops.where(finite, grown, self.current * self.backoff_factor)
        done = ops.assign(self.current, scale)
        kept = ops.assign(self.growth, ops.where(full, ops.zeros_like(growth), growth))
        return ops.depend(finite, (done, kept))

    def get_scale(self):
        """The current scale as a Python number."""
        return self.current.item() if self.enabled else 1.0

    def state_dict(self):
        """What a later GradScaler goes on from; empty where losses are not scaled."""
        if not self.enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self.growth_factor,
            "backoff_factor": self.backoff_factor,
            "growth_interval": self.growth_interval,
            "_growth_tracker": self.growth.item(),
        }

    def load_state_dict(self, state_dict):
        """Go on from a state_dict()."""
        if not self.enabled:
            return
        self.growth_factor = float(state_dict["growth_factor"])
        self.backoff_factor = float(state_dict["backoff_factor"])
        self.growth_interval = state_dict["growth_interval"]
        ops.assign(self.current, Tensor(state_dict["scale"], ms.float32))
        ops.assign(self.growth, Tensor(state_dict["_growth_tracker"], ms.int32))

    def is_enabled(self):
        """Whether losses are scaled at all."""
        return self.enabled


def chosen_among(weights, clipped):
    """For each weight whether it is one of ``clipped``; all of them where that is None."""
    if clipped is None:
        return tuple(True for _ in weights)
    chosen = {id(parameter) for parameter in clipped}
    return tuple(id(parameter) in chosen for parameter in weights)


class ScaledLoss(nn.Cell):
    """(scaled loss, then what the network returned)."""

    def __init__(self, network, scaler):
        super().__init__(auto_prefix=False)
        self.network, self.scaler = network, scaler

    def construct(self, *inputs):
        outputs = self.network(*inputs)
        if isinstance(outputs, tuple):
            return outputs[0] * self.scaler.current, outputs
        return outputs * self.scaler.current, outputs


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


class ScaledTrainStep(nn.TrainOneStepCell):
    """One step under torch.amp.GradScaler: scale, backward, unscale, clip, step, update.

    The update is left out when a gradient is not finite.
    """

    def __init__(
        self,
        network,
        optimizer,
        scaler,
        max_norm=None,
        norm_type=2.0,
        clipped=None,
        has_aux=False,
        returns_norm=False,
    ):
        super().__init__(network, optimizer)
        self.scaler = scaler
        self.max_norm, self.norm_type = max_norm, float(norm_type)
        self.chosen = chosen_among(self.weights, clipped)
        self.has_aux, self.returns_norm = has_aux, returns_norm
        self.value_and_grad = ms.value_and_grad(
            ScaledLoss(network, scaler), None, self.weights, has_aux=True
        )

    def construct(self, *inputs):
        (_, outputs), gradients = self.value_and_grad(*inputs)
        gradients = self.grad_reducer(gradients)
        inverse = 1.0 / self.scaler.current
        gradients = tuple([gradient * inverse for gradient in gradients])
        finite = ops.stack([ops.isfinite(gradient).all() for gradient in gradients]).all()
        norm = None
        if self.max_norm is not None:
            gradients, norm = clip_by_total_norm(
                gradients, self.chosen, float(self.max_norm), self.norm_type
            )
        updates = finite if self.scaler.enabled else True  # not `or`: a graph joins no types
        if updates:
            outputs = followed_by(outputs, self.optimizer(gradients))
        outputs = followed_by(outputs, self.scaler.adjust(finite))
        if not self.returns_norm:
            return outputs
        return (*outputs, norm) if self.has_aux else (outputs, norm)
