"""Run a converted script with torch's starting weights and draws, and note what it says."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mindspore as ms
from mindspore import nn

from migrate.parity import ms_draws
from migrate.parity.cells import Net, array, held_at, open_net, put, tensors
from migrate.parity.exchange import ArrayStore, apply_layout
from migrate.parity.messages import Emit, Payload
from migrate.parity.replay import set_mode
from migrate.parity.script_run import (
    LOSS,
    Journal,
    Numbers,
    Roots,
    keep_states,
    run,
    take_states,
)
from migrate.parity.weights import Held, Names, Pairing, pair_all

OPTIMIZERS = (nn.Optimizer, ms.experimental.optim.Optimizer)


@dataclass
class Partner:
    """A model of torch's run that stands for a Cell of this one."""

    number: int
    model: Payload
    net: Net
    pairing: Pairing
    used: bool = False

    def fill(self, kept: Payload) -> None:
        """Set the weights that torch's model had at one moment."""
        store = ArrayStore(Path(kept["folder"]))
        rows = {row["key"]: row for row in kept["tensors"]}
        for pair in self.pairing.pairs:
            if pair.place and pair.key in rows:
                numbers = apply_layout(store.get(rows[pair.key]["array"]), pair.layout)
                put(self.net, pair.place, numbers)


@dataclass
class Seen:
    """The Cells with weights that the program built, each with its partner.

    ``lone`` are those that no model of torch's run has the tensors of.
    """

    folder: Path
    models: Sequence[Payload]
    names: Names
    partners: list[Partner] = field(default_factory=list)
    lone: list[str] = field(default_factory=list)
    owned: set[int] = field(default_factory=set)
    states: Path = Path()

    def __post_init__(self) -> None:
        self.states = Path(tempfile.mkdtemp(dir=self.folder)) / "states"

    def begun(self) -> None:
        keep_states(self.states)

    def built(self, cell: Any) -> None:
        """Give a Cell its partner's weights; MindSpore draws starting weights by numpy."""
        take_states(self.states)
        held = list(cell.get_parameters())
        known = self.owned | _of_optimizers(cell)
        fresh = any(id(p) not in known and p.requires_grad for p in held)
        self.owned.update(map(id, held))
        if not fresh or isinstance(cell, OPTIMIZERS):
            return
        partner = self._partner(cell)
        if partner is None:
            self.lone.append(type(cell).__name__)
            return
        self.partners.append(partner)
        partner.fill(partner.model["built"])
        take_states(Path(partner.model["built"]["folder"]) / "states")

    def _partner(self, cell: Any) -> Partner | None:
        """Return the first model without a Cell whose tensors all have a place in this one."""
        net = open_net(cell)
        rows = tensors(net)
        held = [
            Held(*(r[k] for k in ("place", "name", "same", "trained", "parameter"))) for r in rows
        ]
        shapes = {row["place"]: row["shape"] for row in rows}
        taken = {partner.number for partner in self.partners}
        for number, model in enumerate(self.models):
            if number in taken:
                continue
            kept = model["built"]
            pairing = pair_all({r["key"]: r["tied"] for r in kept["tensors"]},
                               model["classes"], held, self.names)  # fmt: skip
            if not pairing.missing and self._fits(kept, pairing, shapes):
                return Partner(number, model, net, pairing)
        return None

    def _fits(self, kept: Payload, pairing: Pairing, shapes: dict[str, Any]) -> bool:
        store = ArrayStore(Path(kept["folder"]))
        rows = {row["key"]: row for row in kept["tensors"]}
        trained = [item.place for item in pairing.extra if item.trained]
        return not trained and all(
            list(apply_layout(store.get(rows[p.key]["array"]), p.layout).shape) == shapes[p.place]
            for p in pairing.pairs if p.place
        )  # fmt: skip

    def first(self, cell: Any) -> None:
        """Set the weights that the models which a first call reaches had at theirs in torch."""
        waiting = [partner for partner in self.partners if not partner.used]
        inside = {id(p) for p in cell.get_parameters()} if waiting else set()
        for partner in waiting:
            if any(id(p) in inside for p in partner.net.root.get_parameters()):
                partner.used = True
                if "used" in partner.model:
                    partner.fill(partner.model["used"])

    def trained(self) -> list[Payload]:
        """Write the weights as they are at the end: for each model of torch's its tensors."""
        found = []
        for partner in self.partners:
            store = ArrayStore(self.folder / f"trained{partner.number}")
            store.folder.mkdir()
            tensors = [
                {"key": pair.key, "layout": pair.layout,
                 "array": store.put(array(held_at(partner.net, pair.place)))}
                for pair in partner.pairing.pairs if pair.place
            ]  # fmt: skip
            found.append({
                "model": partner.number, "folder": str(store.folder), "tensors": tensors
            })  # fmt: skip
        return found


def _of_optimizers(cell: Any) -> set[int]:
    """Return the ids of what optimizers inside of a Cell keep, their weights apart."""
    found: set[int] = set()
    for _, inner in cell.cells_and_names():
        if isinstance(inner, OPTIMIZERS):
            updated = {id(p) for p in getattr(inner, "parameters", ())}
            found |= {id(p) for p in inner.get_parameters()} - updated
    return found


def run_script(request: Payload, emit: Emit) -> Payload:
    """Run ``line`` below ``root``; answers what it said, and the weights it ends with."""
    root = Path(request["root"])
    journal = Journal(f"{root}/", emit)
    folder = Path(request["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    seen = Seen(folder, request["models"], Names(request["weights"], request["layouts"]))

    def gave(cell: Any, result: Any) -> None:
        if isinstance(cell, nn.TrainOneStepCell) or "passes" in vars(cell):
            loss = result[0] if isinstance(result, tuple) else result
            if isinstance(loss, ms.Tensor) and loss.size == 1:
                journal.note(LOSS, value=float(array(loss).reshape(())))

    roots = Roots(nn.Cell, seen.built, seen.first, seen.begun, gave)
    set_mode(request["mode"])
    ms.set_seed(request["seed"])
    ms_draws.share_numbers(Numbers(request["counted"], still=lambda: roots.is_building))
    roots.watch()
    sys.path.insert(0, str(root))
    answer = run(root, request["line"], request["seed"], journal)
    return {**answer, "trained": seen.trained(), "lone": seen.lone}
