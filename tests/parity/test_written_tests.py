"""In: verified samples. Out: their tests run without this tool, and go red for one broken line."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from migrate.parity.written import pages
from migrate.parity.written.pages import Case, NotOurs, RungTests, copies
from migrate.records.outcomes import Verdict
from migrate.records.result import Check

ROOT = Path(__file__).parents[2]


def imports(text: str) -> set[str]:
    """Relative imports as ".name", others by their first part."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level:
            found |= {f".{node.module or alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


def reached(texts: dict[str, str], first: str) -> set[str]:
    """All that a copied file imports, directly or not."""
    waiting, seen = [first], set()
    while waiting:
        for name in imports(texts[waiting.pop()]) - seen:
            seen.add(name)
            waiting += [f"{name[1:]}.py"] if name.startswith(".") else []
    return seen


def test_the_copied_files_are_complete_and_do_not_know_this_package() -> None:
    texts = copies()
    found = {name for text in texts.values() for name in imports(text)}
    assert "migrate" not in found
    assert {f"{name[1:]}.py" for name in found if name.startswith(".")} <= set(texts)
    allowed = {"numpy", "mindspore", "torch", "safetensors", "pytest"}
    others = {name for name in found if not name.startswith(".")} - set(sys.stdlib_module_names)
    assert others == allowed


def test_neither_framework_is_loaded_in_the_process_of_the_other() -> None:
    texts = copies()
    assert "torch" not in reached(texts, "support.py")
    assert "mindspore" not in reached(texts, "torch_check.py")
    assert "torch" in reached(texts, "torch_check.py")


def check(path: str, rung: str = "forward eval", mode: str = "graph", **given: object) -> Check:
    given = {"verdict": Verdict.PASS, "elements": 3, **given}
    return Check(rung=rung, mode=mode, torch_path=path, **given)


def test_each_check_of_a_rung_is_a_case_and_what_was_not_compared_is_skipped_with_a_reason() -> (
    None
):
    bad = check("b", verdict=Verdict.DIVERGED)
    none = check("c", verdict=Verdict.NOT_RUN, elements=0, detail="its forward never ran")
    start = check("a", rung="initial values", mode="pynative")
    (test,) = pages._tests([check("a"), bad, none, start])
    assert (test.name, test.rung) == ("test_forward_eval", "forward eval")
    assert test.cases == (
        Case("a", "graph"),
        Case("b", "graph"),  # red, as verify was
        Case("c", "graph", "its forward never ran"),
    )


@pytest.mark.parametrize("name", ['""" + x + """', "\\", "a\nb", "it's", '"', "{{ 1 }}"])
def test_names_of_users_stay_text(name: str) -> None:
    tests = (
        RungTests("loss", pages.DOC["loss"], (Case(name, "graph", name), Case(name, "pynative"))),
    )
    values = {"mark": pages.MARK, "version": "0", "package": "p", "stem": "net", "code": name}
    text = pages.template().render(
        **values, what=pages._one_line(name), torch_code=name, tests=tests, whole=True
    )
    tree = ast.parse(text)
    strings = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
    assert name in strings
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert functions == [
        "model", "test_parameters", "test_loss", "test_torch_gives_what_is_recorded"
    ]  # fmt: skip


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    own = tmp_path / "test_net.py"
    own.write_text("def test(): ...\n")
    with pytest.raises(NotOurs, match="did not write it"):
        pages.refuse_others(own, tmp_path / "net")
    (tmp_path / "net").mkdir()
    with pytest.raises(NotOurs, match="net is there"):
        pages.refuse_others(tmp_path / "test_other.py", tmp_path / "net")
    own.write_text(f'"""{pages.MARK} 0.1"""\n')
    (tmp_path / "net" / "model.json").write_text("{}")
    pages.refuse_others(own, tmp_path / "net")


@dataclass(frozen=True)
class Sample:
    """A model of samples/, and a line of its MindSpore version that is broken on purpose.

    ``red`` are tests that must fail then, ``green`` one that must not.
    """

    name: str
    build: str
    input: str
    line: str
    broken: str
    red: tuple[str, ...]
    green: str
    options: tuple[str, ...] = ()


SAMPLES = (
    Sample(
        "lenet", "LeNet()", "2x1x28x28",
        "ops.relu(self.fc1(x))", "ops.sigmoid(self.fc1(x))",
        ("test_forward_eval[whole-pynative]", "test_gradients[fc1-pynative]"),
        "test_forward_eval[fc1-pynative]",
    ),
    Sample(  # shows in the moved statistics, and nowhere in eval mode
        "resnet", "ResNet(BasicBlock, [1, 1, 1, 1], num_classes=5, width=8)", "2x3x32x32",
        "self.bn1 = nn.BatchNorm2d(width)", "self.bn1 = nn.BatchNorm2d(width, momentum=0.5)",
        ("test_forward_train[bn1-pynative]",), "test_forward_eval[bn1-pynative]",
    ),
    Sample(
        "transformer_encoder",
        "TransformerEncoder(EncoderConfig(vocab_size=9, max_length=6, dim=16, depth=1, heads=2))",
        "2x5:int64<9",
        "self.norm = nn.LayerNorm((config.dim,), epsilon=1e-05)",
        "self.norm = nn.LayerNorm((config.dim,), epsilon=1e-02)",
        ("test_forward_eval[norm-pynative]", "test_forward_eval[whole-pynative]"),
        "test_forward_eval[token-pynative]", ("--steps", "2"),
    ),
)  # fmt: skip


@pytest.fixture
def without(tmp_path: Path) -> dict[str, str]:
    """An environment in which this package cannot be imported."""
    block = tmp_path / "block"
    block.mkdir()
    (block / "migrate.py").write_text("raise ImportError('not installed here')\n")
    # where the tool is not installed, pytest has no plugin of it either
    more = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "ONEDNN_MAX_CPU_ISA": "AVX2"}
    return {**os.environ, **more, "PYTHONPATH": str(block)}


def outcomes(folder: Path, environment: dict[str, str], *options: str) -> dict[str, str]:
    """Run the written tests; test name -> "passed", "failure" or "skipped"."""
    result = folder.parent / "result.xml"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--junitxml={result}",
    ]
    done = subprocess.run(
        [*command, *options, str(folder)], cwd=folder.parent, env=environment, timeout=280,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stdout[-2000:] + done.stderr[-2000:]
    cases = ElementTree.parse(result).getroot().iter("testcase")
    return {case.get("name", ""): case[0].tag if len(case) else "passed" for case in cases}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_written_tests_run_without_this_tool_and_go_red(
    sample: Sample, tmp_path: Path, without: dict[str, str]
) -> None:
    shutil.copytree(ROOT / "samples" / sample.name / "torch", tmp_path / "torch")
    tool = [sys.executable, "-m", "migrate"]
    file, tests = tmp_path / "out" / f"{sample.name}.py", tmp_path / "out" / "tests"
    converted = subprocess.run([*tool, "convert", "torch", "-o", "out"], cwd=tmp_path, timeout=60)
    assert converted.returncode == 0
    given = ["--build", sample.build, "--input", sample.input, *sample.options]
    subprocess.run(
        [*tool, "verify", str(file), *given, "--write-tests", str(tests)], cwd=tmp_path,
        check=True, timeout=280,
    )  # fmt: skip

    found = outcomes(tests, without)
    assert set(found.values()) == {"passed"}, found
    assert "test_torch_gives_what_is_recorded" in found
    assert sum("-graph]" in name for name in found) >= 10

    text = file.read_text(encoding="utf-8")
    assert text.count(sample.line) == 1
    file.write_text(text.replace(sample.line, sample.broken), encoding="utf-8")
    found = outcomes(tests, without, "-k", "pynative or parameters")
    red = {name for name, outcome in found.items() if outcome == "failure"}
    assert set(sample.red) <= red
    assert found[sample.green] == "passed" and found["test_parameters"] == "passed"
