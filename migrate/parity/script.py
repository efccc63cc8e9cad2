"""Run a training script in both frameworks on equal weights, data and seeds, and compare it.

Torch runs twice, the second time from weights that are moved by as much as MindSpore's kernels are
off in one step; where MindSpore differs, MORE times again. What these runs print differently,
torch does not determine: a number m of MindSpore's run is accepted when
``|m - a| <= k own + floor``, with a torch's number, own how far the other runs are from it at most,
and a floor of what the text rounds away and ``RTOL |a|``. Where own is more than VAGUE of a,
nothing is compared, and that is said. Weights at the end are judged so in the Euclidean norm, with
a tenth of the way that training has moved them as the largest floor.

(A bias in front of a BatchNorm has no gradient but rounding errors, and Adam makes whole steps of
them; the moving mean follows, and an accuracy may flip with it. One more run seldom shows that.)

The result is that of a model whose rungs are the parts of a script.
"""

from __future__ import annotations

import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from migrate.parity.compare import worst
from migrate.parity.exchange import Array, ArrayStore, apply_layout
from migrate.parity.request import VerifyRequest
from migrate.parity.script_run import LOSS, Said
from migrate.parity.session import LOST, Sides
from migrate.parity.worker import Payload
from migrate.records.outcomes import Problem, Verdict, Why
from migrate.records.result import Curve, FileResult, ModelResult, Record, Rung

Progress = Callable[[str], None]
RUN, PRINTED, LOSSES, WEIGHTS = "script", "printed", "losses", "trained weights"
RTOL = 1e-4
VAGUE = 1e-2
MORE = 4  # further runs of torch where MindSpore's differs
LARGE = 16 * 2**20  # bytes from which a file is linked into the folder of a run, not copied
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan|inf)(?![\w])", re.I)


@dataclass(frozen=True)
class Run:
    """What one run of the script said, and how it failed (None: it came to its end)."""

    said: tuple[Said, ...]
    failed: Mapping[str, Any] | None
    answer: Payload = field(default_factory=dict)

    def lines(self) -> tuple[Said, ...]:
        return tuple(one for one in self.said if one.kind != LOSS)

    def losses(self) -> tuple[Said, ...]:
        return tuple(one for one in self.said if one.kind == LOSS)


@dataclass(frozen=True)
class Difference:
    """The first place where MindSpore's run says something else."""

    torch: str
    mindspore: str
    what: str


@dataclass
class Compared:
    """How many numbers were compared, how many torch leaves open, and the first difference."""

    numbers: int = 0
    vague: int = 0
    first: Difference | None = None


def numbers_of(text: str) -> list[tuple[float, float]]:
    """Return the numbers of a text, each with half a unit of its last digit (0: a whole number)."""
    found = []
    for match in NUMBER.findall(text):
        digits, _, power = match.lower().partition("e")
        _, point, decimals = digits.partition(".")
        half = 0.5 * 10.0 ** (int(power or 0) - len(decimals)) if point or power else 0.0
        found.append((float(match), half))
    return found


def agrees(m: float, a: float, others: Sequence[float], half: float, k: float) -> bool | None:
    """Return whether a number counts as torch's; None where torch's own runs do not tell."""
    if m == a or (m != m and a != a):
        return True
    if not all(map(np.isfinite, (m, a, *others))):
        return None if any(b != a and not (a != a and b != b) for b in others) else False
    own = max((abs(a - b) for b in others), default=0.0)
    if own > VAGUE * abs(a) + 2 * half:
        return None
    whole = half == 0.0 and own == 0.0
    return not whole and abs(m - a) <= k * own + 2 * half + RTOL * abs(a)


def compare_lines(
    mine: Sequence[Said], torch: Sequence[Said], others: Sequence[Sequence[Said]], k: float
) -> Compared:
    """Compare what was printed, line by line; ``others`` are torch's further runs."""
    found = Compared()
    for number, a in enumerate(torch):
        wanted = numbers_of(a.text)
        again = [numbers_of(said[number].text) if number < len(said) else [] for said in others]
        if number >= len(mine):
            what = f"it says no more: {len(mine)} lines for {len(torch)}; torch goes on {a.text!r}"
            found.first = Difference(a.place, mine[-1].place if mine else "", what)
            return found
        m = mine[number]
        given = numbers_of(m.text)
        if any(len(numbers) != len(wanted) for numbers in again):
            found.vague += len(wanted)
            continue
        if len(given) != len(wanted):
            found.first = Difference(a.place, m.place, f"{m.text!r} for {a.text!r}")
            return found
        for (value, half), (one, halved), *rest in zip(given, wanted, *again, strict=True):
            same = agrees(value, one, [number for number, _ in rest], max(half, halved), k)
            found.vague += same is None
            found.numbers += same is not None
            if same is False:
                found.first = Difference(a.place, m.place, f"{m.text!r} for {a.text!r}")
                return found
    if len(mine) > len(torch):
        m = mine[len(torch)]
        what = f"it says more: {len(mine)} lines for {len(torch)}, the first {m.text!r}"
        found.first = Difference("", m.place, what)
    return found


def compare_weights(
    mine: Payload, torch: Run, others: Sequence[Run], k: float
) -> Iterator[tuple[str, str, int]]:
    """Yield each trained tensor, what is wrong with it, and how many numbers were compared."""
    for row in mine["trained"]:
        model = torch.answer["models"][row["model"]]
        start, end = (_tensors(model.get("used") or model["built"]), _tensors(model["trained"]))
        again = [_tensors(run.answer["models"][row["model"]]["trained"]) for run in others]
        store = ArrayStore(Path(row["folder"]))
        for tensor in row["tensors"]:
            key, layout = tensor["key"], tensor["layout"]
            if key.endswith("num_batches_tracked"):
                continue
            a, s, *rest = (
                np.asarray(apply_layout(one[key], layout), np.float64)
                for one in (end, start, *again)
            )
            m = np.asarray(store.get(tensor["array"]), np.float64)
            own = max((float(np.linalg.norm(a - b)) for b in rest), default=0.0)
            moved, size = float(np.linalg.norm(a - s)), float(np.linalg.norm(a))
            error, name = float(np.linalg.norm(m - a)), f"{model['class']}.{key}"
            if own > VAGUE * max(moved, RTOL * size):
                yield name, "", 0
                continue
            limit = k * own + (min(RTOL * size, moved / 10) if moved else 1e-6 * size)
            fault = f"off by {error:.3g} (norm), {limit:.3g} allowed; torch moved it by {moved:.3g}"
            yield name, "" if error <= limit else fault, int(a.size)


def _tensors(kept: Payload) -> dict[str, Array]:
    store = ArrayStore(Path(kept["folder"]))
    return {row["key"]: store.get(row["array"]) for row in kept["tensors"]}


def first_step(mine: Run, torch: Run, others: Sequence[Run], k: float) -> tuple[Curve, str, int]:
    """Return the losses of both sides, the first step that differs, and how many were compared.

    Nothing is compared where the sides did not make as many steps: a step of MindSpore's may be
    several `backward` of torch's.
    """
    ours, theirs, *again = (run.losses() for run in (mine, torch, *others))
    curve = Curve(torch=tuple(s.value for s in theirs), mindspore=tuple(s.value for s in ours))
    if any(len(losses) != len(theirs) for losses in (ours, *again)):
        return curve, "", 0
    for number, (m, a, *rest) in enumerate(zip(ours, theirs, *again, strict=True)):
        if agrees(m.value, a.value, [b.value for b in rest], 1e-7, k) is False:
            places = f"{a.place} -> {m.place}"
            text = f"step {number + 1} ({places}): loss {m.value:.7g} for {a.value:.7g}"
            return curve, text, number
    return curve, "", len(theirs)


@dataclass(frozen=True)
class Script:
    """A script of a conversion: its command, and the folders it is run from on both sides."""

    command: str
    source: str
    torch_root: Path
    ms_root: Path
    files: tuple[str, ...]


def script_of(command: str, record: Record, request: VerifyRequest, source: Path) -> Script:
    """Return the script that a command names. Raises Problem where the record has no such file."""
    words = shlex.split(command)
    files = {file.source: file for file in record.files}
    found = files.get(Path(words[0]).as_posix()) if words else None
    if found is None or not _is_script(found):
        known = [file.source for file in record.own_files if _is_script(file)]
        raise Problem(
            command, "no script of this conversion", "the first word names a converted .py file, "
            "as its path stands in the record", f"one of {', '.join(known[:8])}",
        )  # fmt: skip
    output = request.output_root.resolve()
    root = output.parent if output.is_file() else output
    command = shlex.join([found.output or found.source, *words[1:]])
    return Script(command, found.source, source.resolve(), root, tuple(sorted(files)))


def _is_script(file: FileResult) -> bool:
    return file.status in ("converted", "copied") and file.output.endswith(".py")


def placed(folders: Sequence[Path], target: Path, leave: Callable[[Path], bool]) -> Path:
    """Copy folders, one over the other, to run in: what a script writes costs nobody a file.

    Large files are linked; they are data, and read.
    """
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            relative = path.relative_to(folder)
            if any(part in _LEFT for part in relative.parts) or leave(relative):
                continue
            place = target / relative
            if path.is_dir():
                place.mkdir(parents=True, exist_ok=True)
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)
            if path.stat().st_size > LARGE:
                place.symlink_to(path.resolve())
            else:
                shutil.copy2(path, place)
    return target


_LEFT = frozenset({".git", ".venv", "__pycache__", "node_modules", ".mypy_cache", ".pytest_cache"})


@dataclass
class Runs:
    """The runs of one script in torch, made when they are asked for; ``say`` reports progress."""

    sides: Sides
    script: Script
    request: VerifyRequest
    alone: bool
    say: Progress
    made: dict[tuple[bool, int], Run] = field(default_factory=dict)

    def get(self, counted: bool, number: int) -> Run:
        """Return a run; number 0 is from the weights as they are, the others from moved ones."""
        if (counted, number) not in self.made:
            self.say(f"{self.script.source}: torch, run {len(self.made) + 1}")
            where = self.sides.scratch / f"torch{len(self.made)}"
            alone = self.alone
            root = placed(
                [self.script.torch_root], where / "run", lambda p: alone and len(p.parts) > 1
            )
            command = [self.script.source, *shlex.split(self.script.command)[1:]]
            payload = {
                "root": str(root), "line": shlex.join(command), "folder": str(where / "kept"),
                "nudge": number, "counted": counted, "seed": self.request.seed,
            }  # fmt: skip
            self.made[counted, number] = _asked(self.sides.torch, payload, self.request.timeout)
        return self.made[counted, number]


def verify_script(
    sides: Sides, script: Script, record: Record, request: VerifyRequest, progress: Progress
) -> ModelResult:
    """Run the script on both sides and say what differs."""
    began = time.monotonic()
    runs = Runs(sides, script, request, record.kind == "file", progress)
    first = runs.get(True, 0)
    if first.failed:
        why = " ".join(str(first.failed[name]) for name in ("kind", "text", "place"))
        return _result(
            script, Verdict.NOT_RUN, (), began,
            f"in torch: {why}. Next: give arguments with which the original comes to its end, and "
            "the data that it reads",
        )  # fmt: skip
    rungs: list[Rung] = []
    detail: list[str] = []
    for mode in request.modes:
        # graph mode draws once for all calls: both sides do then
        counted = mode != "graph" or not first.answer.get("draws")
        torch, others = runs.get(counted, 0), [runs.get(counted, 1)]
        progress(f"{script.source}: MindSpore, {mode}")
        mine = _mindspore(runs, record, torch, mode, counted)
        found, notes = judged(mine, torch, others, mode, request.k)
        while not mine.failed and _differs(found) and len(others) <= MORE:
            others.append(runs.get(counted, len(others) + 1))
            found, notes = judged(mine, torch, others, mode, request.k)
        rungs += found
        detail += [note for note in notes if note not in detail]
    counts: list[Verdict] = [r.verdict for r in rungs if r.verdict is not Verdict.NOT_RUN]
    return _result(script, worst(counts or [Verdict.NOT_RUN]), rungs, began, "; ".join(detail))


def _differs(rungs: Sequence[Rung]) -> bool:
    return any(rung.verdict is Verdict.DIVERGED for rung in rungs)


def judged(
    mine: Run, torch: Run, others: Sequence[Run], mode: str, k: float
) -> tuple[list[Rung], list[str]]:
    """Return the rungs of one mode, and what there is to say."""
    notes: list[str] = []
    why = " ".join(str(mine.failed[n]) for n in ("kind", "text", "place")) if mine.failed else ""
    ran = Verdict.BLOCKED if mine.failed else Verdict.PASS
    rungs = [Rung(name=RUN, mode=mode, verdict=ran, checks=1, detail=why)]
    curve, step, steps = first_step(mine, torch, others, k)
    printed = compare_lines(mine.lines(), torch.lines(), [run.lines() for run in others], k)
    weights = list(compare_weights(mine.answer, torch, others, k))
    faults = {name: fault for name, fault, _ in weights if fault}
    elements = sum(size for *_, size in weights)
    # where every model has its Cell, others hold weights that are in no Module of torch's run
    left = len(torch.answer["models"]) > len(mine.answer["trained"])
    lone = mine.answer.get("lone", ()) if left else ()
    differs = printed.first is not None or bool(faults)
    if mine.failed:
        notes.append(f"{mode}: {why}")
    if lone:
        notes.append(f"{mode}: no model of torch's run has the weights of {', '.join(lone[:4])}")
    if step and differs:
        notes.append(f"{mode}: the first step that differs is {step}")
    if printed.first and not mine.failed:
        first = printed.first
        notes.append(f"{mode}: {first.torch or '-'} -> {first.mindspore or '-'}: {first.what}")
    same = not step and steps == len(curve.torch)
    told = "" if same or differs else "the sides count steps or scale losses otherwise"
    rungs.append(Rung(
        name=LOSSES, mode=mode, curve=curve, checks=len(curve.torch), elements=steps,
        verdict=_verdict(bool(step) and differs, steps if same else 0),
        detail=step if differs else told, why=None if steps else Why.NOTHING,
    ))  # fmt: skip
    rungs.append(Rung(
        name=PRINTED, mode=mode, checks=len(torch.lines()), elements=printed.numbers,
        verdict=_verdict(printed.first is not None, printed.numbers),
        detail=f"{printed.vague} numbers that torch does not repeat" if printed.vague else "",
        why=None if printed.numbers or printed.first else Why.NOTHING,
    ))  # fmt: skip
    rungs.append(Rung(
        name=WEIGHTS, mode=mode, checks=len(weights), elements=elements, faults=faults,
        verdict=Verdict.UNMATCHED if lone and not faults else _verdict(bool(faults), elements),
        why=None if weights or lone else Why.NO_TENSORS,
    ))  # fmt: skip
    return rungs, notes


def _verdict(wrong: bool, compared: int) -> Verdict:
    return Verdict.DIVERGED if wrong else Verdict.PASS if compared else Verdict.NOT_RUN


def _result(
    script: Script, verdict: Verdict, rungs: Sequence[Rung], began: float, detail: str
) -> ModelResult:
    return ModelResult(
        name=script.source, source=script.source, build=script.command, inputs=(), verdict=verdict,
        rungs=tuple(rungs), detail=detail, options=("--script", script.command),
        seconds=round(time.monotonic() - began, 2),
    )  # fmt: skip


def _mindspore(runs: Runs, record: Record, torch: Run, mode: str, counted: bool) -> Run:
    script, where = runs.script, runs.sides.scratch / f"mindspore_{mode}"

    def is_apart(path: Path) -> bool:
        return runs.alone and len(path.parts) > 1

    root = placed(
        [script.torch_root], where / "run", lambda path: path.suffix == ".py" or is_apart(path)
    )
    root = placed([script.ms_root], root, is_apart)
    payload = {
        "root": str(root), "line": script.command, "folder": str(where / "kept"), "mode": mode,
        "models": torch.answer["models"], "weights": record.weights, "layouts": record.layouts,
        "seed": runs.request.seed, "counted": counted, "device": runs.request.device,
    }  # fmt: skip
    return _asked(runs.sides.mindspore, payload, runs.request.timeout)


def _asked(worker: Any, payload: Payload, timeout: float) -> Run:
    """Run a script in a process of its own: it leaves the frameworks changed."""
    worker.stop()
    try:
        answer = worker.call("script", payload, timeout)
    except LOST as lost:
        failed = {"kind": "process", "text": str(lost), "place": ""}
        return Run((), failed, {"models": [], "trained": [], "lone": ()})
    finally:
        worker.stop()
    return Run(tuple(Said(**one) for one in answer["said"]), answer["failed"], answer)
