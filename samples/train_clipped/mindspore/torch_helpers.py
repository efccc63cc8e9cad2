# torch2ms helpers 0.1.0: written by torch2mindspore, which knows this file by this line.
"""In: arguments as torch takes them. Out: what torch gives, from MindSpore."""

import mindspore as ms
from mindspore import Tensor, nn, ops
from mindspore.common.initializer import Normal, XavierNormal, XavierUniform, initializer


class Linear(nn.Dense):
    """Reproduces torch.nn.Linear exactly."""

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__(in_features, out_features, has_bias=bool(bias), dtype=dtype or ms.float32)
        self.in_features, self.out_features = in_features, out_features


def additive_mask(mask, dtype):
    """A mask to add to scores: True becomes minus infinity; numbers stay."""
    if mask.dtype == ms.bool_:
        return ops.zeros(mask.shape, dtype).masked_fill(mask, float("-inf"))
    return mask.astype(dtype)


def softmax_over(input, dim, dtype=None):
    """torch.softmax along ``dim``, without MindSpore's kernel where that has one element.

    MindSpore 2.10 in PyNative: when the first softmax that a process differentiates goes over an
    axis of one element, all later gradients of softmax for that rank and axis are wrong.
    """
    x = input if dtype is None else input.astype(dtype)
    return ops.exp(x - x) if x.ndim == 0 or x.shape[dim] == 1 else ops.softmax(x, dim)


class MultiheadAttention(nn.Cell):
    """Reproduces torch.nn.MultiheadAttention: (output, weights), weights None on request.

    Inputs are (L, N, E), (N, L, E) with ``batch_first``, or (L, E). Masks are bool (True is
    left out) or numbers to add: ``key_padding_mask`` (N, S), ``attn_mask`` (L, S) or
    (N * heads, L, S).
    """

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ):
        super().__init__()
        dtype = dtype or ms.float32
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.head_dim, self.batch_first = embed_dim // num_heads, batch_first
        self.add_zero_attn = add_zero_attn
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        if self._qkv_same_embed_dim:
            self.in_proj_weight = self._weight((3 * embed_dim, embed_dim), dtype)
        else:
            self.q_proj_weight = self._weight((embed_dim, embed_dim), dtype)
            self.k_proj_weight = self._weight((embed_dim, self.kdim), dtype)
            self.v_proj_weight = self._weight((embed_dim, self.vdim), dtype)
        self.in_proj_bias, self.bias_k, self.bias_v = None, None, None
        if bias:
            self.in_proj_bias = ms.Parameter(ops.zeros(3 * embed_dim, dtype))
        self.out_proj = Linear(embed_dim, embed_dim, bias, dtype=dtype)
        if bias:
            self.out_proj.bias.set_data(ops.zeros(embed_dim, dtype))
        if add_bias_kv:
            self.bias_k = ms.Parameter(initializer(XavierNormal(), (1, 1, embed_dim), dtype))
            self.bias_v = ms.Parameter(initializer(XavierNormal(), (1, 1, embed_dim), dtype))

    def _reset_parameters(self):
        """Draw the weights anew, but that of the last projection; as in torch biases become 0."""
        for name, weight in self.parameters_and_names(expand=False):
            kind = XavierNormal() if name in ("bias_k", "bias_v") else XavierUniform()
            kind = "zeros" if name == "in_proj_bias" else kind
            weight.set_data(initializer(kind, weight.shape, weight.dtype))
        if self.in_proj_bias is not None:
            last = self.out_proj.bias
            last.set_data(ops.zeros_like(last))

    def _weight(self, shape, dtype):
        return ms.Parameter(initializer(XavierUniform(), shape, dtype))

    def _projected(self, query, key, value):
        """Query, key and value (N, L, E), each by its own weight and bias."""
        if self._qkv_same_embed_dim:
            weights = ops.chunk(self.in_proj_weight, 3)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        query = ops.matmul(query, weights[0].swapaxes(0, 1))
        key = ops.matmul(key, weights[1].swapaxes(0, 1))
        value = ops.matmul(value, weights[2].swapaxes(0, 1))
        if self.in_proj_bias is None:
            return query, key, value
        biases = ops.chunk(self.in_proj_bias, 3)
        return query + biases[0], key + biases[1], value + biases[2]

    def _heads(self, x):
        """(N, L, E) as (N, heads, L, head_dim)."""
        return x.reshape((*x.shape[:2], self.num_heads, self.head_dim)).swapaxes(1, 2)

    def _with_extras(self, key, value):
        """Key and value with the learned position, then the zero position, where asked for."""
        count = (key.shape[0], 1, 1)
        if self.bias_k is not None:
            key = ops.cat((key, self.bias_k.tile(count)), 1)
            value = ops.cat((value, self.bias_v.tile(count)), 1)
        if self.add_zero_attn:
            zero = ops.zeros((key.shape[0], 1, self.embed_dim), key.dtype)
            key, value = ops.cat((key, zero), 1), ops.cat((value, zero), 1)
        return key, value

    def _masked(self, scores, key_padding_mask, attn_mask):
        """Scores (N, heads, L, S) plus the masks; added positions at the end are never masked."""
        if attn_mask is not None:
            mask = additive_mask(attn_mask, scores.dtype)
            mask = ops.pad(mask, (0, scores.shape[3] - mask.shape[-1]))
            if mask.ndim == 3:
                mask = mask.reshape((-1, self.num_heads, *mask.shape[1:]))
            scores = scores + mask
        if key_padding_mask is not None:
            mask = additive_mask(key_padding_mask, scores.dtype)
            mask = mask if mask.ndim == 2 else mask.expand_dims(0)
            mask = ops.pad(mask, (0, scores.shape[3] - mask.shape[-1]))
            scores = scores + mask.expand_dims(1).expand_dims(1)
        return scores

    def construct(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        single = query.ndim == 2
        if single:
            query, key, value = query.expand_dims(0), key.expand_dims(0), value.expand_dims(0)
        elif not self.batch_first:
            query, key, value = query.swapaxes(0, 1), key.swapaxes(0, 1), value.swapaxes(0, 1)
        query, key, value = self._projected(query, key, value)
        key, value = self._with_extras(key, value)
        scores = ops.matmul(
            self._heads(query) * self.head_dim**-0.5, self._heads(key).swapaxes(2, 3)
        )
        weights = softmax_over(self._masked(scores, key_padding_mask, attn_mask), -1)
        if self.dropout > 0 and self.training:
            weights = ops.dropout(weights, p=self.dropout, training=True)
        out = ops.matmul(weights, self._heads(value)).swapaxes(1, 2)
        out = self.out_proj(out.reshape(query.shape))
        if single:
            out, weights = out.squeeze(0), weights.squeeze(0)
        elif not self.batch_first:
            out = out.swapaxes(0, 1)
        if not need_weights:
            return out, None
        return out, weights.mean(-3) if average_attn_weights else weights


class Embedding(nn.Embedding):
    """Reproduces torch.nn.Embedding: N(0, 1), and no gradient for ``padding_idx``.

    ``max_norm`` and ``scale_grad_by_freq`` are refused with a ValueError; ``sparse`` changes
    no number and is ignored.
    """

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
        _weight=None,
        _freeze=False,
        device=None,
        dtype=None,
    ):
        if max_norm is not None or scale_grad_by_freq:
            raise ValueError("Embedding: max_norm and scale_grad_by_freq are not reproduced")
        row = padding_idx
        if padding_idx is not None and padding_idx < 0:
            row = num_embeddings + padding_idx
        super().__init__(num_embeddings, embedding_dim, False, Normal(1.0), padding_idx=row)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if _weight is not None or dtype is not None:
            value = self.embedding_table if _weight is None else _weight
            value = ms.Tensor(value.asnumpy(), dtype or value.dtype)
            self.embedding_table = ms.Parameter(value, name="embedding_table")
        self.embedding_table.requires_grad = not _freeze

    @property
    def weight(self):
        """torch's name of the table, for code that is handed some layer."""
        return self.embedding_table

    def construct(self, ids):
        out = nn.Embedding.construct(self, ids)  # super() never ends in a graph for a subclass
        if self.padding_idx is None:
            return out
        padded = (ids == self.padding_idx).expand_dims(-1)
        return ops.where(padded, ops.stop_gradient(out), out)


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


def number(value):
    """A setting as a Python number: the shortest that is this float32; others stay."""
    if not isinstance(value, Tensor):
        return value
    return float(str(value.value())) if value.dtype == ms.float32 else value.item()


def numbers(values):
    """Rates as Python numbers."""
    return [number(value) for value in values]


def last_lr(scheduler):
    """Reproduces ``get_last_lr()`` of torch's schedules: a list of Python numbers."""
    kept = vars(scheduler).get("last_rates")
    return numbers(scheduler.get_last_lr()) if kept is None else list(kept)


def of_epoch(function):
    """A factor for LambdaLR or MultiplicativeLR that is given the epoch as an int, as in torch."""
    if isinstance(function, (list, tuple)):
        return [of_epoch(one) for one in function]
    return lambda epoch: function(int(epoch))


def bitwise_not(input):
    """torch.bitwise_not: logical for bool, else by bits."""
    return ops.logical_not(input) if input.dtype == ms.bool_ else ops.invert(input)


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
