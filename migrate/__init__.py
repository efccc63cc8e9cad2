"""torch2mindspore: moves PyTorch code to MindSpore and proves the move, Cell by Cell."""

__version__ = "0.1.0"
