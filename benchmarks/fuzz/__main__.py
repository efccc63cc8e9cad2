"""Generate torch programs, convert them, and look for what differs without a word.

    python benchmarks/fuzz --count 200 --seed 1 --out fuzz-out             values, both frameworks
    python benchmarks/fuzz --count 5000 --seed 1 --out fuzz-out --observe  kinds, torch alone

A program is one function, Module or training loop with definitions of its own; ten are written
to one file and converted as one project, while the processes run those before. Classes, worst first: SILENT (other values, no flag),
RUNS_ON (flagged, other values), INTERNAL (no output), LOUD (raises, not flagged), FLAGGED, RIGHT.
Programs that are SILENT, RUNS_ON, INTERNAL, LOUD or that violate an inferred kind are written to OUT,
two files for each cause, and reduced when all have run. The same numbers and seed give the same programs. Exit status 1
for SILENT, RUNS_ON, INTERNAL or a violation.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")

import torch_side
from programs import Program
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

WORST = ("SILENT", "RUNS_ON", "INTERNAL", "LOUD", "FLAGGED", "RIGHT")
ALIKE = 6  # files that share out their programs by kind
PER_CAUSE = 2  # programs of one cause that are reduced
SHRINK = 90  # seconds for one of them


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks/fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--count", type=int, default=200, help="programs (default 200)")
    parser.add_argument("--start", type=int, default=0, help="number of the first program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with its own workers")
    parser.add_argument("--batch", type=int, default=10, help="programs in one file")
    parser.add_argument("--out", type=Path, default=Path("fuzz-out"))
    parser.add_argument(
        "--observe", action="store_true", help="check the kinds; needs no MindSpore"
    )
    parser.add_argument("--no-graph", action="store_true", help="PyNative only")
    parser.add_argument("--bare", action="store_true", help="no program has a caller")
    parser.add_argument(
        "--no-shrink", action="store_true", help="write differing programs as they are"
    )
    parser.add_argument("--seconds", type=float, default=0, help="begin no file after this time")
    return parser.parse_args()


def main() -> int:
    options = _arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.jobs > 1:
        return _shared(options)
    warnings.simplefilter("ignore")
    torch_side.install_kit()
    log = options.out / f"{options.seed}-{options.start}.jsonl"
    with log.open("w", encoding="utf-8") as lines:
        for row in _observed(options) if options.observe else _run(options):
            print(json.dumps(row), file=lines, flush=True)
    return report([log])


def _shared(options: argparse.Namespace) -> int:
    """The same with several processes, each with a part of the numbers."""
    part = -(-options.count // options.jobs)
    starts = range(options.start, options.start + options.count, part)
    plain = [
        a
        for a in ("--observe", "--no-graph", "--no-shrink", "--bare")
        if getattr(options, a[2:].replace("-", "_"))
    ]
    runs = [
        subprocess.Popen(
            [sys.executable, str(Path(__file__).parent), "--start", str(start), "--count", str(part),
             "--seed", str(options.seed), "--batch", str(options.batch), "--out", str(options.out),
             "--seconds", str(options.seconds), *plain],
            stdout=subprocess.DEVNULL,
        )
        for start in starts
    ]  # fmt: skip
    for run in runs:
        run.wait()
    return report([options.out / f"{options.seed}-{start}.jsonl" for start in starts])


def _batches(options: argparse.Namespace) -> Iterator[tuple[int, list[Any]]]:
    import generate

    end = options.start + options.count
    size = options.batch
    until = time.monotonic() + options.seconds if options.seconds else float("inf")
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("programs", total=options.count)
        for start in range(options.start, end, ALIKE * size):
            stop = min(start + ALIKE * size, end)
            made = list(generate.programs(options.seed, start, stop, options.bare))
            # a program with a training step has its whole file analysed twice: they share files
            made.sort(key=lambda one: ".backward(" in one[0].text)
            for first in range(0, len(made), size):
                if time.monotonic() > until:
                    return
                part = made[first : first + size]
                yield start + first, part
                progress.advance(task, len(part))


# -- values --------------------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One row for each program and mode; what differs is reduced when all have run."""
    import runner

    bench = runner.Bench(("pynative",) if options.no_graph else ("pynative", "graph"))
    found: dict[str, list[tuple[Path, runner.Verdict]]] = {}
    try:
        for verdict in bench.stream(made for _, made in _batches(options)):
            program = verdict.program
            yield {
                "program": program.name, "kind": program.kind, "mode": verdict.mode,
                "class": verdict.what, "cause": verdict.cause, "flags": sorted(set(verdict.flags)),
                "profile": next((f for f in program.features if f.startswith("profile ")), program.kind),
            }  # fmt: skip
            if verdict.what in ("RIGHT", "FLAGGED"):
                continue
            alike = found.setdefault(f"{verdict.what} {_cause(verdict.cause)}", [])
            if len(alike) < PER_CAUSE:
                alike.append((_written(options.out, verdict), verdict))
        for cause, alike in found.items() if not options.no_shrink else ():
            for path, verdict in alike:
                program = _reduced(bench, verdict, cause)
                path.write_text(
                    _said(program, f"{verdict.mode}: {verdict.cause}"), encoding="utf-8"
                )
    finally:
        bench.close()


def _reduced(bench: Any, verdict: Any, cause: str) -> Program:
    """The least program found of which the same is said."""
    import shrink
    from torch_side import oracle

    def holds(one: Program) -> bool:
        made = oracle(one)
        return made is not None and any(
            v.mode == verdict.mode and f"{v.what} {_cause(v.cause)}" == cause
            for v in bench.folder([made])
        )

    return shrink.shrunk(verdict.program, holds, SHRINK)


def _cause(text: str) -> str:
    """The kind of a difference: without names and numbers."""
    text = re.sub(r"^\d+ |\[[^\]]*\]|'[^']*'", "", text.replace("\n", " "))
    return re.sub(r"[\d.]+|\s+", " ", text)[:60]


def _written(out: Path, verdict: Any) -> Path:
    """The file of a program that differs."""
    what = verdict.what.lower()
    path = out / f"{what}-{len(list(out.glob(f'{what}-*.py'))):03}-{verdict.program.name}.py"
    path.write_text(_said(verdict.program, f"{verdict.mode}: {verdict.cause}"), encoding="utf-8")
    return path


def _said(program: Program, cause: str) -> str:
    """A program with what is wrong with it."""
    said = "".join(f"# {line}\n" for line in cause.split("\n")[:6])
    others = "".join(f"\n# -- {name}\n{text}" for name, text in program.others.items())
    run = f"# {program.kind} {program.entry}{tuple(_shape(a) for a in program.calls[0])}\n"
    return said + run + program.text + others


def _shape(value: Any) -> Any:
    return f"{value.dtype}{list(value.shape)}" if hasattr(value, "dtype") else value


# -- kinds ---------------------------------------------------------------------------------------


def _observed(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One row for each violation, and one with counts for each file."""
    import cases
    import observe
    import shrink

    causes: Counter[str] = Counter()
    for start, made in _batches(options):
        programs = [p for p, _ in made]
        try:
            seen, failed = observe.observed(programs, cases.rows())
        except Exception as error:
            yield {"class": "INTERNAL", "cause": f"{start}: {type(error).__name__}: {error}"[:300]}
            continue
        yield {
            "looked": seen.looked,
            "known": seen.known,
            "programs": len(programs),
            "failed": failed,
        }
        for violation in seen.violations.values():
            yield {"class": "VIOLATION", "cause": str(violation), "file": start}
        for program, violation in seen.first_of(programs):
            cause = violation.kind
            causes[cause] += 1
            if causes[cause] > PER_CAUSE:
                continue

            def holds(one: Program, cause: str = cause) -> bool:
                try:
                    again, _ = observe.observed([one], cases.rows())
                except Exception:
                    return False
                return any(v.kind == cause for v in again.violations.values())

            if not options.no_shrink and holds(program):
                program = shrink.shrunk(program, holds, 20)
            number = len(list(options.out.glob("kind-*.py")))
            path = options.out / f"kind-{number:03}-{program.name}.py"
            path.write_text(_said(program, str(violation)), encoding="utf-8")


# -- report --------------------------------------------------------------------------------------


def report(logs: list[Path]) -> int:
    """Print what the logs of one run say; the exit status."""
    rows = [
        json.loads(line) for log in logs if log.exists() for line in log.read_text().splitlines()
    ]
    console = Console(width=140)
    violations = [r["cause"] for r in rows if r.get("class") == "VIOLATION"]
    if any("looked" in r for r in rows):
        counts = {k: sum(r.get(k, 0) for r in rows) for k in ("programs", "looked", "known")}
        console.print(f"{counts['programs']:,} programs, {counts['looked']:,} values seen, of known kind "
                      f"{counts['known']:,}; {len(violations):,} places violate their kind")  # fmt: skip
        for text in violations[:20]:
            console.print("  " + text, markup=False)
        failures = [r["cause"] for r in rows if r.get("class") == "INTERNAL"]
        for text in failures:
            console.print("  INTERNAL " + text, markup=False)
        return 1 if violations or failures else 0
    shown = Table("mode", *WORST, "all")
    for mode in dict.fromkeys(r["mode"] for r in rows):
        found = Counter(r["class"] for r in rows if r["mode"] == mode)
        shown.add_row(mode, *(f"{found[c]:,}" for c in WORST), f"{found.total():,}")
    console.print(shown)
    by_profile: dict[str, list[bool]] = {}
    for row in rows:
        if row["mode"] == "pynative":
            stops = any(not flag.startswith("GRF") for flag in row["flags"])
            by_profile.setdefault(row["profile"], []).append(not stops)
    for profile, free in sorted(by_profile.items()):
        console.print(
            f"{profile}: {sum(free):,} of {len(free):,} without a flag ({sum(free) / len(free):.1%})"
        )
    every = [one for free in by_profile.values() for one in free]
    console.print(
        f"all: {sum(every):,} of {len(every):,} without a flag ({sum(every) / max(len(every), 1):.1%})"
    )
    flags = Counter(flag for r in rows if r["mode"] == "pynative" for flag in r["flags"])
    console.print("flags: " + ", ".join(f"{flag} {count}" for flag, count in flags.most_common(12)))
    for row in rows:
        if row["class"] in ("SILENT", "RUNS_ON", "INTERNAL"):
            console.print(
                f"{row['class']} {row['mode']} {row['program']}: {row['cause'][:110]}", markup=False
            )
    return 1 if any(r["class"] in ("SILENT", "RUNS_ON", "INTERNAL") for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
