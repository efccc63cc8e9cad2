"""In: the arguments of ``torch2ms verify``. Out: a verdict for every model, and the result file."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrate.cli.terminal import need
from migrate.records.outcomes import Problem, Verdict
from migrate.records.result import ModelResult, Rung, Verification
from migrate.workspace import record, settings
from migrate.workspace.outputs import write_atomically
from migrate.workspace.record import Located
from migrate.workspace.settings import VerifySettings

if TYPE_CHECKING:
    from migrate.parity.request import VerifyRequest

_ORDER = tuple(Verdict)
_PASSED = _ORDER.index(Verdict.NOT_RUN)
_UNMATCHED = 8  # names listed
_INTERRUPTED = 130
_STEPS = 3
JOURNAL = ".partial"
REPRODUCTIONS = "torch2ms_reproductions"


def run(
    out: Path, given: VerifySettings, json: Path | None = None, tests: Path | None = None
) -> int:
    """Verify, print, write torch2ms.verify.json. Gives the exit code; raises Problem.

    What ``given`` leaves out is taken from pyproject.toml.
    """
    located = record.locate(out)
    need("numpy", "mindspore")
    from migrate.parity.climb import close_journal

    found = settings.nearest(located.root, Path.cwd()).verify
    if given.cluster or found.cluster:
        need("distributed", extra="cluster")
    requests = [replace(one, tests=tests) for one in _requests(located, given, found)]
    if not any(request.journal and request.journal.exists() for request in requests):
        shutil.rmtree(located.root / REPRODUCTIONS, ignore_errors=True)  # of an earlier run
    result = _verify(requests)
    for target in (located.verification, *([json] if json else [])):
        data = record.text(result)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, lambda path, data=data: path.write_bytes(data))  # type: ignore[misc]
    for line in lines(result, out):
        print(line)
    if result.partial:
        print("Interrupted: the result is partial. Run the same command again to go on.")
        return _INTERRUPTED
    close_journal(requests[0])
    return 1 if _ORDER.index(result.verdict) >= _PASSED else 0


def verified(out: Path, given: VerifySettings) -> Verification:
    """What verify finds, with the settings of the nearest pyproject.toml; nothing is written."""
    located = record.locate(out)
    need("numpy", "mindspore")
    found = settings.nearest(located.root, Path.cwd()).verify
    requests = _requests(located, given, found)
    return _verify([replace(one, journal=None, reproductions=None) for one in requests])


def _requests(
    located: Located, given: VerifySettings, found: VerifySettings
) -> Iterator[VerifyRequest]:
    """One request for what the command line asks, else one for each model of the settings."""
    from migrate.parity.request import VerifyRequest

    kept = located.verification.with_name(located.verification.name + JOURNAL)
    common = VerifyRequest(located.path, located.root, file=located.file, journal=kept)
    common = replace(common, reproductions=located.root / REPRODUCTIONS)
    common = applied(common, given, found, "jobs cluster seed steps")
    common = trained(common, given, found)
    scripts = given.script or (() if given.build or given.input else found.script)
    if scripts:
        yield replace(common, scripts=scripts, journal=None)
        return
    models = [m for m in found.model if not located.file or m.file in ("", located.file)]
    if given.build or given.input or not models:
        builds, inputs = given.build or found.build, given.input or found.input
        yield replace(common, builds=builds, inputs=inputs)
        return
    for model in models:
        file = model.file or located.file
        yield replace(common, builds=(model.build,), inputs=model.input, file=file)


def trained(request: VerifyRequest, given: VerifySettings, found: VerifySettings) -> VerifyRequest:
    """Return the request with the loss, the targets and the optimizer of the steps."""
    asked = replace(
        request, loss=given.loss or found.loss, targets=given.target or found.target,
        optimizer=given.optimizer or found.optimizer,
    )  # fmt: skip
    needed = (asked.loss or asked.optimizer) and not asked.steps
    return replace(asked, steps=_STEPS) if needed else asked


def applied(
    request: VerifyRequest, given: VerifySettings, found: VerifySettings, more: str = ""
) -> VerifyRequest:
    """Return the request with what the command line says, or else the settings, of these names."""
    changed: dict[str, Any] = {}
    for name in f"timeout k rtol atol torch_python device memory {more}".split():
        own = getattr(given, name)
        value = getattr(found, name) if own is None else own
        changed |= {} if value is None else {name: value}
    mode = given.mode or found.mode or "both"
    return replace(
        request, modes=("pynative", "graph") if mode == "both" else (mode,),
        magnitudes=given.magnitudes or found.magnitudes, **changed,
    )  # fmt: skip


def _verify(requests: Sequence[VerifyRequest]) -> Verification:
    from migrate.parity.ladder import Interrupted, verify

    try:
        first, *more = requests
        return verify(first, lambda line: print(line, file=sys.stderr), *more)
    except Interrupted as interrupted:
        return interrupted.found
    except ValueError as error:
        raise Problem(
            "--input", "not an input", str(error), "see torch2ms verify --help"
        ) from error


def lines(result: Verification, out: Path) -> Iterator[str]:
    """What verify found, model by model."""
    for model in result.models:
        yield from _model_lines(model)
    elements = checks = 0
    for model in result.models:  # the rungs of a script have no checks of Cells
        parts = model.checks or model.rungs
        elements += sum(part.elements for part in parts)
        checks += len(parts)
    yield (
        f"{result.verdict.value}: {len(result.models)} models, {checks:,} checks, "
        f"{elements:,} numbers compared"
    )
    yield f"Next: torch2ms report {out} -o report.html"


def rung_lines(rungs: Sequence[Rung]) -> Iterator[str]:
    """Yield the verdicts of the rungs of a model, and what no input reached."""
    for mode in sorted({rung.mode for rung in rungs}, reverse=True):
        shown = ", ".join(f"{r.name} {r.verdict.value}" for r in rungs if r.mode == mode)
        yield f"           {mode}: {shown}"
    unreached = [piece for rung in rungs for piece in rung.unreached]
    yield from (f"           reached by no input: {piece}" for piece in unreached[:_UNMATCHED])
    if len(unreached) > _UNMATCHED:
        yield f"           reached by no input: {len(unreached) - _UNMATCHED} more"


def _model_lines(model: ModelResult) -> Iterator[str]:
    yield f"{model.verdict.value:<10} {model.source}: {model.build}  ({', '.join(model.inputs)})"
    if model.detail:
        yield f"           {model.detail}"
    if model.weights_total:
        yield f"           weights: {model.weights_matched} of {model.weights_total} matched"
    for name in model.unmatched[:_UNMATCHED]:
        yield f"           without partner: {name}"
    yield from rung_lines(model.rungs)
    if model.guilty:
        guilty = model.guilty
        yield f"           first guilty Cell: {guilty.mindspore} ({guilty.rung}, {guilty.mode})"
        yield f"             {guilty.torch_place} -> {guilty.mindspore_place}"
        yield f"             {guilty.cause}"
        if guilty.torch_call:
            yield f"             first call that differs: {guilty.torch_call}"
            yield f"               in MindSpore: {guilty.mindspore_call or 'none follows'}"
        if guilty.reproduction:
            yield f"             alone: python {guilty.reproduction}"
