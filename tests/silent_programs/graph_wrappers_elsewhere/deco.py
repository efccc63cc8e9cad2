import functools
import torch

SCALE = 3.0

def size_of(shape):
    n = 1
    for s in shape:
        n *= s
    return n

def keep(f):
    @functools.wraps(f)
    def wrapper(x, *args, **kwargs):
        if size_of(x.shape) == 0:
            raise ValueError("empty")
        return f(x, *args, **kwargs) * SCALE
    return wrapper
