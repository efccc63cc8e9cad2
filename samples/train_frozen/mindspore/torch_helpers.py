# torch2ms helpers 0.1.0: written by torch2mindspore, which knows this file by this line.
"""In: arguments as torch takes them. Out: what torch gives, from MindSpore."""

import mindspore as ms
from mindspore import Parameter, nn, ops
from mindspore.graph.api import _pynative_executor


def reduction_of(size_average, reduce, reduction):
    """The reduction that torch's two old arguments stand for, where one of them is given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is not None and not reduce:
        return "none"
    return "mean" if size_average is None or size_average else "sum"


def keep_buffer(cell, name, value):
    """Makes ``value`` a buffer of the cell, as torch does with weights; None stays None."""
    if name in cell.__dict__:
        delattr(cell, name)
    if value is None:
        setattr(cell, name, None)
    else:
        cell.register_buffer(name, value)


def as_labels(target):
    """Class labels as int32, which the kernels want; probabilities stay."""
    return target.astype(ms.int32) if target.dtype in (ms.int64, ms.uint8) else target


class CrossEntropyLoss(nn.CrossEntropyLoss):
    """Reproduces torch.nn.CrossEntropyLoss; labels may be int64, or class probabilities."""

    def __init__(
        self,
        weight=None,
        size_average=None,
        ignore_index=-100,
        reduce=None,
        reduction="mean",
        label_smoothing=0.0,
    ):
        super().__init__(
            None, ignore_index, reduction_of(size_average, reduce, reduction), label_smoothing
        )
        keep_buffer(self, "weight", weight)

    def construct(self, logits, labels):
        return ops.cross_entropy(
            logits,
            as_labels(labels),
            self.weight,
            self.ignore_index,
            self.reduction,
            self.label_smoothing,
        )


def switch_below(cell, mode=True):
    """torch.nn.Module.train itself: the mode of the Cell, then each Cell in it is asked."""
    nn.Cell.set_train(cell, mode)
    for child in cell.cells():
        switch(child, mode)
    return cell


def switch(cell, mode=True):
    """torch.nn.Module.train and eval: a class with its own set_train decides for what is below."""
    if type(cell).set_train is nn.Cell.set_train:
        return switch_below(cell, mode)
    cell.set_train(mode)
    return cell


def compile_anew():
    """Make graph mode compile again: what has just changed is a constant of its graphs.

    Not while PyNative computes a gradient, of which nothing would be left.
    """
    if not _pynative_executor.grad_flag():
        ms.ms_memory_recycle()


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


def trainable(params):
    """Of parameters, or groups of them, those that require a gradient: what torch would train."""
    if hasattr(params, "with_frozen"):
        return params
    if isinstance(params, Parameter):
        return [params] if params.requires_grad else []
    if isinstance(params, dict):
        return {**params, "params": trainable(params["params"])}
    kept = [trainable(one) if isinstance(one, dict) else one for one in params]
    return [one for one in kept if isinstance(one, dict) or one.requires_grad]
