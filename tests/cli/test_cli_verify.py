"""In: options and settings of verify. Out: the requests, exit codes and the result file."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

import migrate.parity.ladder as ladder
from migrate.parity.compare import worst
from migrate.parity.request import VerifyRequest, to_install
from migrate.records.outcomes import Problem, Verdict
from migrate.records.result import ModelResult, Verification
from migrate.workspace.record import locate, read_verification

CODE = "import torch\n\n\ndef f(x):\n    return torch.abs(x)\n"
MODELS = """
[tool.torch2ms.verify]
k = 2.5
mode = "graph"

[[tool.torch2ms.verify.model]]
file = "a.py"
build = "Net(1)"
input = ["2x3"]

[[tool.torch2ms.verify.model]]
file = "b.py"
build = "Net(2)"
"""


def test_a_missing_package_is_named_with_its_command(tmp_path: Path) -> None:
    (tmp_path / "utils").mkdir()
    error = "ModuleNotFoundError: No module named '{}'"
    told = {name: to_install(error.format(name), tmp_path) for name in ("cv2", "einops", "a.b")}
    python = shlex.quote(sys.executable)
    assert told["cv2"] == f"the package cv2 is missing: {python} -m pip install opencv-python"
    assert told["einops"].endswith(" -m pip install einops")
    assert told["a.b"].startswith("the package a is missing")
    assert to_install(error.format("yaml"), tmp_path, Path("/torch env/python")) == (
        "the package yaml is missing: '/torch env/python' -m pip install PyYAML"
    )
    assert "convert and verify the folder" in to_install(error.format("utils.x"), tmp_path)
    assert to_install("RuntimeError: no", tmp_path) == ""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[VerifyRequest]:
    """The requests that reach the engine; each answers with the verdict that its build names."""
    requests: list[VerifyRequest] = []

    def answer(request: VerifyRequest) -> ModelResult:
        build = request.builds[0] if request.builds else "PASS"
        verdict = Verdict(build) if build in Verdict.__members__ else Verdict.PASS
        return ModelResult(
            name=build, source=request.file, build=build, inputs=request.inputs, verdict=verdict
        )

    def verify(request: VerifyRequest, progress: object, *more: VerifyRequest) -> Verification:
        requests.extend((request, *more))
        models = tuple(answer(one) for one in (request, *more))
        return Verification(verdict=worst([m.verdict for m in models]), models=models)

    monkeypatch.setattr(ladder, "verify", verify)
    return requests


@pytest.fixture
def out(run, write) -> Path:
    root = write({"a.py": CODE, "b.py": CODE})
    assert run("convert", root, "-o", root.parent / "out").code == 0
    return root.parent / "out"


def test_options_reach_the_engine(run, out: Path, asked: list[VerifyRequest]) -> None:
    options = "--build Net() --input 2x3 --input 2:int64<5 --mode pynative --k 4 --timeout 7"
    options += " --rtol 0.1 --atol 0.2 --jobs 2 --torch-python /usr/bin/python3"
    options += " --device Ascend --memory 6 --cluster local:2"
    assert run("verify", out / "b.py", *options.split()).code == 0
    assert asked == [
        VerifyRequest(
            record=out / "torch2ms.json",
            output_root=out,
            builds=("Net()",),
            inputs=("2x3", "2:int64<5"),
            file="b.py",
            modes=("pynative",),
            rtol=0.1,
            atol=0.2,
            k=4.0,
            jobs=2,
            timeout=7.0,
            torch_python=Path("/usr/bin/python3"),
            device="Ascend",
            memory=6.0,
            cluster="local:2",
        )
    ]


def test_without_options_models_are_found(run, out: Path, asked: list[VerifyRequest]) -> None:
    assert run("verify", out).code == 0
    assert asked == [VerifyRequest(record=out / "torch2ms.json", output_root=out)]


def test_settings_name_models_and_options_win(run, out: Path, asked: list[VerifyRequest]) -> None:
    (out / "pyproject.toml").write_text(MODELS)
    assert run("verify", out, "--mode", "both").code == 0
    assert [(r.file, r.builds, r.inputs, r.k) for r in asked] == [
        ("a.py", ("Net(1)",), ("2x3",), 2.5),
        ("b.py", ("Net(2)",), (), 2.5),
    ]
    assert {r.modes for r in asked} == {("pynative", "graph")}
    asked.clear()
    run("verify", out / "b.py")
    assert [(r.builds, r.modes) for r in asked] == [(("Net(2)",), ("graph",))]
    asked.clear()
    run("verify", out, "--build", "Other()")
    assert [r.builds for r in asked] == [("Other()",)]


@pytest.mark.parametrize("verdict", list(Verdict))
def test_the_exit_code_is_that_of_the_verdict(
    run, out: Path, asked: list[VerifyRequest], verdict: Verdict
) -> None:
    done = run("verify", out, "--build", verdict.value)
    passed = verdict in (Verdict.PASS, Verdict.KERNEL, Verdict.NONDET)
    assert done.code == (0 if passed else 1)
    assert f"{verdict.value}: 1 models" in done.out


def test_the_worst_model_counts(run, out: Path, asked: list[VerifyRequest]) -> None:
    text = "".join(f'[[tool.torch2ms.verify.model]]\nbuild = "{v}"\n' for v in ("SHAPE", "PASS"))
    (out / "pyproject.toml").write_text(text)
    assert run("verify", out).code == 1
    found = read_verification(locate(out))
    assert found is not None
    assert (found.verdict, len(found.models)) == (Verdict.SHAPE, 2)


def test_the_result_lies_beside_the_record_and_where_asked(
    run, out: Path, asked: list[VerifyRequest], tmp_path: Path
) -> None:
    run("verify", out, "--json", tmp_path / "deep/r.json")
    text = (out / "torch2ms.verify.json").read_text()
    assert (tmp_path / "deep/r.json").read_text() == text
    assert json.loads(text)["verdict"] == "PASS"
    assert "NOT verified" not in run("report", out, "-o", tmp_path / "r.html").out


def test_an_error_of_the_engine_is_a_message(run, out: Path, monkeypatch) -> None:
    def verify(request: VerifyRequest, progress: object) -> Verification:
        raise Problem("torch", "cannot be imported", "not installed", "install it")

    monkeypatch.setattr(ladder, "verify", verify)
    done = run("verify", out)
    assert (done.code, done.out) == (2, "")
    assert done.err == "torch: cannot be imported: not installed\n  next: install it\n"


@pytest.mark.parametrize("command", [("verify", "OUT"), ("table", "verify"), ("table", "facts")])
def test_a_missing_framework_is_a_message(run, out: Path, monkeypatch, command) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = run(*(str(out) if word == "OUT" else word for word in command))
    assert done.code == 2
    assert 'pip install "torch2mindspore[verify]"' in done.err
