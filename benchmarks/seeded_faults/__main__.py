"""In: right models and kinds of faults. Out: how many faults verify finds and names, and alarms.

``python benchmarks/seeded_faults --out DIR`` writes result.json and prints the table that
docs/verify.md holds. Exit status 1 when fewer than 97 % are named or a right model is accused.
The same command goes on where it was stopped; ``--part 1/3`` runs a third, and after all thirds a
run without it only adds up.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from judges import Heard, Named, by_plain, by_verify, is_line, is_right, share
from runs import Job, all_done, open_rows, part_of
from workload import Fault, Model, clean_models, faults, own_models, seeded

from migrate.parity.ladder import verify_with
from migrate.parity.request import VerifyRequest
from migrate.parity.session import Sides
from migrate.records.result import ModelResult
from migrate.workspace.record import NAME

WANTED = 0.97
CALLED = {"verify": "torch2ms verify", "allclose": "`allclose(1e-5)` of each Cell",
          "means": "means of each Cell, 1e-5"}  # fmt: skip
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
    for judge in CALLED:
        shares = [share(seeded_rows, judge, what) for what in ("found", "named", "line", "cured")]
        lines.append(f"| {' | '.join((CALLED[judge], *shares, share(clean, judge, 'found')))} |")
    return "\n".join(lines)


def jobs_of(args: argparse.Namespace, scratch: Path) -> tuple[list[Job], list[Job], list[str]]:
    """Faults and right models as jobs, and the kinds that no model has a place for."""
    own = own_models(scratch)
    chosen, missing = faults(own, args.most)
    models = [*own, *clean_models(scratch)]

    def spoilt(fault: Fault) -> Job:
        name = f"{fault.kind} in {fault.model.name}:{fault.site.first} {fault.site.before}"
        return Job(name, lambda sides: seeded_row(sides, fault, scratch))

    def right(model: Model, seed: int) -> Job:
        modes = ("pynative", "graph") if seed == 0 else ("pynative",)
        name = f"{model.name} {model.build} {model.inputs}, seed {seed}"
        return Job(name, lambda sides: clean_row(sides, model, seed, modes))

    bad = [spoilt(fault) for fault in chosen]
    clean = [right(model, seed) for seed in range(args.seeds) for model in models]
    wanted = [[job for job in jobs if args.only in job.name] for jobs in (bad, clean)]
    first, second = (part_of(jobs, *args.part, args.draw) for jobs in wanted)
    return first, second, missing


def told(bad: list[dict[str, Any]], clean: list[dict[str, Any]]) -> Iterator[str]:
    """The table, and each run that is not as it should be."""
    yield summary(bad, clean)
    for row in bad:
        if not row["verify"]["named"]:
            yield (f"\n{row['kind']} in {row['model']}:{row['line']} {row['before']} -> "
                   f"{row['after']}\n  {row['verdict']}: {row['verify']['text']}")  # fmt: skip
    for row in clean:
        if row["verdict"] not in FINE:
            yield f"\n{row['model']}, seed {row['seed']}: {row['verdict']} {row['verify']['text']}"
    spent = [sum(row["cpu"][side] for row in (*bad, *clean)) for side in (0, 1)]
    yield f"\ncomputed: torch {spent[0]:.0f} s, MindSpore {spent[1]:.0f} s"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=5, help="of each right model; 0: none")
    parser.add_argument("--most", type=int, default=2, help="places for each kind of fault")
    parser.add_argument("--part", type=_part, default=(1, 1), help="2/3: the second third")
    parser.add_argument("--draw", type=int, default=0, help="the seed that deals out the parts")
    parser.add_argument("--only", default="", help="part of the name of a fault or a model")
    return parser.parse_args()


def _part(text: str) -> tuple[int, int]:
    number, _, of = text.partition("/")
    if not 1 <= int(number) <= int(of):
        raise ValueError(text)
    return int(number), int(of)


def main() -> int:
    """Run what has no row yet, and say what all rows of the chosen jobs say; the exit status."""
    args, began = parsed(), time.monotonic()
    args.out.mkdir(parents=True, exist_ok=True)
    rows = open_rows(args.out)
    with tempfile.TemporaryDirectory(prefix="torch2ms_faults") as folder:
        spoilt, right, missing = jobs_of(args, Path(folder))
        broken = all_done((*spoilt, *right), rows, args.jobs, Path(folder))
    bad, clean = ([rows.known[job.name] for job in jobs if job.name in rows.known]
                  for jobs in (spoilt, right))  # fmt: skip
    whole = {"faults": bad, "clean": clean, "errors": broken, "kinds without a place": missing,
             "seconds": round(time.monotonic() - began)}  # fmt: skip
    (args.out / "result.json").write_text(json.dumps(whole, indent=1), encoding="utf-8")
    print("\n".join(told(bad, clean)))
    print("".join(f"\n{error}" for error in broken), f"\n{missing} no place\n{whole['seconds']} s")
    named = sum(row["verify"]["named"] for row in bad)
    wrong = any(row["verify"]["found"] for row in clean)
    return int(bool(broken or missing or wrong or named < WANTED * len(bad)))


if __name__ == "__main__":
    sys.exit(main())
