"""In: a network that returns its loss, an optimizer, a scale. Out: train steps that scale losses.

As torch.amp.GradScaler does it: gradients of the scaled loss are divided again before the update.
"""

import mindspore as ms
from mindspore import Parameter, Tensor, nn, ops

from migrate.helpers.training import (
    AccumulatingTrainStep,
    chosen_among,
    clip_by_total_norm,
    followed_by,
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


class ScaledAccumulatingTrainStep(AccumulatingTrainStep):
    """Adds up gradients of the scaled loss: a call is ``scaler.scale(loss).backward()``.

    ``unscale`` is unscale_(optimizer), ``update`` step(optimizer), ``adjust`` the scaler's
    update(). An update is left out when a gradient is not finite.
    """

    def __init__(self, network, optimizer, scaler, carried=False):
        super().__init__(network, optimizer, carried=carried)
        self.scaler, self.finite = scaler, None
        self.value_and_grad = ms.value_and_grad(
            ScaledLoss(network, scaler), None, self.weights, has_aux=True
        )

    def construct(self, *inputs):
        (_, outputs), gradients = self.value_and_grad(*inputs)
        added = ()
        for total, gradient in zip(self.total, self.grad_reducer(gradients)):
            added = (*added, ops.assign_add(total, gradient))
        return followed_by(outputs, added)

    def unscale(self):
        """Divide what was added up by the scale, and see whether it is finite."""
        inverse = 1.0 / self.scaler.current
        for total in self.total:
            ops.assign(total, total * inverse)
        self.finite = all(ops.isfinite(total).all().item() for total in self.total)

    def update(self):
        """Apply the gradients that were added up, where they are finite."""
        if self.finite is None:
            self.unscale()
        if self.finite or not self.scaler.enabled:
            super().update()

    def adjust(self):
        """Another scale for the next steps; after an update, as in torch."""
        if self.finite is None:
            raise RuntimeError("the scale is adjusted without an update in front of it")
        self.scaler.adjust(Tensor(bool(self.finite), ms.bool_))
        self.finite = None
