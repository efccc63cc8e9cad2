"""In: Cells, some with a set_train of their own. Out: training or evaluation mode, as in torch.

MindSpore's set_train goes through all Cells below by itself and asks none of them.
"""

from mindspore import nn


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
