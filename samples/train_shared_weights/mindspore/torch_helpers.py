# torch2ms helpers 0.1.0: written by torch2mindspore, which knows this file by this line.
"""In: arguments as torch takes them. Out: what torch gives, from MindSpore."""

import mindspore as ms
from mindspore import nn, ops


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


def laid_out(sequences, batch_first):
    """Swap the first two axes unless the batch comes first."""
    return sequences if batch_first else sequences.swapaxes(0, 1)


class LSTM(nn.LSTM):
    """Reproduces torch.nn.LSTM for batched and unbatched sequences: (output, (h_n, c_n)).

    ``proj_size`` is refused with a ValueError.
    """

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        if proj_size != 0:
            raise ValueError("LSTM: proj_size is not reproduced; add a Dense layer after it")
        super().__init__(
            input_size,
            hidden_size,
            num_layers=num_layers,
            has_bias=bias,
            batch_first=batch_first,
            dropout=float(dropout),
            bidirectional=bidirectional,
            dtype=dtype or ms.float32,
        )
        self.input_size, self.bias, self.proj_size = input_size, bias, proj_size

    def flatten_parameters(self):
        """Changes nothing: there is no packed copy of the weights."""

    def construct(self, x, hx=None):
        state = None if hx is None else (hx[0], hx[1])
        if isinstance(x, tuple):
            out, state = super().construct(laid_out(x[0], self.batch_first), state, x[1])
            return (laid_out(out, self.batch_first), x[1]), state
        if x.ndim == 3:
            return super().construct(x, state)
        if state is not None:
            state = (state[0].expand_dims(1), state[1].expand_dims(1))
        batch = 0 if self.batch_first else 1
        out, (hidden, cell) = super().construct(x.expand_dims(batch), state)
        return out.squeeze(batch), (hidden.squeeze(1), cell.squeeze(1))


def chosen_among(weights, clipped):
    """For each weight whether it is one of ``clipped``; all of them where that is None."""
    if clipped is None:
        return tuple(True for _ in weights)
    chosen = {id(parameter) for parameter in clipped}
    return tuple(id(parameter) in chosen for parameter in weights)


def total_norm(gradients, norm_type):
    """The norm of all gradients as one vector; the largest absolute value for infinity."""
    if norm_type == float("inf"):
        return ops.stack([gradient.abs().max() for gradient in gradients]).max()
    if norm_type == 2:
        return ops.stack([gradient.square().sum() for gradient in gradients]).sum().sqrt()
    powers = [gradient.abs().pow(norm_type).sum() for gradient in gradients]
    return ops.stack(powers).sum().pow(1.0 / norm_type)


def clip_by_total_norm(gradients, chosen, max_norm, norm_type):
    """(gradients, total norm): the chosen ones scaled as torch.nn.utils.clip_grad_norm_ does."""
    norm = total_norm([g for g, c in zip(gradients, chosen) if c], norm_type)
    scale = ops.minimum(max_norm / (norm + 1e-6), ops.ones_like(norm))
    return tuple([g * scale if c else g for g, c in zip(gradients, chosen)]), norm


def followed_by(outputs, done):
    """The outputs of a network (a tensor or a tuple), tied to an update that must happen."""
    if isinstance(outputs, tuple):
        return (ops.depend(outputs[0], done), *outputs[1:])
    return ops.depend(outputs, done)


class ClippedTrainStep(nn.TrainOneStepCell):
    """One training step with torch.nn.utils.clip_grad_norm_ between gradient and update.

    Nothing is clipped where ``max_norm`` is None. With ``returns_norm`` a call gives the norm
    before clipping as its last result.
    """

    def __init__(
        self,
        network,
        optimizer,
        max_norm,
        norm_type=2.0,
        clipped=None,
        has_aux=False,
        returns_norm=False,
    ):
        super().__init__(network, optimizer)
        self.max_norm = None if max_norm is None else float(max_norm)
        self.norm_type = float(norm_type)
        self.chosen = chosen_among(self.weights, clipped)
        self.has_aux, self.returns_norm = has_aux, returns_norm
        self.value_and_grad = ms.value_and_grad(network, None, self.weights, has_aux=has_aux)

    def construct(self, *inputs):
        outputs, gradients = self.value_and_grad(*inputs)
        gradients = self.grad_reducer(gradients)
        norm = None
        if self.max_norm is not None:
            gradients, norm = clip_by_total_norm(
                gradients, self.chosen, self.max_norm, self.norm_type
            )
        outputs = followed_by(outputs, self.optimizer(gradients))
        if not self.returns_norm:
            return outputs
        return (*outputs, norm) if self.has_aux else (outputs, norm)
