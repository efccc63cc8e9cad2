"""In: Cells. Out: torch.nn.Module's view of their parameters, buffers and children."""

from collections import namedtuple

import mindspore as ms
from mindspore import nn, ops


def register_buffer(cell, name, tensor, persistent=True):
    """torch.nn.Module.register_buffer, in a form that graph mode may also assign.

    A buffer that is saved becomes a Parameter that is not trained, so it goes into checkpoints
    and ``self.name = value`` works in construct; the others stay MindSpore's own buffers.
    """
    if tensor is None:
        setattr(cell, name, None)
        return
    if name in cell.__dict__:  # None, until there is a tensor
        delattr(cell, name)
    if not persistent:
        cell.register_buffer(name, tensor, persistent=False)
        return
    old = cell.__dict__.get("registered_buffers", ())
    object.__setattr__(cell, "registered_buffers", (*old, name))
    cell.insert_param_to_cell(name, ms.Parameter(tensor, name=name, requires_grad=False))


def set_buffer(cell, name, tensor):
    """Puts another tensor in the place of a buffer that is not saved, as ``cell.name = tensor``."""
    buffers = cell.__dict__.get("_buffers", {})
    if name in buffers and tensor is not None:
        buffers[name] = tensor
    else:
        setattr(cell, name, tensor)


def asked_for(kind, own):
    """A class, or those in a tuple, with MindSpore's own in the place of the helpers in ``own``.

    A helper derives from that, so objects of both are instances of it.
    """
    if isinstance(kind, tuple):
        return tuple(asked_for(one, own) for one in kind)
    return own.get(kind, kind)


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


def named_buffers(cell, prefix="", recurse=True, remove_duplicate=True):
    """torch.nn.Module.named_buffers: moving averages and registered buffers, torch's names."""
    for name, tensor, again in own_tensors(cell, True, prefix, recurse):
        if not (again and remove_duplicate):
            yield name, tensor


def buffers(cell, recurse=True):
    """torch.nn.Module.buffers."""
    for _, tensor in named_buffers(cell, recurse=recurse):
        yield tensor


def state_values(cell):
    """``state_dict().values()`` of torch.nn.Module: of each Cell weights, then buffers."""
    return [
        tensor
        for _, one in cell.cells_and_names()
        for buffers in (False, True)
        for name, tensor in one._params.items()
        if tensor is not None and is_buffer(one, name) == buffers
    ]


def torch_names(cell):
    """torch's names of what the state_dict of a Cell holds, by MindSpore's, in torch's order."""
    found = {}
    for path, one in named_modules(cell, remove_duplicate=False):
        for buffers in (False, True):
            for name in (n for n in one._params if is_buffer(one, n) == buffers):
                start = path + "." if path else ""
                found[start + name] = start + torch_name(one, name)
    return found


def state_dict(cell):
    """torch.nn.Module.state_dict under torch's names: weight and running_mean, not gamma."""
    state, names = cell.state_dict(), torch_names(cell)
    named = {new: state.pop(old) for old, new in names.items() if old in state}
    return type(state)({**named, **state})


class IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What torch.nn.Module.load_state_dict gives back: names that lack a value or a place."""

    def __repr__(self):
        if not any(self):
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self[0]}, unexpected_keys={self[1]})"


def load_state_dict(cell, state_dict, strict=True):
    """torch.nn.Module.load_state_dict of Tensors under torch's names or MindSpore's.

    The numbers go into the weights' own memory: MindSpore's own way, and ``set_data``, give a
    weight other memory, and an optimizer that has made a step goes on with the old one. ``cell``
    may be ``super()``. Where classes or hooks have a say, MindSpore's own way comes first.
    """
    load, cell = cell.load_state_dict, getattr(cell, "__self__", cell)
    overridden = getattr(load, "__func__", load) is not nn.Cell.load_state_dict
    hooks = ("_load_state_dict_pre_hooks", "_load_state_dict_post_hooks")
    hooked = any(
        any(getattr(one, h, None) for h in hooks)
        or type(one)._load_from_state_dict is not nn.Cell._load_from_state_dict
        for _, one in cell.cells_and_names()
    )
    names, kept = torch_names(cell), cell.state_dict()
    own = {new: old for old, new in names.items()}
    given = {own.get(key, key): value for key, value in state_dict.items()}
    if hooked or overridden:
        held = [(weight, ops.stop_gradient(weight)) for weight in kept.values()]
        result = load(state_dict if overridden else given, strict)
        for weight, memory in held:
            loaded = weight.copy()
            weight.assign_value(memory)
            weight.copy_(loaded)
        return result
    missing = [names.get(key, key) for key in kept if key not in given]
    unexpected = [names.get(key, key) for key in given if key not in kept]
    fitting = {key: kept[key] for key in given if key in kept}
    odd = [names.get(k, k) for k, tensor in fitting.items() if tensor.shape != given[k].shape]
    if odd or (strict and (missing or unexpected)):
        raise RuntimeError(
            f"Error(s) in loading state_dict for {type(cell).__name__}: missing {missing}, "
            f"unexpected {unexpected}, of another shape {odd}"
        )
    for key, tensor in fitting.items():
        tensor.copy_(given[key].astype(tensor.dtype))
    return IncompatibleKeys(missing, unexpected)


def get_parameter(cell, target):
    """torch.nn.Module.get_parameter: by torch's dotted name. Raises AttributeError."""
    found = dict(named_parameters(cell, remove_duplicate=False))
    if target not in found:
        raise AttributeError(f"{type(cell).__name__} has no parameter {target!r}")
    return found[target]


def get_buffer(cell, target):
    """torch.nn.Module.get_buffer: by torch's dotted name. Raises AttributeError."""
    found = dict(named_buffers(cell, remove_duplicate=False))
    if target not in found:
        raise AttributeError(f"{type(cell).__name__} has no buffer {target!r}")
    return found[target]


def named_modules(cell, prefix="", remove_duplicate=True):
    """torch.nn.Module.named_modules with shared Cells as often as they occur."""
    if remove_duplicate:
        yield from cell.cells_and_names(name_prefix=prefix)
        return
    yield prefix, cell
    for name, child in cell._cells.items():
        if child is not None:
            inner = ".".join([prefix] * bool(prefix) + [name])
            yield from named_modules(child, inner, remove_duplicate=False)


def requires_grad_(target, requires_grad=True):
    """requires_grad_ of a Module (its parameters) or of a Parameter; returns it.

    A Tensor comes back as it is: mindspore.grad chooses what is differentiated.
    """
    if isinstance(target, nn.Cell):
        for parameter in parameters(target):
            parameter.requires_grad = requires_grad
    elif isinstance(target, ms.Parameter):
        target.requires_grad = requires_grad
    return target


def set_submodule(cell, target, module):
    """torch.nn.Module.set_submodule: replaces the Cell at a dotted path."""
    path, _, name = target.rpartition(".")
    parent = cell.get_sub_cell(path) if path else cell
    module.update_parameters_name(f"{target}.")
    parent._cells[name] = module
    if isinstance(parent, nn.SequentialCell):
        parent.cell_list = list(parent._cells.values())
