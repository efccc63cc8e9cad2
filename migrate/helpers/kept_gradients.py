"""In: a network that returns its loss. Out: gradients that stay with the weights, as in torch.

For programs that look at ``weight.grad``, change weights themselves or have an optimizer of their
own: a call of ``BackwardNet`` is forward, loss and ``backward()``, the rest stands where it stood.
"""

import mindspore as ms
from mindspore import Parameter, Tensor, communication, nn, ops

from migrate.helpers.modules import parameters
from migrate.helpers.scaled_training import ScaledLoss
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
    if any(gradient is None for gradient in gradients) or "clocks" in vars(optimizer):
        apply_to_some(optimizer, gradients)
    else:
        optimizer(tuple(gradients))


def states_of_weights(optimizer):
    """(lists of state with one Parameter a weight, Parameters that all weights share)."""
    count, lists = len(optimizer.parameters), []
    for value in vars(optimizer).values():
        aligned = isinstance(value, (tuple, list)) and len(value) == count
        if aligned and value is not optimizer.lrs and all(isinstance(p, Parameter) for p in value):
            lists.append(list(value))
    known = {id(one) for states in [*lists, optimizer.lrs] for one in states}
    return lists, [one for one in optimizer.get_parameters() if id(one) not in known]


def apply_to_some(optimizer, gradients):
    """Update the weights that have a gradient; the others keep their values and their state.

    torch counts the steps of each weight, a Cell those of all together: weights that have seen
    equally many steps are updated together.
    """
    lists, shared = states_of_weights(optimizer)
    if any(one.size != 1 for one in shared):
        raise NotImplementedError(f"{type(optimizer).__name__} for some of its weights only")
    clocks = vars(optimizer).setdefault("clocks", {})
    now = tuple(one.item() for one in shared)
    clocks = [clocks.setdefault(index, now) for index in range(len(gradients))]
    reached = [index for index, gradient in enumerate(gradients) if gradient is not None]
    full = tuple(
        ops.zeros_like(weight) if gradient is None else gradient
        for weight, gradient in zip(optimizer.parameters, gradients)
    )
    for clock in dict.fromkeys(clocks[index] for index in reached):
        together = {index for index in reached if clocks[index] == clock}
        others = [index for index in range(len(full)) if index not in together]
        kept = [[(states[i], states[i].value().copy()) for i in others] for states in lists]
        for one, value in zip(shared, clock):
            ops.assign(one, Tensor(value, one.dtype).reshape(one.shape))
        optimizer(full)
        for state, value in [pair for states in kept for pair in states]:
            ops.assign(state, value)
        after = tuple(one.item() for one in shared)
        vars(optimizer)["clocks"].update(dict.fromkeys(together, after))


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


def unscale_gradients(scaler, optimizer):
    """Reproduces ``unscale_(optimizer)`` of a GradScaler, on gradients that are kept."""
    if not scaler.enabled:
        return
    found = vars(scaler).setdefault("found", {})
    if id(optimizer) in found:
        raise RuntimeError("unscale_() has been called on this optimizer since the last update()")
    kept = [g for g in map(gradient_of, weights_of(optimizer)) if g is not None]
    inverse = 1.0 / scaler.current
    for gradient in kept:
        gradient.copy_(gradient * inverse)
    found[id(optimizer)] = all(ops.isfinite(gradient).all().item() for gradient in kept)


def apply_scaled_gradients(scaler, optimizer):
    """Reproduces ``step(optimizer)`` of a GradScaler: no update where one is not finite."""
    if scaler.enabled:
        if id(optimizer) not in vars(scaler).get("found", {}):
            unscale_gradients(scaler, optimizer)
        if not scaler.found[id(optimizer)]:
            return
    apply_gradients(optimizer)


def adjust_scale(scaler):
    """Reproduces ``update()`` of a GradScaler, behind the steps of its optimizers."""
    if not scaler.enabled:
        return
    found = vars(scaler).pop("found", {})
    if not found:
        raise RuntimeError("the scale is adjusted without an update in front of it")
    scaler.adjust(Tensor(all(found.values()), ms.bool_))


def averaging(weights):
    """What averages gradients over the processes of DistributedDataParallel, if there are some."""
    shared = ms.get_auto_parallel_context("parallel_mode") == ms.ParallelMode.DATA_PARALLEL
    if not shared or communication.get_group_size() == 1:
        return nn.Identity()
    mean = ms.get_auto_parallel_context("gradients_mean")
    return nn.DistributedGradReducer(weights, mean, communication.get_group_size())


class ForwardBackward(nn.Cell):
    """(what the network returns, the gradients of the weights), by one compiled graph."""

    def __init__(self, network, weights, has_aux, scaler=None):
        super().__init__(auto_prefix=False)
        self.weights, self.scaled = ms.ParameterTuple(weights), scaler is not None
        network = ScaledLoss(network, scaler) if self.scaled else network
        has_aux = has_aux or self.scaled
        self.value_and_grad = ms.value_and_grad(network, None, self.weights, has_aux=has_aux)
        self.reducer = averaging(self.weights)

    def construct(self, *inputs):
        outputs, gradients = self.value_and_grad(*inputs)
        gradients = self.reducer(gradients)
        return (outputs[1], gradients) if self.scaled else (outputs, gradients)


class BackwardNet(nn.Cell):
    """A call is forward, loss and ``backward()``: gradients are added to those of the weights.

    ``network`` returns the loss, or with ``has_aux`` a tuple of it and what else is wanted, and so
    does a call; ``others`` are Modules and weights that it uses and does not hold. With a
    ``scaler`` a call is ``scaler.scale(loss).backward()``, and returns the loss as it is.
    """

    def __init__(self, network, *others, has_aux=False, scaler=None):
        super().__init__(auto_prefix=False)
        self.network = network
        self.has_aux, self.scaler = has_aux, scaler
        every = (weight for one in (network, *others) for weight in weights_of(one))
        vars(self)["every"] = list({id(weight): weight for weight in every}.values())
        taken = set()
        for weight in self.every:
            name, number = weight.name, 1
            while weight.name in taken:  # two nets of one class have the same names
                weight.name, number = f"{number}.{name}", number + 1
            taken.add(weight.name)
        vars(self)["passes"] = {}

    def __call__(self, *inputs):
        weights = [weight for weight in self.every if weight.requires_grad]
        if not weights:
            raise RuntimeError("no weight that computes the loss requires a gradient")
        key = tuple(map(id, weights))
        if key not in self.passes:  # weights are frozen and freed as the program runs
            self.passes[key] = ForwardBackward(self.network, weights, self.has_aux, self.scaler)
        self.passes[key].phase = self.phase
        outputs, gradients = self.passes[key](*inputs)
        for weight, gradient in zip(weights, gradients):
            kept = gradient_of(weight)
            if kept is None:
                keep_gradient(weight, gradient.copy())  # two weights may be given one Tensor
            else:
                kept.copy_(kept + gradient)
        return outputs
