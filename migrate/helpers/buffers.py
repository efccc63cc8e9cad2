"""In: Tensors. Out: torch.nn.Buffer as Parameters that are not trained."""

import mindspore as ms


def Buffer(data=None, *, persistent=True):
    """torch.nn.Buffer: a Parameter that is saved and not trained; a Tensor if not ``persistent``.

    It is saved with the Cell that it is set on, and construct may assign to it. Unlike in torch,
    the Cell lists it among its parameters; it has no gradient.
    """
    data = ms.ops.zeros((0,)) if data is None else data
    return ms.Parameter(data, requires_grad=False) if persistent else data
