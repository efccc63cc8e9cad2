"""Errors of torch that nothing raises here, for the handlers that name them."""


class OutOfMemoryError(RuntimeError):
    """Stands for torch.OutOfMemoryError; MindSpore raises a plain RuntimeError instead."""
