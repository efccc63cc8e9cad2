"""In: right models and kinds of faults. Out: how many faults verify finds and names, and alarms.

``python benchmarks/seeded_faults --out DIR`` writes result.json and prints the table that
docs/verify.md holds. Exit status 1 when fewer than 97 % are named or a right model is accused.
"""

from __future__ import annotations

import argparse
import json
import queue
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from judges import Heard, Named, by_plain, by_verify, is_line, is_right, share
from workload import Fault, Model, clean_models, faults, own_models, seeded

from migrate.parity.ladder import open_sides, verify_with
from migrate.parity.request import VerifyRequest
from migrate.parity.session import Sides
from migrate.record import NAME
from migrate.result import ModelResult

WANTED = 0.97
JUDGES = ("verify", "allclose", "means")
FINE = ("PASS", "KERNEL", "NONDET")
ACCUSED = ("DIVERGED", "SHAPE", "DTYPE", "PROPAGATED", "UNMATCHED")


def request(model: Model, folder: Path, modes: tuple[str, ...], seed: int) -> VerifyRequest:
    trains = bool(model.loss or model.optimizer)
    return VerifyRequest(
        folder / NAME, folder, builds=(model.build,), inputs=model.inputs, file=model.file,
        modes=modes, seed=seed, steps=3 if trains else 0,
        loss=(model.loss,) if model.loss else (), targets=model.targets,
        optimizer=(model.optimizer,) if model.optimizer else (),
    )  # fmt: skip


def looked(sides: Sides, asked: VerifyRequest) -> tuple[ModelResult, dict[str, Named]]:
    """Verify once; whom each judge names."""
    heard = sides.mindspore
    assert isinstance(heard, Heard)
    heard.events.clear()
    (model,) = verify_with((sides,), asked, lambda line: None).models
    return model, {
        "verify": by_verify(model), "allclose": by_plain(heard, "tolerance"),
        "means": by_plain(heard, "means"),
    }  # fmt: skip


def seeded_row(sides: Sides, fault: Fault, scratch: Path) -> dict[str, Any]:
    """What came of one fault."""
    folder = seeded(fault, Path(tempfile.mkdtemp(dir=scratch)) / "out")
    model, named = looked(sides, request(fault.model, folder, ("pynative",), 0))
    found = {judge: bool(one.rung) for judge, one in named.items()}
    found["verify"] = model.verdict.value not in FINE
    return {
        "kind": fault.kind, "model": fault.model.name, "line": fault.site.first,
        "before": fault.site.before, "after": fault.site.after, "rung": fault.rung,
        "verdict": model.verdict.value, "seconds": model.seconds, "detail": model.detail[:300],
        **{judge: judged(fault, one, found[judge]) for judge, one in named.items()},
    }  # fmt: skip


def judged(fault: Fault, named: Named, found: bool) -> dict[str, Any]:
    """What one judge says of one fault."""
    right = found and is_right(fault, named)
    return {
        "found": found, "named": right, "line": right and is_line(fault, named),
        "cured": right and "it passes with" in named.text,
        "text": named.text[:400], "call": named.call,
    }  # fmt: skip


def clean_row(sides: Sides, model: Model, seed: int, modes: tuple[str, ...]) -> dict[str, Any]:
    """What came of one right model."""
    result, named = looked(sides, request(model, model.folder, modes, seed))
    return {
        "model": model.name, "seed": seed, "verdict": result.verdict.value,
        "seconds": result.seconds, "detail": result.detail[:300],
        "verify": {"found": result.verdict.value in ACCUSED, "text": named["verify"].text[:400]},
        **{judge: {"found": bool(named[judge].rung), "text": named[judge].text}
           for judge in ("allclose", "means")},
    }  # fmt: skip


Job = Callable[[Sides], dict[str, Any]]


def all_done(jobs: Sequence[Job], workers: int, scratch: Path) -> list[dict[str, Any]]:
    """Every job by one of some pairs of workers; a job that raises is a row that says so."""
    free: queue.Queue[Sides] = queue.Queue()
    blank = VerifyRequest(scratch, scratch, jobs=workers)
    for number in range(workers):
        sides = open_sides(blank, scratch, number)
        plain = sides.mindspore
        heard = Heard(plain.side, plain.python, plain.scratch, plain.threads)
        free.put(replace(sides, mindspore=heard))

    def one(job: Job) -> dict[str, Any]:
        sides = free.get()
        try:
            return job(sides)
        except Exception:  # one line of the table, not the end of the run
            return {"error": traceback.format_exc()}
        finally:
            free.put(sides)

    try:
        with ThreadPoolExecutor(workers) as threads:
            return list(threads.map(one, jobs))
    finally:
        for _ in range(workers):
            free.get().close()


def summary(seeded_rows: list[dict[str, Any]], clean: list[dict[str, Any]]) -> str:
    """The table of docs/verify.md."""
    kinds = len({row["kind"] for row in seeded_rows})
    models = len({row["model"] for row in seeded_rows})
    lines = [
        f"{len(seeded_rows)} faults of {kinds} kinds in {models} models; "
        f"{len(clean)} runs of {len({row['model'] for row in clean})} right models.", "",
        "| judge | noticed | the guilty Cell or rung first | its line | with a cure | "
        "right models accused |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    told = {"verify": "torch2ms verify", "allclose": "`allclose(1e-5)` of each Cell",
            "means": "means of each Cell, 1e-5"}  # fmt: skip
    for judge in JUDGES:
        shares = [share(seeded_rows, judge, what) for what in ("found", "named", "line", "cured")]
        lines.append(f"| {' | '.join((told[judge], *shares, share(clean, judge, 'found')))} |")
    return "\n".join(lines)


def jobs_of(args: argparse.Namespace, scratch: Path) -> tuple[list[Job], list[Job], list[str]]:
    own = own_models(scratch)
    chosen, missing = faults(own, args.most)
    wanted = [f for f in chosen if not args.only or args.only in f"{f.kind} {f.model.name}"]
    seeds = [(model, seed) for model in (*own, *clean_models(scratch))
             if not args.only or args.only in model.name for seed in range(args.seeds)]  # fmt: skip
    step = max(1, args.every)

    def spoilt(fault: Fault) -> Job:
        return lambda sides: seeded_row(sides, fault, scratch)

    def right(model: Model, seed: int) -> Job:
        modes = ("pynative", "graph") if seed == 0 else ("pynative",)
        return lambda sides: clean_row(sides, model, seed, modes)

    return ([spoilt(fault) for fault in wanted[::step]],
            [right(model, seed) for model, seed in seeds[::step]], missing)  # fmt: skip


def main() -> int:
    """Run all of it; answers the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=5, help="of each right model; 0: none")
    parser.add_argument("--most", type=int, default=2, help="places for each kind of fault")
    parser.add_argument("--every", type=int, default=1, help="a sample: each n-th run")
    parser.add_argument("--only", default="", help="part of the name of a kind or a model")
    args = parser.parse_args()
    began = time.monotonic()
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="torch2ms_faults") as folder:
        spoilt, right, missing = jobs_of(args, Path(folder))
        rows = all_done((*spoilt, *right), args.jobs, Path(folder))
    broken = [row["error"] for row in rows if "error" in row]
    bad = [row for row in rows[: len(spoilt)] if "error" not in row]
    clean = [row for row in rows[len(spoilt) :] if "error" not in row]
    whole = {"faults": bad, "clean": clean, "errors": broken, "kinds without a place": missing,
             "seconds": round(time.monotonic() - began)}  # fmt: skip
    (args.out / "result.json").write_text(json.dumps(whole, indent=1), encoding="utf-8")
    print(summary(bad, clean))
    for row in bad:
        if not row["verify"]["named"]:
            print(f"\n{row['kind']} in {row['model']}:{row['line']} {row['before']} -> "
                  f"{row['after']}\n  {row['verdict']}: {row['verify']['text']}")  # fmt: skip
    for row in clean:
        if row["verdict"] not in FINE:
            print(f"\n{row['model']}, seed {row['seed']}: {row['verdict']} {row['verify']['text']}")
    print("".join(f"\n{error}" for error in broken), f"\n{missing} no place\n{whole['seconds']} s")
    named = sum(row["verify"]["named"] for row in bad)
    wrong = any(row["verify"]["found"] for row in clean)
    return int(bool(broken or missing or wrong or named < WANTED * len(bad)))


if __name__ == "__main__":
    sys.exit(main())
