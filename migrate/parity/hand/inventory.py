"""List owners, tensors and calls of a built model, alike for both frameworks.

A *call* is one entry of a trace: the path of a module or Cell, in the order in which calls ended.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

# What both frameworks ship, by their names in lower case: torch's, MindSpore's and mint's.
KINDS = {
    "linear": "linear", "dense": "linear", "nondynamicallyquantizablelinear": "linear",
    "conv1d": "conv", "conv2d": "conv", "conv3d": "conv",
    "convtranspose1d": "convtranspose", "convtranspose2d": "convtranspose",
    "convtranspose3d": "convtranspose", "conv1dtranspose": "convtranspose",
    "conv2dtranspose": "convtranspose", "conv3dtranspose": "convtranspose",
    "batchnorm1d": "batchnorm", "batchnorm2d": "batchnorm", "batchnorm3d": "batchnorm",
    "syncbatchnorm": "batchnorm", "layernorm": "layernorm", "groupnorm": "groupnorm",
    "instancenorm1d": "instancenorm", "instancenorm2d": "instancenorm",
    "instancenorm3d": "instancenorm", "embedding": "embedding", "embeddingbag": "embedding",
    "lstm": "lstm", "gru": "gru", "rnn": "rnn", "lstmcell": "lstmcell", "grucell": "grucell",
    "rnncell": "rnncell", "multiheadattention": "attention", "prelu": "prelu",
    "bilinear": "bilinear", "bidense": "bilinear", "rmsnorm": "rmsnorm",
    "maxpool1d": "maxpool", "maxpool2d": "maxpool", "maxpool3d": "maxpool",
    "avgpool1d": "avgpool", "avgpool2d": "avgpool", "avgpool3d": "avgpool",
    "adaptiveavgpool1d": "adaptiveavgpool", "adaptiveavgpool2d": "adaptiveavgpool",
    "adaptiveavgpool3d": "adaptiveavgpool", "adaptivemaxpool1d": "adaptivemaxpool",
    "adaptivemaxpool2d": "adaptivemaxpool", "adaptivemaxpool3d": "adaptivemaxpool",
    "dropout": "dropout", "dropout1d": "dropout", "dropout2d": "dropout", "dropout3d": "dropout",
    "alphadropout": "dropout", "relu": "relu", "relu6": "relu6", "leakyrelu": "leakyrelu",
    "gelu": "gelu", "silu": "silu", "sigmoid": "sigmoid", "tanh": "tanh", "softmax": "softmax",
    "logsoftmax": "logsoftmax", "elu": "elu", "selu": "selu", "celu": "celu",
    "hardswish": "hardswish", "hswish": "hardswish", "hardsigmoid": "hardsigmoid",
    "hsigmoid": "hardsigmoid", "mish": "mish", "softplus": "softplus", "hardtanh": "hardtanh",
    "logsigmoid": "logsigmoid", "softsign": "softsign", "flatten": "flatten",
    "identity": "identity", "upsample": "upsample", "upsamplingnearest2d": "upsample",
    "upsamplingbilinear2d": "upsample", "pixelshuffle": "pixelshuffle",
    "zeropad2d": "pad", "reflectionpad2d": "pad", "replicationpad2d": "pad", "pad": "pad",
    "constantpad2d": "pad", "unflatten": "unflatten", "softmin": "softmin",
}  # fmt: skip
ACTIVATIONS = frozenset((
    "relu", "relu6", "leakyrelu", "gelu", "silu", "sigmoid", "tanh", "elu", "selu", "celu",
    "hardswish", "hardsigmoid", "mish", "softplus", "hardtanh", "logsigmoid", "softsign", "prelu",
    "softmax", "logsoftmax", "softmin",
))  # fmt: skip
ROLES = {
    "gamma": "weight", "embedding_table": "weight", "beta": "bias", "moving_mean": "running_mean",
    "moving_variance": "running_var", "a": "weight", "kernel": "weight", "scale": "weight",
    "shift": "bias", "variance": "running_var",
}  # fmt: skip
# Words that people exchange when they port: each is reduced to the first of its line.
WORDS = {
    "dense": "fc", "linear": "fc", "classifier": "fc", "head": "fc", "out": "fc", "cls": "fc",
    "lin": "fc", "batchnorm": "bn", "norm": "bn", "layernorm": "bn", "ln": "bn",
    "embedding": "emb", "embeddings": "emb", "embed": "emb", "embd": "emb", "attention": "attn",
    "query": "q", "key": "k", "value": "v", "downsample": "shortcut", "down": "shortcut",
    "layers": "blocks", "layer": "blocks", "block": "blocks", "stage": "blocks", "enc": "encoder",
    "dec": "decoder", "position": "pos", "positional": "pos", "token": "tok", "word": "tok",
}  # fmt: skip


def kind_of(name: str, module: str = "") -> str:
    """Return the kind of a class of either framework, "" for a class of the user's own."""
    own = module and not module.startswith(("torch.", "mindspore."))
    return "" if own else KINDS.get(name.lower(), "")


def family(kind: str) -> str:
    """Kinds that stand in for each other, rightly or not."""
    if kind in ACTIVATIONS:
        return "activation"
    return "pool" if kind.endswith("pool") else kind


def role(name: str) -> str:
    """Return a tensor's part in its layer, spelled as torch does."""
    return ROLES.get(name, name)


def words(path: str) -> tuple[str, ...]:
    """Return the words and numbers of a dotted name, as common ones: ``bn1`` gives bn, 1."""
    found: list[str] = []
    for step in path.lower().replace("_", ".").split("."):
        stem = step.rstrip("0123456789")
        found += [WORDS.get(stem, stem)] if stem else []
        found += [step[len(stem):]] if step != stem else []  # fmt: skip
    return tuple(found)


def likeness(one: str, other: str) -> float:
    """Return how alike two dotted names are, from 0 to 1."""
    if one == other:
        return 1.0
    left, right = words(one), words(other)
    joined, others = _steps(one), _steps(other)  # log_var is logvar
    if left == right or joined == others:
        return 0.95
    last = left[-1:] == right[-1:] or joined[-1:] == others[-1:]
    tail = 0.5 if last or _initial(left, right) else 0.0
    shared = (
        difflib.SequenceMatcher(None, a, b, False).ratio()
        for a, b in ((left, right), (joined, others))
    )
    return 0.9 * (tail + 0.5 * max(shared))


def _steps(path: str) -> tuple[str, ...]:
    """Return the steps of a dotted name, the words of each written as one."""
    return tuple("".join(words(step)) for step in path.split("."))


def _initial(left: tuple[str, ...], right: tuple[str, ...]) -> bool:
    """Return whether a word is a letter that the other has: ``q``, ``wq``; ``k``, ``k_proj``."""
    letters = set(left[-2:]) & set("qkvo")
    return bool(letters) and any(
        word in (f"w{letter}", f"{letter}w", letter) for word in right[-2:] for letter in letters
    )


Shape = tuple[int, ...]
UNUSED = ("num_batches_tracked",)


@dataclass(frozen=True)
class Weight:
    """One tensor: where it lies, what it is, and when its layer ran (``rank``, from 0 to 1).

    ``whole``: it holds whole numbers or booleans.
    """

    place: str
    shape: Shape
    trained: bool
    parameter: bool
    rank: float = 0.0
    whole: bool = False

    @property
    def owner(self) -> str:
        return self.place.rpartition(".")[0]

    @property
    def name(self) -> str:
        return self.place.rpartition(".")[2]

    @property
    def role(self) -> str:
        return role(self.name)


@dataclass(frozen=True)
class Call:
    """One call of one Cell: the shapes that came out of it."""

    path: str
    shapes: tuple[Shape, ...] = ()


@dataclass(frozen=True)
class Side:
    """One model: kinds and class names by path, in the order of registration; tensors; calls.

    ``partial``: the run that was traced broke off.
    """

    kinds: Mapping[str, str]
    classes: Mapping[str, str]
    weights: tuple[Weight, ...]
    calls: tuple[Call, ...]
    counts: Mapping[str, int] = field(default_factory=dict)
    partial: bool = False

    def below(self, path: str) -> tuple[str, ...]:
        """Return all paths below one."""
        prefix = f"{path}." if path else ""
        return tuple(p for p in self.kinds if p != path and p.startswith(prefix))

    @cached_property
    def counted(self) -> Mapping[str, str]:
        """Paths of layers with the numbers in them counted anew, from 0, for each name and kind.

        One side may number its convolutions 0, 3, 6 in a chain, and the other from 1.
        """
        groups: dict[tuple[str, str, str], set[int]] = {}
        owners = dict.fromkeys(weight.owner for weight in self.weights)
        parted = {owner: tuple(self._numbered(owner)) for owner in owners}
        for group, number, _ in itertools.chain.from_iterable(parted.values()):
            groups.setdefault(group, set()).add(number)
        return {
            owner: ".".join(
                f"{group[1]}{sorted(groups[group]).index(number)}" if number >= 0 else step
                for group, number, step in steps
            )
            for owner, steps in parted.items()
        }

    def _numbered(self, owner: str) -> Iterator[tuple[tuple[str, str, str], int, str]]:
        """Yield for each step of a path what it is counted among, its number or -1, and itself."""
        steps = owner.split(".")
        for depth, step in enumerate(steps):
            stem = step.rstrip("0123456789")
            above, path = ".".join(steps[:depth]), ".".join(steps[: depth + 1])
            number = int(step[len(stem) :]) if stem != step else -1
            yield (above, stem, self.kinds.get(path, "")), number, step

    @cached_property
    def owners(self) -> frozenset[str]:
        """Return the paths that hold tensors themselves."""
        return frozenset(weight.owner for weight in self.weights)


def torch_side(built: Mapping[str, Any], index: Mapping[str, Any]) -> Side:
    """From the answers "build" and the index of a recorded run."""
    rows = built["modules"]
    calls = tuple(Call(e["path"], _shapes(e["local"])) for e in index["calls"])
    owners = {row["key"].rpartition(".")[0] for row in built["tensors"]}
    ranks = _ranks([row["path"] for row in rows], calls, owners)
    weights = tuple(
        _weight(row["key"], row, ranks, row["kind"] == "parameter") for row in built["tensors"]
        if not row["tied"] and row["key"].rpartition(".")[2] not in UNUSED
    )  # fmt: skip
    kinds = {row["path"]: kind_of(row["class"], row["classes"][0]) for row in rows}
    classes = {row["path"]: row["class"] for row in rows}
    return Side(kinds, classes, weights, calls, index["counts"])


def mindspore_side(built: Mapping[str, Any], trace: Mapping[str, Any]) -> Side:
    """From the answers "build" and "trace"."""
    rows = built["cells"]
    calls = tuple(Call(e["path"], tuple(tuple(s) for s in e["shapes"])) for e in trace["calls"])
    owners = {row["place"].rpartition(".")[0] for row in built["tensors"] if row["parameter"]}
    ranks = _ranks([row["path"] for row in rows], calls, owners)
    seen: set[int] = set()
    weights: list[Weight] = []
    for row in sorted(built["tensors"], key=lambda row: not row["parameter"]):
        if row["same"] not in seen:
            weights.append(_weight(row["place"], row, ranks, row["parameter"]))
        seen.add(row["same"])
    kinds = {row["path"]: kind_of(row["class"], row["module"]) for row in rows}
    classes = {row["path"]: row["class"] for row in rows}
    counts: dict[str, int] = {}
    for call in calls:
        counts[call.path] = counts.get(call.path, 0) + 1
    return Side(kinds, classes, tuple(weights), calls, counts, bool(trace["error"]))


def _weight(
    place: str, row: Mapping[str, Any], ranks: Mapping[str, float], parameter: bool
) -> Weight:
    rank = ranks.get(place.rpartition(".")[0], 0.0)
    whole = row["dtype"].startswith(("int", "uint", "bool"))
    return Weight(place, tuple(row["shape"]), row["trained"], parameter, rank, whole)


def _shapes(spec: Mapping[str, Any]) -> tuple[Shape, ...]:
    if "items" in spec:
        return tuple(shape for item in spec["items"] for shape in _shapes(item))
    return (tuple(spec["shape"]),) if spec["t"] == "tensor" else ()


def _ranks(paths: Sequence[str], calls: Sequence[Call], owners: set[str]) -> dict[str, float]:
    """Return when each owner of weights first ended, as a share of them all.

    What was never called as a Cell follows what was registered before it.
    """
    first = {call.path: number for number, call in reversed(list(enumerate(calls)))}
    keyed: list[tuple[float, str]] = []
    last = -1.0
    for path in paths:
        last = float(first[path]) if path in first else last + 1e-3
        keyed.append((last, path))
    ordered = [path for _, path in sorted(keyed) if path in owners]
    return {path: number / max(len(ordered), 1) for number, path in enumerate(ordered)}
