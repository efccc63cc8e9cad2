"""In: a Cell with a weight. Out: torch.nn.utils.spectral_norm of it, and without it again."""

import mindspore as ms
from mindspore import nn, ops

from migrate.helpers.containers import refuse_in_graph
from migrate.helpers.parametrization import register_parametrization
from migrate.helpers.weight_norm import derived, has_extra_axis, own_parameter


def unit_vector(x, eps):
    """x / |x|, with |x| at least eps."""
    return x / ops.clamp(ops.sqrt(ops.square(x).sum()), eps)


def rows_of(weight, dim):
    """The weight as a matrix with a row for each index of the axis ``dim``."""
    order = (dim, *[d for d in range(weight.ndim) if d != dim])
    moved = weight if dim == 0 else weight.permute(*order)
    return moved.reshape(moved.shape[0], -1)


def power_steps(matrix, u, steps, eps):
    """The singular vectors u and v after some steps of the power iteration; no gradient."""
    matrix, v = ops.stop_gradient(matrix), None
    for _ in range(steps):
        v = unit_vector(ops.matmul(matrix.swapaxes(0, 1), u), eps)
        u = unit_vector(ops.matmul(matrix, v), eps)
    return ops.stop_gradient(u), ops.stop_gradient(v)


def spectral_dim(module):
    """The axis of the outputs: transposed convolutions have it second."""
    kinds = (nn.Conv1dTranspose, nn.Conv2dTranspose, nn.Conv3dTranspose)
    return 1 if isinstance(module, kinds) else 0


class SpectralNormed:
    """The Cells that spectral_norm changes: the weight is weight_orig / its largest singular value.

    In training mode each call takes steps of the power iteration first, as in torch. Read from
    outside, the weight is weight_orig until the Cell was first called in PyNative mode (so that
    initializing it has an effect, as in torch) and then what belongs to the values of now.
    """

    def __call__(self, *args, **kwargs):
        self.__dict__["spectral_norm_used"] = True
        if self.spectral_norm_outside and self.training:
            self.iterated()
        return super().__call__(*args, **kwargs)

    def iterated(self):
        """Takes the steps of one call and keeps the vectors."""
        matrix = rows_of(self.weight_orig, self.spectral_norm_dim)
        steps, eps = self.spectral_norm_steps
        u, v = power_steps(matrix, self.weight_u, steps, eps)
        ops.assign(self.weight_u, u)
        ops.assign(self.weight_v, v)
        return u, v

    def divided(self, u, v):
        matrix = rows_of(self.weight_orig, self.spectral_norm_dim)
        weight = self.weight_orig / (u * ops.matmul(matrix, v)).sum()
        return weight.expand_dims(2) if self.spectral_norm_extra_axis else weight

    def computed_weight(self):
        if self.training:
            u, v = self.iterated()
            return self.divided(u, v)
        return self.divided(self.weight_u, self.weight_v)

    def known_weight(self):
        """The weight for code that reads it, without a step."""
        refuse_in_graph("a weight that is computed", "remove the norm first")
        if self.__dict__.get("spectral_norm_used"):
            return self.divided(self.weight_u, self.weight_v)
        if self.spectral_norm_extra_axis:
            raise ValueError("spectral_norm: initialize the weight in front of spectral_norm")
        return self.weight_orig

    @property
    def weight(self):
        return self.known_weight()


class SpectralNormedTable(SpectralNormed):
    """The same for nn.Embedding, whose weight has a name of its own."""

    @property
    def embedding_table(self):
        return self.known_weight()

    def construct(self, ids):
        return ops.gather(self.computed_weight(), ids, 0)


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """torch.nn.utils.spectral_norm: the weight is divided by its largest singular value; same Cell.

    Raises ValueError for another ``name`` than "weight", and for a Cell without that Parameter.
    """
    is_table = isinstance(module, nn.Embedding)
    held = "embedding_table" if is_table else name
    old = module._params.get(held)
    if name != "weight" or old is None:
        raise ValueError(f"spectral_norm: {type(module).__name__} has no Parameter {name!r}")
    if is_table and type(module).construct is not nn.Embedding.construct:
        raise ValueError("spectral_norm: Embedding with padding_idx or max_norm is not reproduced")
    if n_power_iterations <= 0:
        raise ValueError(f"n_power_iterations has to be positive, got {n_power_iterations}")
    module.spectral_norm_dim = spectral_dim(module) if dim is None else dim
    module.spectral_norm_steps = (n_power_iterations, eps)
    module.spectral_norm_extra_axis = has_extra_axis(module)
    weight = old.value().squeeze(2) if module.spectral_norm_extra_axis else old.value()
    delattr(module, held)
    own_parameter(module, "weight_orig", old, weight)
    matrix = rows_of(weight, module.spectral_norm_dim)
    for one, size in zip(("weight_u", "weight_v"), matrix.shape):
        own_parameter(module, one, old, unit_vector(ops.randn(size, dtype=weight.dtype), eps))
        module._params[one].requires_grad = False
    own = type(module).construct
    derived(module, SpectralNormedTable if is_table else SpectralNormed)
    module.spectral_norm_outside = type(module).construct is own
    return module


def remove_spectral_norm(module, name="weight"):
    """torch.nn.utils.remove_spectral_norm: the weight becomes a Parameter again; same Cell."""
    if not isinstance(module, SpectralNormed):
        raise ValueError(f"spectral_norm of {name!r} not found in {type(module).__name__}")
    weight, old = module.divided(module.weight_u, module.weight_v), module.weight_orig
    is_table = isinstance(module, SpectralNormedTable)
    module.__class__ = type(module).__bases__[-1]
    for one in ("weight_orig", "weight_u", "weight_v"):
        delattr(module, one)
    own_parameter(module, "embedding_table" if is_table else name, old, weight)
    return module


class SpectralNorm(nn.Cell):
    """What computes the weight of torch.nn.utils.parametrizations.spectral_norm."""

    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        self.dim, self.steps, self.eps = dim, n_power_iterations, eps
        if weight.ndim > 1:
            matrix = rows_of(weight, dim)
            v = unit_vector(ops.randn(matrix.shape[1], dtype=weight.dtype), eps)
            v, u = power_steps(matrix.swapaxes(0, 1), v, 15, eps)
            self._u = ms.Parameter(u, name="_u", requires_grad=False)
            self._v = ms.Parameter(v, name="_v", requires_grad=False)

    def construct(self, weight):
        if weight.ndim == 1:
            return unit_vector(weight, self.eps)
        matrix = rows_of(weight, self.dim)
        u, v = self._u, self._v
        if self.training:
            # this function of torch computes u first, the other one v
            v, u = power_steps(matrix.swapaxes(0, 1), v, self.steps, self.eps)
            ops.assign(self._u, u)
            ops.assign(self._v, v)
        return weight / (u * ops.matmul(matrix, v)).sum()


def parametrized_spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """torch.nn.utils.parametrizations.spectral_norm: the weight is original / its largest
    singular value. Raises ValueError for a Cell without that Parameter."""
    old = module._params.get(name)
    if old is None:
        raise ValueError(f"Module {type(module).__name__} has no parameter {name!r}")
    weight = old.value().squeeze(2) if has_extra_axis(module) else old.value()
    dim = spectral_dim(module) if dim is None else dim
    return register_parametrization(
        module, name, SpectralNorm(weight, n_power_iterations, dim, eps)
    )
