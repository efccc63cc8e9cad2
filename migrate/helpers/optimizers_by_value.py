"""In: parameters and all of torch's arguments. Out: MindSpore's optimizers with those settings.

They stand where an optimizer is passed on as a value, chosen by its name, or gets its settings by
``**``. What makes torch's steps faster (foreach, capturable, fused) changes no number; parameters
that require no gradient are passed over, as in torch.
"""

from mindspore.experimental import optim

from migrate.helpers.parameter_groups import trainable


def undifferentiable(differentiable):
    """Refuses a step that is to be differentiated. Raises NotImplementedError."""
    if differentiable:
        raise NotImplementedError("a step that can be differentiated")


class SGD(optim.SGD):
    """Reproduces torch.optim.SGD as a value, with all of torch's arguments."""

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        *,
        maximize=False,
        foreach=None,
        differentiable=False,
        fused=None,
    ):
        undifferentiable(differentiable)
        super().__init__(
            trainable(params),
            lr,
            momentum,
            dampening,
            float(weight_decay),
            nesterov,
            maximize=maximize,
        )


class RMSprop(optim.RMSprop):
    """Reproduces torch.optim.RMSprop as a value, with all of torch's arguments."""

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0,
        momentum=0,
        centered=False,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        undifferentiable(differentiable)
        super().__init__(
            trainable(params),
            lr,
            alpha,
            eps,
            float(weight_decay),
            float(momentum),
            centered,
            maximize,
        )


class Adagrad(optim.Adagrad):
    """Reproduces torch.optim.Adagrad as a value, with all of torch's arguments."""

    def __init__(
        self,
        params,
        lr=1e-2,
        lr_decay=0,
        weight_decay=0,
        initial_accumulator_value=0,
        eps=1e-10,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        fused=None,
    ):
        undifferentiable(differentiable)
        super().__init__(
            trainable(params),
            lr,
            float(lr_decay),
            float(weight_decay),
            float(initial_accumulator_value),
            eps,
            maximize=maximize,
        )


class Adadelta(optim.Adadelta):
    """Reproduces torch.optim.Adadelta as a value, with all of torch's arguments."""

    def __init__(
        self,
        params,
        lr=1.0,
        rho=0.9,
        eps=1e-6,
        weight_decay=0,
        foreach=None,
        *,
        capturable=False,
        maximize=False,
        differentiable=False,
    ):
        undifferentiable(differentiable)
        super().__init__(trainable(params), lr, rho, eps, float(weight_decay), maximize=maximize)


class Adamax(optim.Adamax):
    """Reproduces torch.optim.Adamax as a value, with all of torch's arguments."""

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        undifferentiable(differentiable)
        super().__init__(trainable(params), lr, betas, eps, float(weight_decay), maximize=maximize)
