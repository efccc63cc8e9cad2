"""In: two shapes. Out: the changes of shape that turn a torch tensor into its partner, best first.

They are chains of methods as the mapping table writes them: ``t()``, ``reshape(64, 3, 1, 7)``.
"""

from __future__ import annotations

import math

from migrate.parity.hand.inventory import Shape, Weight


def layouts(torch: Weight, mindspore: Weight, native: bool) -> tuple[str, ...]:
    """Empty when the shapes do not fit.

    ``native``: both belong to layers of the frameworks themselves, which agree on the order of
    axes; else a square matrix may lie either way.
    """
    one, other = torch.shape, mindspore.shape
    if one == other:
        square = len(one) == 2 and one[0] == one[1] and one[0] > 1
        return ("", "t()") if square and not native else ("",)
    if math.prod(one) != math.prod(other):
        return ()
    if _core(one) == _core(other):
        return (_reshape(other),)
    if len(_core(one)) == 2 and _core(one)[::-1] == _core(other):
        return (f"squeeze().t().{_reshape(other)}" if len(one) != 2 or len(other) != 2 else "t()",)
    if one[:1] == other[:1] and len(one) > 2 and len(other) == 2:
        return (_reshape(other),)
    if native:
        return ()
    return _permuted(one, other)


def _core(shape: Shape) -> Shape:
    return tuple(size for size in shape if size != 1)


def _reshape(shape: Shape) -> str:
    return f"reshape({', '.join(str(size) for size in shape)})"


def _permuted(one: Shape, other: Shape) -> tuple[str, ...]:
    """Axes in another order, where only one order gives that shape (kernels kept HWIO)."""
    if len(one) != len(other) or len(set(one)) != len(one) or sorted(one) != sorted(other):
        return ()
    return (f"permute({', '.join(str(one.index(size)) for size in other)})",)
