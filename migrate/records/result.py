"""In: what conversion and verification found. Out: the one result model, its schema versioned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from migrate import __version__
from migrate.records.outcomes import GRAPH, Outcome, Verdict, Why

SCHEMA_VERSION = 1
CHECKED = "taken for no Tensor, which is checked when it runs"
RECORDED = "is taken for what it was:"
SAID = "chosen by a person"


class Frozen(BaseModel):
    """A record that is not changed once it is made; unknown keys are an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Entry(Frozen):
    """One torch-derived reference of the input and what became of it.

    Lines and columns count from 1; ``output_line`` is 0 where nothing of it is left.
    ``assumption`` says what was taken for granted that neither types nor torch prove.
    """

    name: str
    outcome: Outcome
    line: int
    column: int
    output_line: int = 0
    row: str = ""
    target: str = ""
    code: str = ""
    reason: str = ""
    next_step: str = ""
    note: str = ""
    assumption: str = ""


class Ledger(Frozen):
    """How many references met each outcome; ``total`` is counted apart, before any decision.

    ``graph`` is how many of the flagged are findings about graph mode: right in PyNative.

    ``places`` are the names of torch and the attributes that torch's objects have too, counted by
    scopes alone. Of these ``others`` are attributes of what is surely none of torch's objects, and
    ``open`` of what nobody knows; the rest have an outcome.
    """

    total: int = 0
    converted: int = 0
    kept: int = 0
    helper: int = 0
    flagged: int = 0
    out_of_scope: int = 0
    graph: int = 0
    places: int = 0
    others: int = 0
    open: int = 0

    @property
    def stopping(self) -> int:
        """How many of the flagged stop in both modes."""
        return self.flagged - self.graph

    @property
    def adds_up(self) -> bool:
        parts = self.converted + self.kept + self.helper + self.flagged + self.out_of_scope
        return parts == self.total and self.others + self.open <= self.places


def counted(entries: Iterable[Entry]) -> Ledger:
    """Return the ledger of some entries."""
    found = tuple(entries)
    outcomes = Counter(entry.outcome.name.lower() for entry in found)
    graph = sum(entry.code.startswith(GRAPH) for entry in found)
    return Ledger(total=len(found), graph=graph, **outcomes)


class OpenPlace(Frozen):
    """An attribute that torch's objects have too, of a value of which nobody knows what it is.

    It is left as it is: nothing calls it, or no Tensor can be called so.
    """

    name: str
    line: int
    column: int


class CellPlace(Frozen):
    """Where a Module class of the input stands, and its Cell in the output (1-based lines)."""

    name: str
    line: int
    end_line: int
    output_line: int
    output_end_line: int


class Along(Frozen):
    """An installed package that was converted along; ``output`` is its folder in the output."""

    name: str
    version: str
    licence: str
    output: str


class FileResult(Frozen):
    """One file: paths are relative to the input and output roots, with forward slashes.

    ``package``: the installed package that it is of, if it was converted along; its source is then
    relative to the folder that the package is installed in.
    """

    source: str
    output: str = ""
    status: Literal["converted", "copied", "skipped", "failed"] = "converted"
    reason: str = ""
    lines: int = 0
    source_sha256: str = ""
    output_sha256: str = ""
    ledger: Ledger = Ledger()
    entries: tuple[Entry, ...] = ()
    open: tuple[OpenPlace, ...] = ()
    helpers: tuple[str, ...] = ()
    cells: tuple[CellPlace, ...] = ()
    package: str = ""


class Asked(Frozen):
    """What convert was asked for beside source, output and target, so it can be asked again."""

    helpers: str = ""
    train_style: Literal["cells", "model"] = "cells"
    exclude: tuple[str, ...] = ()
    mappings: tuple[str, ...] = ()
    follow: tuple[str, ...] = ()
    no_follow: tuple[str, ...] = ()
    follow_path: tuple[str, ...] = ()


class Record(Frozen):
    """What a conversion decided: ``torch2ms.json``, read by verify, report and weights.

    ``source_root`` is the absolute input path, and ``kind`` says whether it is a file or a folder.
    ``weights`` maps the torch class of each row used to {torch tensor name: MindSpore name} and
    ``layouts`` to {torch tensor name: change of shape}; names that are missing stay as they are.
    """

    schema_version: int = SCHEMA_VERSION
    tool_version: str = ""
    facts: dict[str, str] = Field(default_factory=dict)
    kind: Literal["file", "folder"] = "file"
    source_root: str = ""
    target: Literal["portable", "mint"] = "portable"
    helpers: Literal["inline", "module"] = "module"
    asked: Asked = Asked()
    files: tuple[FileResult, ...] = ()
    along: tuple[Along, ...] = ()
    weights: dict[str, dict[str, str]] = Field(default_factory=dict)
    layouts: dict[str, dict[str, str]] = Field(default_factory=dict)

    @property
    def ledger(self) -> Ledger:
        return summed(self.files)

    @property
    def own_files(self) -> tuple[FileResult, ...]:
        """The files of the project, without those of packages that were converted along."""
        return tuple(file for file in self.files if not file.package)

    def files_of(self, package: str) -> tuple[FileResult, ...]:
        """The files of a package that was converted along."""
        return tuple(file for file in self.files if file.package == package)


def summed(files: Iterable[FileResult]) -> Ledger:
    """What became of the references in files, taken together."""
    ledgers = [file.ledger for file in files]
    return Ledger(
        **{name: sum(getattr(one, name) for one in ledgers) for name in Ledger.model_fields}
    )


class Side(Frozen):
    """The finite numbers of one side: count of others, mean, standard deviation, extremes."""

    mean: float
    std: float
    least: float
    most: float
    odd: int = 0


class Spread(Frozen):
    """How the numbers of one comparison lie.

    ``bins`` count elements by their error relative to the root mean square of the reference:
    exact, then one bin for each power of ten from below 1e-9 to 1 and above.
    """

    bins: tuple[int, ...]
    torch: Side
    mindspore: Side


class Check(Frozen):
    """One comparison of one Cell on one rung in one mode.

    ``local`` is the error when the Cell is fed what its torch partner received, ``cumulative``
    the error inside the whole model, both in the Euclidean norm relative to the float64 torch
    result; ``own`` is torch's own float32 error and ``limit`` what was allowed;
    ``cumulative_limit`` is what was allowed inside the model (None: as ``limit``). ``elements``
    counts the numbers compared: zero is a failure, unless ``why`` says that there is nothing to
    compare. ``spread`` is of the call that ``local`` or,
    without it, ``cumulative`` is of.
    """

    rung: str
    mode: Literal["pynative", "graph"]
    torch_path: str
    mindspore_path: str = ""
    torch_class: str = ""
    mindspore_class: str = ""
    torch_line: int = 0
    mindspore_line: int = 0
    source: str = ""
    order: int = 0
    verdict: Verdict
    elements: int = 0
    local: float | None = None
    cumulative: float | None = None
    own: float | None = None
    limit: float | None = None
    cumulative_limit: float | None = None
    detail: str = ""
    why: Why | None = None
    spread: Spread | None = None


class Guilty(Frozen):
    """The first Cell whose local check fails.

    ``torch_call`` and ``mindspore_call`` are the first calls inside it that differ, like
    ``net.py:12: x.var(1)``; ``reproduction`` is a file that shows it without torch.
    """

    rung: str
    mode: str
    torch: str
    mindspore: str
    torch_place: str = ""
    mindspore_place: str = ""
    call: str = ""
    cause: str = ""
    torch_call: str = ""
    mindspore_call: str = ""
    reproduction: str = ""


class Curve(Frozen):
    """The losses of the same steps of training on both sides, and torch's in float64."""

    torch: tuple[float, ...]
    mindspore: tuple[float, ...]
    reference: tuple[float, ...] = ()


class Rung(Frozen):
    """One rung of the ladder in one mode, with its worst verdict.

    ``faults`` maps tensors of torch's state dict to what is wrong with them; ``curve`` has the
    losses of the rung loss and of those after it; ``why`` says that nothing is to be compared.
    ``unreached`` are pieces of torch's operators that no input reaches, on the rung regimes.
    """

    name: str
    mode: str
    verdict: Verdict
    checks: int = 0
    elements: int = 0
    seconds: float = 0.0
    detail: str = ""
    why: Why | None = None
    faults: dict[str, str] = Field(default_factory=dict)
    unreached: tuple[str, ...] = ()
    curve: Curve | None = None


class ModelResult(Frozen):
    """One verified model: how it was built, and what every Cell of it showed.

    ``weight_names`` maps every tensor of torch's state dict that found its partner to the name of
    the MindSpore Parameter ("" where none is needed) and ``weight_layouts`` to its change of
    shape; ``parameters`` are those of torch, in its order. Checkpoints are converted by them.
    ``weight_shapes`` are torch's. ``options`` are the arguments of verify that give it again.
    """

    name: str
    source: str
    build: str
    inputs: tuple[str, ...]
    verdict: Verdict
    guilty: Guilty | None = None
    rungs: tuple[Rung, ...] = ()
    checks: tuple[Check, ...] = ()
    unmatched: tuple[str, ...] = ()
    weights_total: int = 0
    weights_matched: int = 0
    weight_names: dict[str, str] = Field(default_factory=dict)
    weight_layouts: dict[str, str] = Field(default_factory=dict)
    weight_shapes: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    parameters: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    seconds: float = 0.0
    detail: str = ""


class Verification(Frozen):
    """One run of verify over everything that was asked for: ``torch2ms.verify.json``.

    ``partial``: it was interrupted; models that were not finished are NOT_RUN.
    """

    schema_version: int = SCHEMA_VERSION
    tool_version: str = ""
    verdict: Verdict = Verdict.NOT_RUN
    environment: dict[str, str] = Field(default_factory=dict)
    models: tuple[ModelResult, ...] = ()
    partial: bool = False


class PairResult(Frozen):
    """What ``torch2ms verify TORCH MS`` found of a port written by hand.

    ``unmatched`` lists Cells and tensors of one side; ``ambiguous`` tensors whose partner is a
    guess; ``cells`` maps module paths to Cell paths. The Cells of ``guilty`` are paths.
    """

    schema_version: int = SCHEMA_VERSION
    tool_version: str = __version__
    torch: str = ""
    mindspore: str = ""
    inputs: tuple[str, ...] = ()
    verdict: Verdict = Verdict.NOT_RUN
    guilty: Guilty | None = None
    rungs: tuple[Rung, ...] = ()
    unmatched: tuple[str, ...] = ()
    ambiguous: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    cells: dict[str, str] = Field(default_factory=dict)
    environment: dict[str, str] = Field(default_factory=dict)
    mapping: str = ""
    detail: str = ""
