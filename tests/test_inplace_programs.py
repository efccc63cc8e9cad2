"""In: random functions with in-place operations. Out: what is not flagged equals torch."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import inplace_programs as programs
import pytest

from migrate.mapping import table
from migrate.records.outcomes import Outcome
from migrate.records.result import Entry
from migrate.workspace.project import convert_text

# Runs every function of a module on the same numbers and differentiates the sum of its squares; one
# that raises gives its error. All numbers are whole and small: both frameworks are exact.
RUNNER = """
import importlib.util, json, sys
import numpy as np

path, framework = sys.argv[1:3]
names = json.loads(sys.argv[3])
spec = importlib.util.spec_from_file_location("programs", path)
module = importlib.util.module_from_spec(spec)
if framework == "mindspore":
    import mindspore as ms
    ms.set_context(pynative_synchronize=True)
    tensor, array = ms.Tensor, lambda t: t.asnumpy()

    def gradient(function, x):
        return ms.grad(function)(x).asnumpy().tolist()
else:
    import torch
    tensor, array = torch.tensor, lambda t: t.detach().numpy()

    def gradient(function, x):
        x.requires_grad_(True)
        function(x).backward()
        return x.grad.numpy().tolist()
spec.loader.exec_module(module)
found = {}


def numbers():
    return tensor(np.arange(-2, 4, dtype=np.float32).reshape(2, 3))


def attempt(key, action):
    try:
        found[key] = action()
    except Exception as error:
        found[key] = f"{type(error).__name__}: {error}"


def values(function, x):
    return [array(v).tolist() for v in function(x)]


def squares(function, x):
    return gradient(lambda x: sum((v * v).sum() for v in function(x)), x)


for asked, action in (("values", values), ("gradient", squares)):
    for name in names:
        for flag in (False, True):
            def run(x, name=name, flag=flag):
                return getattr(module, name)(x, flag)

            attempt(f"{name} {asked} {flag}", lambda: action(run, numbers()))
print("RESULT " + json.dumps(found))
"""


def run_all(source: str, framework: str, names: list[str], folder: Path) -> dict[str, object]:
    path = folder / f"in_{framework}.py"
    path.write_text(source)
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, str(path), framework, json.dumps(names)],
        capture_output=True, text=True, timeout=240,
        env={**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2", "GLOG_v": "3"},
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert lines, done.stderr[-2000:]
    found: dict[str, object] = json.loads(lines[0].removeprefix("RESULT "))
    return found


def unflagged(source: str, entries: tuple[Entry, ...]) -> list[str]:
    """The functions of the source in which nothing was flagged."""
    lines = {e.line for e in entries if e.outcome is Outcome.FLAGGED}
    functions = [n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)]
    return [f.name for f in functions if lines.isdisjoint(range(f.lineno, f.end_lineno + 1))]


def bodies(source: str) -> dict[str, str]:
    found = (n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef))
    return {n.name: ast.unparse(n) for n in found}


def differences(source: str, folder: Path) -> tuple[list[str], int]:
    """The programs that came out different, shortest first, and how many runs were compared."""
    converted = convert_text(source, table.load(()))
    names = unflagged(source, converted.entries)
    theirs = run_all(source, "torch", names, folder)
    ran = {key: value for key, value in theirs.items() if not isinstance(value, str)}
    # One exception under ms.grad and MindSpore 2.10 refuses a[0] = v for the rest of the process:
    # what torch cannot run is not tried.
    every = [f"{asked} {flag}" for asked in ("values", "gradient") for flag in (False, True)]
    fine = [n for n in names if {f"{n} {how}" for how in every} <= ran.keys()]
    ran = {key: value for key, value in ran.items() if key.split()[0] in fine}
    ours = run_all(converted.text, "mindspore", fine, folder)
    wrong = {key.split()[0]: key for key, value in ran.items() if ours[key] != value}
    before, after = bodies(source), bodies(converted.text)
    shown = [
        f"{before[n]}\n  became\n{after[n]}\n{key}, torch: {theirs[key]}\nMindSpore: {ours[key]}"
        for n, key in wrong.items()
    ]
    return sorted(shown, key=len), len(ran)


GRAMMARS = {
    "plain": programs.PLAIN,
    "layers": programs.LAYERS,
    "elements": programs.ELEMENTS,
    "writes": programs.WRITES,
    "functions": programs.FUNCTIONS,
    "boxes": programs.BOXES,
    "calls": programs.CALLS,
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_what_is_not_flagged_is_the_same(name: str, tmp_path: Path) -> None:
    wrong, compared = differences(programs.module(9, 300, GRAMMARS[name]), tmp_path)
    assert compared >= 200, "nearly everything was flagged: nothing was shown"
    assert not wrong, f"{len(wrong)} functions of {compared} runs differ; the shortest:\n{wrong[0]}"
