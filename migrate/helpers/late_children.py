"""In: Cells. Out: children that come and go after a chain of Cells was built, as in torch."""

import mindspore as ms
from mindspore import nn

from migrate.helpers.containers import Sequential, prefix_below, relink
from migrate.helpers.layer_parts import give_part


def set_child(owner, name, value):
    """``owner.name = value`` as in torch, for any owner: a child that a SequentialCell gets under
    a name joins its chain, or takes the place of the one that had the name; a Parameter takes the
    place of the Cell's own, whatever that is called there."""
    cells = isinstance(owner, nn.Cell) and isinstance(value, nn.Cell)
    below = prefix_below(owner) if cells else ""
    if isinstance(owner, nn.Cell) and isinstance(value, ms.Parameter):
        give_part(owner, name, value)
    else:
        setattr(owner, name, value)
    if below:
        value.update_parameters_name(below)
    if cells and isinstance(owner, nn.SequentialCell):
        relink(owner)


def delete_child(owner, name):
    """``del owner.name`` as in torch, for any owner: a SequentialCell loses that child."""
    chain = isinstance(owner, nn.SequentialCell) and not isinstance(owner, Sequential)
    if chain and name in owner._cells:
        del owner._is_dynamic_name[list(owner._cells).index(name)]
    delattr(owner, name)
    if chain:
        owner.cell_list = list(owner._cells.values())
