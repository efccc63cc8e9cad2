"""In: code. Out: the same, with gradients recorded or not, in PyNative."""

from mindspore.graph.api import _pynative_executor


class grad_mode:
    """A context or decorator under which gradients are recorded, or are not, as torch does it.

    What a block hands on keeps the gradient that it had. Graph mode refuses such a block.
    """

    def __init__(self, mode):
        self.mode, self.before = bool(mode), []

    def __enter__(self):
        self.before.append(_pynative_executor.enable_grad())
        _pynative_executor.set_enable_grad(self.mode)

    def __exit__(self, *error):
        _pynative_executor.set_enable_grad(self.before.pop())
        return False

    def __call__(self, function):
        def inner(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        # not functools.wraps: graph mode would compile what __wrapped__ names
        inner.__name__, inner.__doc__ = function.__name__, function.__doc__
        return inner


def no_grad():
    """torch.no_grad."""
    return grad_mode(False)


def is_grad_enabled():
    """torch.is_grad_enabled, of what the contexts of this file say."""
    return _pynative_executor.enable_grad()


def enable_grad():
    """torch.enable_grad."""
    return grad_mode(True)


def inference_mode(mode=True):
    """torch.inference_mode."""
    return grad_mode(not mode)


class set_grad_enabled(grad_mode):
    """torch.set_grad_enabled, which counts from the call on, also where it is no context."""

    def __init__(self, mode):
        super().__init__(mode)
        self.old = _pynative_executor.enable_grad()
        _pynative_executor.set_enable_grad(self.mode)

    def __exit__(self, *error):
        super().__exit__(*error)
        _pynative_executor.set_enable_grad(self.old)
        return False
