"""In: class and attribute names of both frameworks. Out: kinds of layer, and how alike."""

from __future__ import annotations

import difflib

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
    """The kind of a class of either framework, "" for a class of the user's own."""
    own = module and not module.startswith(("torch.", "mindspore."))
    return "" if own else KINDS.get(name.lower(), "")


def family(kind: str) -> str:
    """Kinds that stand in for each other, rightly or not."""
    if kind in ACTIVATIONS:
        return "activation"
    return "pool" if kind.endswith("pool") else kind


def role(name: str) -> str:
    """A tensor's part in its layer, spelled as torch does."""
    return ROLES.get(name, name)


def words(path: str) -> tuple[str, ...]:
    """The words and numbers of a dotted name, reduced to common ones: ``bn1`` gives bn, 1."""
    found: list[str] = []
    for step in path.lower().replace("_", ".").split("."):
        stem = step.rstrip("0123456789")
        found += [WORDS.get(stem, stem)] if stem else []
        found += [step[len(stem):]] if step != stem else []  # fmt: skip
    return tuple(found)


def likeness(one: str, other: str) -> float:
    """How alike two dotted names are, from 0 to 1."""
    if one == other:
        return 1.0
    left, right = words(one), words(other)
    if left == right:
        return 0.95
    tail = 0.5 if left[-1:] == right[-1:] or _initial(left, right) else 0.0
    return 0.9 * (tail + 0.5 * difflib.SequenceMatcher(None, left, right, False).ratio())


def _initial(left: tuple[str, ...], right: tuple[str, ...]) -> bool:
    """``q`` and ``wq``, ``k`` and ``k_proj``: one of the words is a letter that the other has."""
    letters = set(left[-2:]) & set("qkvo")
    return bool(letters) and any(
        word in (f"w{letter}", f"{letter}w", letter) for word in right[-2:] for letter in letters
    )
