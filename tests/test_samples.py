"""In: samples/NAME/torch. Out: whether converting gives samples/NAME/mindspore, and it is right.

A change of the converter that changes a sample shows up here. Look at the difference; when it is
what you wanted, write the new golden files with ``python tests/test_samples.py [NAME ...]``.
"""

from __future__ import annotations

import ast
import io
import shutil
import sys
import tokenize
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import pytest

from migrate.records.outcomes import Outcome, Verdict
from migrate.records.result import Record
from migrate.workspace import outputs, record
from migrate.workspace.outputs import Output
from migrate.workspace.project import Request, convert

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SAMPLES = Path(__file__).parents[1] / "samples"
MODEL_SAMPLES = sorted(path.parent.name for path in SAMPLES.glob("*/verify.toml"))
TRAINING_SAMPLES = sorted(path.parent.name for path in SAMPLES.glob("*/train.toml"))
NAMES = MODEL_SAMPLES + TRAINING_SAMPLES
FINE = {Verdict.PASS, Verdict.KERNEL}


def models(name: str) -> list[dict[str, Any]]:
    """The models of a sample, with ``file``, ``build`` and ``input``."""
    text = (SAMPLES / name / "verify.toml").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = tomllib.loads(text)["model"]
    return found


MODELS = [(name, model) for name in MODEL_SAMPLES for model in models(name)]


def style_of(name: str) -> Literal["cells", "model"]:
    """The style in which a sample's training is converted."""
    path = SAMPLES / name / "train.toml"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return "model" if tomllib.loads(text).get("style") == "model" else "cells"


def convert_folder(
    source: Path, output: Path, style: Literal["cells", "model"] = "cells"
) -> Record:
    """Convert and write, the record included."""
    done = convert(Request(source, output, jobs=1, train_style=style))
    assert done.failures == ()
    outputs.write((*done.outputs, Output(record.NAME, record.text(done.record))), output)
    return done.record


def tree(root: Path) -> dict[str, bytes]:
    """Every file below a folder except the record, which holds absolute paths."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.suffix != ".json" and "__pycache__" not in path.parts
    }


def comments(text: str) -> Counter[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(t.string for t in tokens if t.type == tokenize.COMMENT)


@pytest.fixture(scope="module", params=NAMES)
def sample(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path, Record]:
    """A sample's name, its fresh conversion and the record of it."""
    output = tmp_path_factory.mktemp(request.param) / "out"
    made = convert_folder(SAMPLES / request.param / "torch", output, style_of(request.param))
    return request.param, output, made


def test_there_are_samples() -> None:
    assert NAMES and sorted(NAMES) == sorted(p.parent.name for p in SAMPLES.glob("*/torch"))


def test_conversion_gives_the_golden_files(sample: tuple[str, Path, Record]) -> None:
    name, output, _ = sample
    golden = tree(SAMPLES / name / "mindspore")
    made = tree(output)
    assert made.keys() == golden.keys()
    for path, data in made.items():
        assert data.decode("utf-8") == golden[path].decode("utf-8"), f"{name}/{path}"
        assert data == golden[path]


def test_second_conversion_changes_nothing(
    sample: tuple[str, Path, Record], tmp_path: Path
) -> None:
    name, output, _ = sample
    shutil.copytree(output, tmp_path / "first", ignore=shutil.ignore_patterns("*.json"))
    convert_folder(tmp_path / "first", tmp_path / "second", style_of(name))
    assert tree(tmp_path / "second") == tree(tmp_path / "first")


def test_every_reference_is_accounted_for(sample: tuple[str, Path, Record]) -> None:
    _, _, made = sample
    assert made.ledger.total > 10
    for file in made.files:
        assert file.ledger.adds_up
        assert len(file.entries) == file.ledger.total
        for entry in file.entries:
            assert entry.outcome is not Outcome.FLAGGED or (entry.code and entry.reason)


def test_output_imports_no_torch_and_keeps_every_comment(sample: tuple[str, Path, Record]) -> None:
    name, output, _ = sample
    for path in output.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            roots: list[str] = []
            if isinstance(node, ast.Import):
                roots = [alias.name.split(".")[0] for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                roots = [(node.module or "").split(".")[0]]
            assert "torch" not in roots
        source = SAMPLES / name / "torch" / path.name
        if source.exists():
            assert comments(source.read_text(encoding="utf-8")) - comments(text) == Counter()


def test_models_are_converted_without_a_flag(sample: tuple[str, Path, Record]) -> None:
    name, _, made = sample
    flagged = [
        (entry.line, entry.name, entry.reason)
        for file in made.files
        for entry in file.entries
        if entry.outcome is Outcome.FLAGGED
    ]
    if name == "trap":
        assert [line for line, _, _ in flagged] == [line_of_getattr()]
    else:
        assert flagged == []


def line_of_getattr() -> int:
    text = (SAMPLES / "trap" / "torch" / "trap.py").read_text(encoding="utf-8")
    return next(i for i, line in enumerate(text.splitlines(), 1) if "getattr(torch" in line)


MUST_STAY = (
    "Tensor",
    "cat",
    "relu",
    "Registry",
    "python_objects",
    "shadowed",
    "shadowed_by_parameter",
    "in_a_comprehension",
)


@pytest.mark.parametrize("definition", MUST_STAY)
def test_what_only_looks_like_torch_stays(definition: str, tmp_path: Path) -> None:
    convert_folder(SAMPLES / "trap" / "torch", tmp_path / "out")
    before, after = (
        segment((folder / "trap.py").read_text(encoding="utf-8"), definition)
        for folder in (SAMPLES / "trap" / "torch", tmp_path / "out")
    )
    assert after == before


def segment(text: str, definition: str) -> str:
    """The source of one top-level function or class."""
    node = next(n for n in ast.parse(text).body if getattr(n, "name", "") == definition)
    return ast.get_source_segment(text, node) or ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "model"), MODELS, ids=[f"{name}-{model['build'][:24]}" for name, model in MODELS]
)
def test_parity_in_both_modes(name: str, model: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mindspore")
    from migrate.parity.ladder import verify
    from migrate.parity.request import VerifyRequest

    output = tmp_path / "out"
    convert_folder(SAMPLES / name / "torch", output)
    request = VerifyRequest(
        record=output / record.NAME,
        output_root=output,
        builds=(model["build"],),
        inputs=tuple(model["input"]),
        file=model["file"],
    )
    found = verify(request, lambda line: None)
    (result,) = found.models
    honest = {Verdict(model["verdict"])} if "verdict" in model else FINE
    assert result.verdict in honest, result.guilty or result.detail
    assert result.weights_matched == result.weights_total
    assert {rung.mode for rung in result.rungs} == {"pynative", "graph"}
    assert sum(check.elements for check in result.checks) > 0
    random = {r.name for r in result.rungs if r.verdict is Verdict.NONDET}
    assert not random or (honest == {Verdict.NONDET} and "forward eval" not in random), random


def regenerate(names: list[str]) -> None:
    """Write the golden files anew; the record stays out of them."""
    for name in names or NAMES:
        golden = SAMPLES / name / "mindspore"
        shutil.rmtree(golden, ignore_errors=True)
        convert_folder(SAMPLES / name / "torch", golden, style_of(name))
        (golden / record.NAME).unlink()


if __name__ == "__main__":
    regenerate(sys.argv[1:])
