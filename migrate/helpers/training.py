"""In: a network that returns its loss, and optimizers. Out: Cells that make one training step.

Each reproduces ``zero_grad(); loss.backward(); optimizer.step()`` with what stands between them.
The network returns the loss, or with ``has_aux`` a tuple of the loss and what else is wanted;
only the loss is differentiated, and a call of the step returns what the network returned.
"""

import mindspore as ms
from mindspore import nn, ops


def followed_by(outputs, done):
    """The outputs of a network (a tensor or a tuple), tied to an update that must happen."""
    if isinstance(outputs, tuple):
        return (ops.depend(outputs[0], done), *outputs[1:])
    return ops.depend(outputs, done)


def without_statistics(network):
    """The network as a function whose calls leave moving means and variances as they were."""

    def outputs(*inputs):
        others = [p for p in network.get_parameters() if not p.requires_grad]
        before = [p.value().copy() for p in others]
        found = network(*inputs)
        for parameter, value in zip(others, before):
            ops.assign(parameter, value)
        return found

    return outputs


class TrainOneStep(nn.TrainOneStepCell):
    """One training step of a network that returns (loss, *others); returns all of them.

    ``has_aux=False``: it returns a loss. Given a number, graph mode runs the network of MindSpore's
    own TrainOneStepCell twice, and so moves the statistics of its BatchNorms twice.
    """

    def __init__(self, network, optimizer, has_aux=True):
        super().__init__(network, optimizer)
        self.value_and_grad = ms.value_and_grad(network, None, self.weights, has_aux=has_aux)

    def construct(self, *inputs):
        outputs, gradients = self.value_and_grad(*inputs)
        return followed_by(outputs, self.optimizer(self.grad_reducer(gradients)))


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


def clip_each(gradients, chosen, limit):
    """The gradients, the chosen ones between -limit and limit."""
    return tuple([ops.clamp(g, -limit, limit) if c else g for g, c in zip(gradients, chosen)])


def chosen_among(weights, clipped):
    """For each weight whether it is one of ``clipped``; all of them where that is None."""
    if clipped is None:
        return tuple(True for _ in weights)
    chosen = {id(parameter) for parameter in clipped}
    return tuple(id(parameter) in chosen for parameter in weights)


class ClippedTrainStep(nn.TrainOneStepCell):
    """One training step with torch.nn.utils.clip_grad_norm_ between gradient and update.

    Nothing is clipped where ``max_norm`` is None. With ``returns_norm`` a call gives the norm
    before clipping as its last result.
    """

    def __init__(
        self,
        network,
        optimizer,
        max_norm,
        norm_type=2.0,
        clipped=None,
        has_aux=False,
        returns_norm=False,
    ):
        super().__init__(network, optimizer)
        self.max_norm = None if max_norm is None else float(max_norm)
        self.norm_type = float(norm_type)
        self.chosen = chosen_among(self.weights, clipped)
        self.has_aux, self.returns_norm = has_aux, returns_norm
        self.value_and_grad = ms.value_and_grad(network, None, self.weights, has_aux=has_aux)

    def construct(self, *inputs):
        outputs, gradients = self.value_and_grad(*inputs)
        gradients = self.grad_reducer(gradients)
        norm = None
        if self.max_norm is not None:
            gradients, norm = clip_by_total_norm(
                gradients, self.chosen, self.max_norm, self.norm_type
            )
        outputs = followed_by(outputs, self.optimizer(gradients))
        if not self.returns_norm:
            return outputs
        return (*outputs, norm) if self.has_aux else (outputs, norm)


class ValueClippedTrainStep(nn.TrainOneStepCell):
    """One training step with torch.nn.utils.clip_grad_value_ between gradient and update.

    Nothing is clipped where ``clip_value`` is None.
    """

    def __init__(self, network, optimizer, clip_value, clipped=None, has_aux=False):
        super().__init__(network, optimizer)
        self.clip_value = None if clip_value is None else float(clip_value)
        self.chosen = chosen_among(self.weights, clipped)
        self.value_and_grad = ms.value_and_grad(network, None, self.weights, has_aux=has_aux)

    def construct(self, *inputs):
        outputs, gradients = self.value_and_grad(*inputs)
        gradients = self.grad_reducer(gradients)
        if self.clip_value is not None:
            gradients = clip_each(gradients, self.chosen, self.clip_value)
        return followed_by(outputs, self.optimizer(gradients))


class AccumulatingTrainStep(nn.TrainOneStepCell):
    """Adds up gradients: a call is a backward(), ``update`` a step(), ``clear`` a zero_grad().

    With ``carried`` what an earlier step of the same optimizer left over is not lost: in torch
    gradients stay with the weights.
    """

    def __init__(self, network, optimizer, has_aux=False, carried=False):
        super().__init__(network, optimizer)
        earlier = vars(optimizer).get("gradient_total") if carried else None
        self.total = earlier or self.weights.clone(prefix="gradient_total", init="zeros")
        for total in self.total:  # no weight of the network: nothing trains it
            total.requires_grad = False
        vars(optimizer)["gradient_total"] = self.total  # no attribute: it is none of its state
        self.value_and_grad = ms.value_and_grad(network, None, self.weights, has_aux=has_aux)

    def construct(self, *inputs):
        outputs, gradients = self.value_and_grad(*inputs)
        added = ()
        for total, gradient in zip(self.total, self.grad_reducer(gradients)):
            added = (*added, ops.assign_add(total, gradient))
        return followed_by(outputs, added)

    def update(self):
        """Apply the gradients that were added up."""
        self.optimizer(tuple(total.value() for total in self.total))

    def clear(self):
        """Begin again at zero."""
        for total in self.total:
            ops.assign(total, ops.zeros_like(total))

    def clip(self, max_norm, norm_type=2.0, clipped=None):
        """Scale what was added up as torch.nn.utils.clip_grad_norm_ does; returns the norm."""
        gradients = tuple(total.value() for total in self.total)
        chosen = chosen_among(self.weights, clipped)
        scaled, norm = clip_by_total_norm(gradients, chosen, float(max_norm), float(norm_type))
        for total, gradient in zip(self.total, scaled):
            ops.assign(total, gradient)
        return norm

    def clip_value(self, limit, clipped=None):
        """Cut what was added up as torch.nn.utils.clip_grad_value_ does."""
        gradients = tuple(total.value() for total in self.total)
        chosen = chosen_among(self.weights, clipped)
        for total, gradient in zip(self.total, clip_each(gradients, chosen, float(limit))):
            ops.assign(total, gradient)


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
