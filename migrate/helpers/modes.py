"""In: Cells, some with a set_train of their own. Out: training or evaluation mode, as in torch.

MindSpore's set_train goes through all Cells below by itself and asks none of them.
"""

from mindspore import nn

from migrate.helpers.keeping import compile_anew


def switch(cell, mode=True):
    """torch.nn.Module.train and eval: a class with its own set_train decides for what is below."""
    if type(cell).set_train is nn.Cell.set_train:
        return switch_below(cell, mode)
    cell.set_train(mode)
    return cell


def switch_below(cell, mode=True):
    """torch.nn.Module.train itself: the mode of the Cell, then each Cell in it is asked."""
    nn.Cell.set_train(cell, mode)
    for child in cell.cells():
        switch(child, mode)
    return cell


def modes_are_set(cell):
    """Make graph mode compile again where Cells inside ``cell`` have modes it has not seen yet.

    A graph keeps the modes that they had when it was compiled: one graph for each mode of ``cell``.
    """
    mode, new = cell.training, False
    for _, part in cell.cells_and_names():
        seen = vars(part).setdefault("modes_seen", {})
        new, seen[mode] = new or seen.get(mode) != part.training, part.training
    if new:
        compile_anew()
