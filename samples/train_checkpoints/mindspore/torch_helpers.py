# torch2ms helpers 0.1.0: written by torch2mindspore, which knows this file by this line.
"""In: arguments as torch takes them. Out: what torch gives, from MindSpore."""

import collections
import json
import math
import shutil
import tempfile
from argparse import Namespace
from collections import namedtuple

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from mindspore.experimental.optim.optimizer import Optimizer


SAVED_STRUCTURE = "structure"


def plain_entry(key, value):
    """Whether a checkpoint holds this entry as it is."""
    return (
        isinstance(key, str)
        and key != SAVED_STRUCTURE
        and isinstance(value, Tensor)
        and value.size > 0
    )


def storable(value):
    """A Tensor that checkpoints can hold."""
    if value.dtype in (ms.complex64, ms.complex128):
        raise TypeError("a checkpoint holds no complex Tensors; save real and imaginary parts")
    return value


SAVED_LISTS = {"list": list, "tuple": tuple, "set": set}


def as_json(value, tensors, place):
    """A value as JSON; its Tensors are added to ``tensors`` under the place where they stand."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        kind = "array" if isinstance(value, np.ndarray) else "number"
        return {kind: as_json(Tensor(np.asarray(value)), tensors, place)}
    if isinstance(value, Tensor) and value.size == 0:
        return {"empty": list(value.shape), "dtype": str(value.dtype)}
    if isinstance(value, Tensor):
        name = place
        while name in tensors:
            name += "'"
        tensors[name] = storable(value)
        return {"tensor": name}
    if isinstance(value, Namespace):
        return {"Namespace": as_json(vars(value), tensors, place)}
    if isinstance(value, dict):
        kind = "OrderedDict" if isinstance(value, collections.OrderedDict) else "dict"
        return {kind: [
            [as_json(key, tensors, f"{place}.{i}.key"),
             as_json(one, tensors, f"{place}.{key if isinstance(key, str) else i}")]
            for i, (key, one) in enumerate(value.items())
        ]}  # fmt: skip
    if type(value) in SAVED_LISTS.values():
        items = [as_json(one, tensors, f"{place}.{i}") for i, one in enumerate(value)]
        return {type(value).__name__: items}
    raise TypeError(f"{place} is a {type(value).__name__}; save its state_dict() or plain values")


def save(obj, f):
    """Reproduces torch.save for Tensors, state dicts and nested containers of plain values.

    The file is a checkpoint of MindSpore. One state dict is stored by its own names, so that
    mindspore.load_checkpoint reads it too; of anything else the structure is stored along as
    JSON. A file appears whole or not at all. Cells and other objects raise TypeError: their code
    is not saved.
    """
    tensors, extra = {}, {}
    if isinstance(obj, dict) and obj and all(plain_entry(*entry) for entry in obj.items()):
        tensors = {key: storable(value) for key, value in obj.items()}
    else:
        extra = {SAVED_STRUCTURE: json.dumps(as_json(obj, tensors, "obj"))}
    rows = [{"name": name, "data": value} for name, value in tensors.items()]
    with tempfile.TemporaryDirectory() as folder:
        written = f"{folder}/written.ckpt"
        ms.save_checkpoint(rows, written, append_dict=extra)
        with open(written, "rb") as source:
            if hasattr(f, "write"):
                shutil.copyfileobj(source, f)
                return
            part = f"{f}.part"
            with open(part, "wb") as target:
                shutil.copyfileobj(source, target)
        shutil.move(part, f)


SAVED_DICTS = {"dict": dict, "OrderedDict": collections.OrderedDict}


def from_json(value, tensors):
    """The value that ``as_json`` wrote as JSON."""
    if not isinstance(value, dict):
        return value
    kind, inner = next(iter(value.items()))
    if kind == "tensor":
        return tensors[inner]
    if kind == "empty":
        return ms.ops.zeros(tuple(inner), getattr(ms, value["dtype"].lower()))
    if kind in ("array", "number"):
        array = from_json(inner, tensors).asnumpy()
        return array if kind == "array" else array[()]
    if kind == "Namespace":
        return Namespace(**from_json(inner, tensors))
    if kind in SAVED_DICTS:
        return SAVED_DICTS[kind](
            (from_json(key, tensors), from_json(one, tensors)) for key, one in inner
        )
    return SAVED_LISTS[kind](from_json(one, tensors) for one in inner)


def load(f):
    """Reproduces torch.load for files of ``save`` and mindspore.save_checkpoint; no code runs."""
    with tempfile.TemporaryDirectory() as folder:
        readable = f"{folder}/readable.ckpt"
        with open(readable, "wb") as target:
            if hasattr(f, "read"):
                shutil.copyfileobj(f, target)
            else:
                with open(f, "rb") as source:
                    shutil.copyfileobj(source, target)
        with open(readable, "rb") as source:
            start = source.read(2)
        if start in (b"PK", b"\x80\x02"):
            raise ValueError(
                f"{f} is a file of torch, not of MindSpore; convert it once: "
                f"torch2ms weights convert {f} OUT.ckpt --record ..."
            )
        found = ms.load_checkpoint(readable)
    structure = found.pop(SAVED_STRUCTURE, None)
    tensors = {name: Tensor(value) for name, value in found.items()}
    return (
        collections.OrderedDict(tensors)
        if structure is None
        else from_json(json.loads(structure), tensors)
    )


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


def torch_names(cell):
    """torch's names of what the state_dict of a Cell holds, by MindSpore's, in torch's order."""
    found = {}
    for path, one in named_modules(cell, remove_duplicate=False):
        for buffers in (False, True):
            for name in (n for n in one._params if is_buffer(one, n) == buffers):
                start = path + "." if path else ""
                found[start + name] = start + torch_name(one, name)
    return found


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


def undifferentiable(differentiable):
    """Refuses a step that is to be differentiated. Raises NotImplementedError."""
    if differentiable:
        raise NotImplementedError("a step that can be differentiated")


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


def shortfall(beta, step):
    """1 - beta ** step, without the cancellation that float32 has near 1."""
    if isinstance(beta, Tensor):
        return -ops.expm1(step * ops.log(beta))
    return -ops.expm1(step * math.log(beta)) if beta > 0 else step * 0.0 + 1.0


class Adam(Optimizer):
    """Reproduces torch.optim.Adam: weight decay added to the gradient, eps outside the root.

    ``decoupled_weight_decay`` takes the decay off the weights instead (AdamW).
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0.0,
        amsgrad=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
        fused=None,
        decoupled_weight_decay=False,
    ):
        undifferentiable(differentiable)
        settings = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(trainable(params), settings)
        self.exp_avg = self.parameters.clone(prefix="exp_avg", init="zeros")
        self.exp_avg_sq = self.parameters.clone(prefix="exp_avg_sq", init="zeros")
        self.max_exp_avg_sq = self.parameters.clone(prefix="max_exp_avg_sq", init="zeros")
        self.state_step = Parameter(Tensor(0.0, ms.float32), "state_step", requires_grad=False)

    def construct(self, gradients):
        step = ops.assign_add(self.state_step, Tensor(1.0, ms.float32))
        for index, group in enumerate(self.param_groups):
            start = self.group_start_id[index]
            beta1, beta2 = group["betas"]
            rate, decay = group["lr"], group["weight_decay"]
            first = shortfall(beta1, step)
            second = ops.sqrt(shortfall(beta2, step))
            for i in range(len(group["params"])):
                weight, gradient = self.parameters[start + i], gradients[start + i]
                mean, square = self.exp_avg[start + i], self.exp_avg_sq[start + i]
                gradient = -gradient if group["maximize"] else gradient
                value = weight * 1.0
                if decay != 0 and group["decoupled_weight_decay"]:
                    value = value * (1 - rate * decay)
                elif decay != 0:
                    gradient = gradient + decay * value
                new_mean = mean + (1 - beta1) * (gradient - mean)
                new_square = square * beta2 + (1 - beta2) * gradient * gradient
                ops.assign(mean, new_mean)
                ops.assign(square, new_square)
                root = new_square
                if group["amsgrad"]:
                    root = ops.maximum(self.max_exp_avg_sq[start + i], new_square)
                    ops.assign(self.max_exp_avg_sq[start + i], root)
                step_size = ops.sqrt(root) / second + group["eps"]
                ops.assign(weight, value - (rate / first) * new_mean / step_size)
        return True


def number(value):
    """A setting as a Python number: the shortest that is this float32; others stay."""
    if not isinstance(value, Tensor):
        return value
    return float(str(value.value())) if value.dtype == ms.float32 else value.item()


COMPILED = ("betas", "momentum", "weight_decay", "dampening", "eps", "nesterov", "maximize")


class ParameterGroup(dict):
    """A group of an optimizer: rates are read as Python numbers, and written where they count."""

    def __init__(self, group):
        super().__init__({key: number(value) for key, value in group.items() if key != "params"})
        super().__setitem__("params", group["params"])
        self.group = group

    def __getitem__(self, key):
        return number(self.group[key])

    def get(self, key, default=None):
        return self[key] if key in self.group else default

    def __setitem__(self, key, value):
        value = number(value)
        super().__setitem__(key, value)
        kept = self.group.get(key)
        value = float(value) if type(kept) is float and type(value) is int else value
        if isinstance(kept, Parameter):
            ops.assign(kept, Tensor(value, kept.dtype))
        elif key not in COMPILED or kept == value or ms.get_context("mode") != ms.GRAPH_MODE:
            self.group[key] = value
        else:
            raise NotImplementedError(f"{key} is compiled into the train step; build a new one")

    def setdefault(self, key, default=None):
        if key not in self.group:
            self[key] = default
        return self[key]

    def update(self, *args, **settings):
        for key, value in dict(*args, **settings).items():
            self[key] = value


def param_groups(optimizer):
    """Reproduces ``param_groups`` of torch.optim.Optimizer; other objects keep their own."""
    if not isinstance(optimizer, Optimizer):
        return optimizer.param_groups
    return [ParameterGroup(group) for group in optimizer.param_groups]


def state_of(optimizer):
    """The Parameters that an optimizer keeps besides the weights and rates, by name."""
    weights = {id(weight) for weight in optimizer.parameters}
    held = list(optimizer.get_parameters())
    for value in vars(optimizer).values():  # NAdam keeps some in a plain list
        held += [one for one in value if isinstance(one, Parameter)] if type(value) is list else []
    rates = {id(rate) for rate in optimizer.lrs}
    return {one.name: one for one in held if id(one) not in weights and id(one) not in rates}


def optimizer_state(optimizer):
    """Reproduces ``state_dict()`` of torch.optim.Optimizer; states have MindSpore's names."""
    groups, start = [], 0
    for group in param_groups(optimizer):
        end = start + len(group["params"])
        groups.append({**group, "params": list(range(start, end))})
        start = end
    state = {name: one.value().copy() for name, one in state_of(optimizer).items()}
    return {"state": state, "param_groups": groups}


def load_optimizer_state(optimizer, state_dict):
    """Reproduces ``load_state_dict()`` for what ``optimizer_state`` gave."""
    kept = state_of(optimizer)
    missing = sorted(set(kept) ^ set(state_dict["state"]))
    if missing:
        raise ValueError(f"the state is of another optimizer: {missing}")
    for name, value in state_dict["state"].items():
        ops.assign(kept[name], value.astype(kept[name].dtype))
    for group, saved in zip(param_groups(optimizer), state_dict["param_groups"]):
        group.update({key: value for key, value in saved.items() if key != "params"})


def numbers(values):
    """Rates as Python numbers."""
    return [number(value) for value in values]


def last_lr(scheduler):
    """Reproduces ``get_last_lr()`` of torch's schedules: a list of Python numbers."""
    kept = vars(scheduler).get("last_rates")
    return numbers(scheduler.get_last_lr()) if kept is None else list(kept)


def scheduler_state(scheduler):
    """Reproduces ``state_dict()`` of torch's schedules: what is counted, as Python numbers."""
    state = {}
    for key, value in vars(scheduler).items():
        if key == "_schedulers":
            state[key] = [scheduler_state(one) for one in value]
        elif key == "last_epoch":
            state[key] = int(value)
        elif key == "_last_lr":
            state[key] = last_lr(scheduler)
        elif isinstance(value, (list, tuple)) and key == "base_lrs":
            state[key] = numbers(value)
        elif isinstance(value, (Parameter, int, float, str)):
            state[key] = number(value)
    return state


def load_scheduler_state(scheduler, state_dict):
    """Reproduces ``load_state_dict()`` for what ``scheduler_state`` gave; rates stay."""
    for key, value in state_dict.items():
        kept = getattr(scheduler, key, None)
        if key == "_schedulers":
            for one, state in zip(kept, value):
                load_scheduler_state(one, state)
        elif isinstance(kept, Parameter):
            ops.assign(kept, Tensor(value, kept.dtype))
        elif key == "base_lrs" and isinstance(kept[0], Tensor):
            scheduler.base_lrs = [Tensor(rate, old.dtype) for rate, old in zip(value, kept)]
        elif key != "_last_lr" or not isinstance(kept[0], Tensor):
            setattr(scheduler, key, value)
        elif "last_rates" in vars(scheduler):
            scheduler.last_rates = numbers(value)
