# torch2ms helpers 0.1.0: written by torch2mindspore, which knows this file by this line.
"""In: arguments as torch takes them. Out: what torch gives, from MindSpore."""

from mindspore import nn


def is_buffer(cell, name):
    """Whether a Parameter of a Cell stands for one of torch's buffers."""
    statistics = ("moving_mean", "moving_variance", "num_batches_tracked")
    return name in statistics or name in cell.__dict__.get("registered_buffers", ())


def torch_name(cell, name):
    """torch's name for a parameter or buffer of a normalisation or embedding Cell."""
    names = {"moving_mean": "running_mean", "moving_variance": "running_var"}
    if isinstance(cell, nn.Embedding):
        names["embedding_table"] = "weight"
    is_norm = isinstance(cell, (nn.LayerNorm, nn.GroupNorm)) or "moving_mean" in cell._params
    if is_norm or type(cell).__name__.startswith(("BatchNorm", "InstanceNorm")):
        names["gamma"], names["beta"] = "weight", "bias"
    return names.get(name, name)


def own_tensors(cell, wanted, prefix="", recurse=True):
    """(torch's name, Parameter or Tensor, already seen) of a Cell and, if asked, of those in it.

    ``wanted``: True for buffers, False for parameters.
    """
    found, seen = [], set()
    cells = cell.cells_and_names(name_prefix=prefix) if recurse else [(prefix, cell)]
    for path, one in cells:
        tensors = [(n, p) for n, p in one._params.items() if is_buffer(one, n) == wanted]
        if wanted:
            tensors += one._buffers.items()
        for name, tensor in tensors:
            if tensor is not None:
                full = ".".join([path] * bool(path) + [torch_name(one, name)])
                found.append((full, tensor, id(tensor) in seen))
                seen.add(id(tensor))
    return found


def named_parameters(cell, prefix="", recurse=True, remove_duplicate=True):
    """torch.nn.Module.named_parameters: torch's names (weight, not gamma), without buffers."""
    for name, parameter, again in own_tensors(cell, False, prefix, recurse):
        if not (again and remove_duplicate):
            yield name, parameter


def parameters(cell, recurse=True):
    """torch.nn.Module.parameters: the Parameters of a Cell without moving averages and buffers."""
    for _, parameter in named_parameters(cell, recurse=recurse):
        yield parameter
