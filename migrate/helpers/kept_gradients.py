"""In: a network that returns its loss. Out: gradients that stay with the weights, as in torch.

For programs that look at ``weight.grad``, change weights themselves or have an optimizer of their
own: a call of ``BackwardNet`` is forward, loss and ``backward()``, the rest stands where it stood.
"""

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops

from migrate.helpers.modules import parameters
from migrate.helpers.training import total_norm


def gradient_of(weight):
    """What torch has in ``weight.grad``: a Tensor, or None."""
    if not isinstance(weight, Parameter):
        raise TypeError("only a Parameter keeps its gradient; differentiate with mindspore.grad")
    return vars(weight).get("gradient")


def keep_gradient(weight, gradient):
    """Reproduces ``weight.grad = gradient``."""
    vars(weight)["gradient"] = gradient


def write_gradient(weight, value):
    """Changes the very gradient that ``weight`` keeps, for whoever holds it."""
    gradient = gradient_of(weight)
    value = value if isinstance(value, Tensor) else Tensor(value)
    gradient.copy_(value.astype(gradient.dtype).broadcast_to(gradient.shape))


def weights_of(owner):
    """The weights of a Cell, of an optimizer, or of a list of either or of weights."""
    if isinstance(owner, Parameter):
        return [owner]
    if isinstance(owner, nn.Cell):
        return list(owner.parameters if hasattr(owner, "lrs") else parameters(owner))
    return [weight for one in owner for weight in weights_of(one)]


def clear_gradients(owner, set_to_none=True):
    """Reproduces ``zero_grad()`` of a Module or an optimizer."""
    for weight in weights_of(owner):
        if set_to_none:
            keep_gradient(weight, None)
        elif gradient_of(weight) is not None:
            write_gradient(weight, 0)


def apply_gradients(optimizer):
    """Reproduces ``step()`` of an optimizer, with the gradients that its weights keep."""
    if hasattr(optimizer, "step"):
        optimizer.step()
        return
    gradients = [gradient_of(weight) for weight in optimizer.parameters]
    if all(gradient is None for gradient in gradients):
        return
    missing = [w.name for w, g in zip(optimizer.parameters, gradients) if g is None]
    if missing:
        raise NotImplementedError(f"no gradient reached {missing}; leave them out of the optimizer")
    optimizer(tuple(gradients))


def clip_gradients(weights, max_norm, norm_type=2.0):
    """Reproduces torch.nn.utils.clip_grad_norm_ on gradients that are kept; returns the norm."""
    gradients = [g for g in map(gradient_of, weights_of(weights)) if g is not None]
    if not gradients:
        return Tensor(0.0, ms.float32)
    norm = total_norm(gradients, float(norm_type))
    scale = ops.minimum(float(max_norm) / (norm + 1e-6), ops.ones_like(norm))
    for gradient in gradients:
        gradient.copy_(gradient * scale)
    return norm


def clip_gradient_values(weights, clip_value):
    """Reproduces torch.nn.utils.clip_grad_value_ on gradients that are kept."""
    for weight in weights_of(weights):
        if gradient_of(weight) is not None:
            limit = float(clip_value)
            write_gradient(weight, ops.clamp(gradient_of(weight), -limit, limit))


class BackwardNet(nn.Cell):
    """A call is forward, loss and ``backward()``: gradients are added to those of the weights.

    ``network`` returns the loss, or with ``has_aux`` a tuple of it and what else is wanted, and so
    does a call; ``others`` are Modules and weights that it uses and does not hold.
    """

    def __init__(self, network, *others, has_aux=False):
        super().__init__(auto_prefix=False)
        self.network = network
        weights, taken = {}, set()
        for weight in (w for one in (network, *others) for w in weights_of(one)):
            if id(weight) in weights or not weight.requires_grad:
                continue
            weights[id(weight)] = weight
            name, number = weight.name, 1
            while weight.name in taken:  # two nets of one class have the same names
                weight.name, number = f"{number}.{name}", number + 1
            taken.add(weight.name)
        self.weights = ms.ParameterTuple(weights.values())
        self.value_and_grad = ms.value_and_grad(network, None, self.weights, has_aux=has_aux)

    def construct(self, *inputs):
        return self.value_and_grad(*inputs)

    def __call__(self, *inputs):
        outputs, gradients = super().__call__(*inputs)
        for weight, gradient in zip(self.weights, gradients):
            if not weight.requires_grad:
                continue
            kept = gradient_of(weight)
            if kept is None:
                keep_gradient(weight, gradient.copy())  # two weights may be given one Tensor
            else:
                kept.copy_(kept + gradient)
        return outputs
