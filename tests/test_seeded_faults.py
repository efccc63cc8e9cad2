"""In: patterns, kinds of faults. Out: faults land where they should, and verify names them."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "seeded_faults"


@pytest.fixture(scope="module")
def pattern() -> ModuleType:
    spec = importlib.util.spec_from_file_location("seeded_pattern", BENCHMARK / "pattern.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("program", "find", "put", "after"),
    [
        ("a = nn.Norm(3, eps=1e-3)\n", "nn.Norm(..., eps=_e)", "nn.Norm(...)", "a = nn.Norm(3)\n"),
        ("a = nn.Norm(3)\n", "nn.Norm(..., eps=_e)", "nn.Norm(...)", None),
        ("a = nn.Norm(3, 4)\n", "nn.Norm(_c)", "nn.Norm(_c, eps=1)", None),
        ("a = ops.f(x, y)\n", "ops.f(_a, _b)", "ops.f(_b, _a)", "a = ops.f(y, x)\n"),
        ("a = ops.f(x, x)\n", "ops.f(_a, _b)", "ops.f(_b, _a)", None),  # the same code
        ("a = f(x, y)\n", "f(_a, _a)", "g(_a)", None),  # one blank, two expressions
        ("a = 2 * ops.e(x)\n", "ops.e(_x)", "_x + 1", "a = 2 * (x + 1)\n"),
        ("m = m.mul(2)\n", "m = m.mul(_v)", "m.mul_(_v)", "m.mul_(2)\n"),
        ("buffer(s, 'a', x)\n", "buffer(s, 'a', _x)", "s.a = 0.0", "s.a = 0.0\n"),
        ("t.a.grad = False\n", "t._n.grad = False", "t._n.grad = True", "t.a.grad = True\n"),
    ],
)  # fmt: skip
def test_a_pattern_fits_or_does_not(pattern, program, find, put, after):
    found = list(pattern.sites(program, find, put))
    assert [site.program for site in found] == ([] if after is None else [after])


def test_the_place_is_known_and_lines_stay(pattern):
    head = "class Net:\n    def construct(self, x):\n"
    program = f"{head}        y = f(\n            x)\n        return y\n"
    (site,) = pattern.sites(program, "f(_x)", "g(_x)")
    assert (site.owner, site.function, site.first, site.last) == ("Net", "construct", 3, 4)
    assert ast.parse(site.program).body[0].lineno == 1
    assert site.program.splitlines()[2] == "        y = g(x)"


def test_every_kind_has_a_place():
    program = (
        "import sys, tempfile, pathlib; sys.path.insert(0, sys.argv[1])\n"
        "import workload\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    found, missing = workload.faults(workload.own_models(pathlib.Path(folder)), 1)\n"
        "print(len(found), len({f.model.name for f in found}), missing)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, BENCHMARK], capture_output=True,
                          text=True, check=True, timeout=300)  # fmt: skip
    kinds, models, missing = done.stdout.split(maxsplit=2)
    assert missing.strip() == "[]"
    assert int(kinds) >= 60 and int(models) >= 8


@pytest.mark.slow
def test_a_sample_of_the_faults_is_named_and_no_right_model_is_accused(tmp_path):
    run = [sys.executable, BENCHMARK, "--out", tmp_path, "--jobs", "1", "--part", "1/11",
           "--seeds", "1"]  # fmt: skip
    done = subprocess.run(run, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    result = json.loads((tmp_path / "result.json").read_text())
    assert len(result["faults"]) >= 12 and len(result["clean"]) >= 6 and not result["errors"]


@pytest.fixture
def runs(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARK))
    return importlib.import_module("runs")


def test_the_parts_are_a_partition_and_always_the_same(runs):
    jobs = [runs.Job(f"job {number}", lambda sides: {}) for number in range(20)]
    parts = [runs.part_of(jobs, number, 3, draw=1) for number in (1, 2, 3)]
    names = [job.name for part in parts for job in part]
    assert sorted(names) == sorted(job.name for job in jobs)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert parts[0] == runs.part_of(jobs, 1, 3, draw=1) != runs.part_of(jobs, 1, 3, draw=2)


def test_a_row_is_kept_until_the_code_changes(runs, tmp_path, monkeypatch):
    runs.open_rows(tmp_path).keep("a", {"verdict": "PASS"})
    with (tmp_path / "rows.jsonl").open("a") as file:
        file.write('\n{"digest": "half a li')  # the run was killed here
    runs.open_rows(tmp_path).keep("b", {"verdict": "KERNEL"})
    known = {"a": {"verdict": "PASS"}, "b": {"verdict": "KERNEL"}}
    assert runs.open_rows(tmp_path).known == known
    monkeypatch.setattr(runs, "_digest", lambda: "of other code")
    assert runs.open_rows(tmp_path).known == {}


def test_what_torch_says_is_asked_for_once(runs, tmp_path, monkeypatch):
    """The model is built again only for what cannot be remembered."""
    remembered = importlib.import_module("remembered")
    asked = []

    def call(self, command, payload, timeout, on_event=None):
        asked.append(command)
        if "folder" in payload:
            Path(payload["folder"]).mkdir(parents=True, exist_ok=True)
            (Path(payload["folder"]) / "a0.npy").write_text(command)
        return {"of": command}

    monkeypatch.setattr(remembered.Worker, "call", call)
    memory = tmp_path / "memory"
    memory.mkdir()

    def verified(name, seed=0):
        worker = remembered.Remembering("torch_side", Path(), tmp_path, memory_folder=memory)
        for command in ("build", "record"):
            folder = str(tmp_path / name / command)
            answer = worker.call(command, {"seed": seed, "folder": folder}, 1.0)
            assert answer == {"of": command}
            assert (tmp_path / name / command / "a0.npy").read_text() == command
        return worker

    verified("one")
    assert asked == ["build", "record"]
    second = verified("two")
    assert asked == ["build", "record"]
    second.call("inner_calls", {}, 1.0)
    assert asked[2:] == ["build", "inner_calls"]
    verified("three", seed=1)
    assert asked[4:] == ["build", "record"]
