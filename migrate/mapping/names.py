"""In: an imported name. Out: the public torch name it means, and whether the table covers it."""

from __future__ import annotations

from migrate.mapping.table import Table

# where torch defines what it publishes elsewhere
_MOVED = (
    ("torch.nn.parameter.", "torch.nn."),
    ("torch.nn.modules.module.", "torch.nn."),
    ("torch.nn.modules.utils.", "torch.nn.modules.utils."),
    ("torch.functional.", "torch."),
    ("torch.tensor.", "torch."),
    ("torch._tensor.", "torch."),
    ("torch.types.", "torch."),
    ("torch.optim.optimizer.", "torch.optim."),
    ("torch.utils.data.dataset.", "torch.utils.data."),
    ("torch.utils.data.dataloader.", "torch.utils.data."),
    ("torch.utils.data.sampler.", "torch.utils.data."),
    ("torch.utils.data.distributed.", "torch.utils.data."),
    ("torch.autograd.variable.", "torch.autograd."),
    ("torch.autograd.function.", "torch.autograd."),
    ("torch.utils.model_zoo.", "torch.hub."),
    ("torch.cuda.amp.autocast_mode.", "torch.cuda.amp."),
)
_ALIASES = {
    "torch.nn.modules.Module": "torch.nn.Module",
    "torch.fft.Tensor": "torch.Tensor",
    "torch.nn.functional.Tensor": "torch.Tensor",
    "torch.hub.load_url": "torch.hub.load_state_dict_from_url",
}


def root_of(name: str) -> str:
    return name.partition(".")[0]


def covered_roots(table: Table) -> frozenset[str]:
    """The top-level packages whose names are ours to decide."""
    return frozenset(map(root_of, table.names)) | {"torch"}


def canonical(name: str, table: Table) -> str:
    """The public name of what is meant: torch.nn.modules.conv.Conv2d is torch.nn.Conv2d."""
    if name in _ALIASES:
        return _ALIASES[name]
    if not name.startswith("torch."):
        return name
    while name.startswith("torch.torch."):  # torch imports itself
        name = name.removeprefix("torch.")
    name = table.torch.canonical(name)
    if table.kind(name):
        return name
    for before, after in _MOVED:
        if name.startswith(before):
            return after + name[len(before) :]
    short = "torch.nn." + name.rpartition(".")[2]
    moved = name.startswith("torch.nn.modules.") and table.kind(short) not in ("", "module")
    return short if moved else name
