"""In: a session and its checks. Out: a pytest file, its fixtures, and what it imports.

The tests judge by the very code that verify judged by, copied beside them; only its imports become
relative. In the fixtures model.json says what to build and which Cell is whose partner; each rung
has a folder with index.json and arrays.safetensors (complex numbers, which that format lacks, as
.npy).
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from safetensors.numpy import save_file

from migrate import __version__
from migrate.parity.discover import without_mode
from migrate.parity.exchange import PACK, ArrayStore, Spec, read_index
from migrate.parity.recorded import Recorded
from migrate.records.outcomes import Verdict
from migrate.records.result import Check

MARK = "Written by torch2ms"
RUNGS = ("forward eval", "forward train", "gradients", "loss", "optimizer step", "steps")
DOC = {
    "forward eval": "Fed what its torch partner received, the Cell gives what torch gives.",
    "forward train": "The same in train mode: shared dropout masks, moved statistics count.",
    "gradients": "Gradients of its parameters (whole model: of the inputs), for a fixed cotangent.",
    "loss": "The loss of the first step.",
    "optimizer step": "What the first step moves the weights of the Cell by.",
    "steps": "Later losses, and what all steps together move the weights by.",
}


class NotOurs(Exception):
    """A file or folder stands where tests would be written, and this tool did not write it."""


@dataclass(frozen=True)
class Case:
    """One parameter set of a test; ``skip`` says why verify could not compare anything."""

    path: str
    mode: str
    skip: str = ""


@dataclass(frozen=True)
class RungTests:
    """One test function: a rung with all its Cells and modes."""

    rung: str
    doc: str
    cases: tuple[Case, ...]

    @property
    def name(self) -> str:
        return "test_" + self.rung.replace(" ", "_")


def write_tests(session: Recorded, checks: Sequence[Check], folder: Path) -> Path:
    """Write the tests of one model into a folder, in place of those of an earlier run.

    Raises NotOurs, WorkerError, WorkerLost and OSError; then nothing of the model is written.
    """
    stem = _stem(session)
    test, fixtures = folder / f"test_{stem}.py", folder / stem
    refuse_others(test, fixtures)
    text = _page(session, checks, folder, stem)
    fresh = folder / f".{stem}.new"
    for old in (fresh, fixtures):
        shutil.rmtree(old, ignore_errors=True)
    write_fixtures(session, checks, fresh)
    fresh.rename(fixtures)
    (folder / PACKAGE).mkdir(exist_ok=True)
    for name, content in copies().items():
        (folder / PACKAGE / name).write_text(content, encoding="utf-8")
    test.write_text(text, encoding="utf-8")
    return test


def refuse_others(test: Path, fixtures: Path) -> None:
    """Raises NotOurs where writing would replace what somebody else wrote."""
    if test.exists() and MARK not in test.read_text(encoding="utf-8", errors="replace"):
        raise NotOurs(f"{test} is there, and torch2ms did not write it")
    if fixtures.exists() and not (fixtures / "model.json").exists():
        raise NotOurs(f"{fixtures} is there, and torch2ms did not write it")


def _stem(session: Recorded) -> str:
    """A name for the model: that of file and class, with a checksum where they do not tell all."""
    target, inputs = session.target, session.target.inputs
    file = Path(target.source).with_suffix("").as_posix()
    build = target.build.removesuffix("()")
    words = " ".join((file, build, *inputs))
    text = "_".join("".join(c if c.isalnum() else " " for c in words).split())[:60]
    shapes = all(part.isdecimal() for one in inputs for part in one.split("x"))
    if file.isidentifier() and build.isidentifier() and shapes and len(words) < 60:
        return text
    return f"{text}_{zlib.crc32(repr((file, build, inputs)).encode()):08x}"


def _page(session: Recorded, checks: Sequence[Check], folder: Path, stem: str) -> str:
    return template().render(
        what=_one_line(f"{session.target.build} of {session.target.output}"), mark=MARK,
        version=__version__, package=PACKAGE, stem=stem,
        code=_way(session.target.ms_root, folder),
        torch_code=_way(session.target.torch_root, folder),
        tests=_tests(checks),
        whole=any(c.rung == "forward eval" and not c.torch_path and c.elements for c in checks),
    )  # fmt: skip


def template() -> Template:
    """Return the page of one model; every text of the user's goes through the filter ``text``."""
    environment = Environment(
        loader=PackageLoader("migrate.parity.written", "."), undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters["text"] = _text
    return environment.get_template("test_model.py.j2")


def _tests(checks: Sequence[Check]) -> list[RungTests]:
    found = []
    for rung in RUNGS:
        cases = [
            Case(c.torch_path, c.mode, (c.detail or "not run") * (c.verdict is Verdict.NOT_RUN))
            for c in checks if c.rung == rung
        ]  # fmt: skip
        if cases:
            found.append(RungTests(rung, DOC[rung], tuple(cases)))
    return found


def _way(root: Path, folder: Path) -> str:
    return Path(os.path.relpath(root.resolve(), folder.resolve())).as_posix()


def _one_line(text: str) -> str:
    """Safe inside a docstring."""
    return " ".join(text.split()).replace("\\", "/").replace('"""', "'''")[:160]


def _text(value: Any) -> str:
    """Return a Python string literal with double quotes, as formatters write it."""
    literal = repr(str(value))
    return literal if '"' in literal else f'"{literal[1:-1]}"'


FOLDERS = {"forward eval": "eval", "forward train": "train"}


def write_fixtures(session: Recorded, checks: Sequence[Check], folder: Path) -> None:
    """Write all that the tests of one model read. Raises WorkerError and WorkerLost."""
    folder.mkdir(parents=True)
    model = _model(session)
    text = json.dumps(model, indent=1) + "\n"
    (folder / "model.json").write_text(text, encoding="utf-8")
    weights = {
        "tensors": [{"t": "tensor", "key": row["array"]} for row in session.torch["tensors"]]
    }
    _pack(session.folder / "weights", folder / "weights", weights)
    rungs = {check.rung for check in checks}
    for rung, name in FOLDERS.items():
        if rung in rungs:
            source = session.recorded(training=rung == "forward train")
            _pack(source, folder / name, _trimmed(read_index(source), rung, checks))
    if "gradients" in rungs:
        source = session.differentiated(local=False)
        _pack(source, folder / "gradients", read_index(source))
    if "loss" in rungs:
        source = session.training_folder()
        _pack(source, folder / "training", read_index(source))


def _model(session: Recorded) -> Spec:
    target, request = session.target, session.request
    rows = {row["key"]: row for row in session.torch["tensors"]}
    return {
        "package": target.ms_package, "file": target.output, "build": without_mode(target.build),
        "seed": request.seed,
        "strictness": session.strictness,
        "loss": request.loss[-1] if request.loss else "",
        "optimizer": request.optimizer[-1] if request.optimizer else "",
        "paths": session.paths,
        "missing": [f"{key}: {why}" for key, why in session.pairing.missing],
        "pairs": [
            {"key": pair.key, "place": pair.place, "layout": pair.layout,
             "array": rows[pair.key]["array"], "start": "", "spread": None}
            for pair in session.pairing.pairs if pair.place
        ],
        "torch": {
            "package": target.package, "file": target.source, "build": target.build,
            "tensors": [{"key": key, "array": row["array"]} for key, row in rows.items()],
        },
    }  # fmt: skip


def _trimmed(index: Spec, rung: str, checks: Sequence[Check]) -> Spec:
    """Only the calls that a test makes, and of them what each Cell gives by itself."""
    wanted = {c.torch_path for c in checks if c.rung == rung and c.verdict is not Verdict.NOT_RUN}
    calls = [
        {name: part for name, part in call.items() if name != "cumulative"}
        for call in index["calls"] if call["path"] in wanted | {""}
    ]  # fmt: skip
    return {"training": index["training"], "calls": calls}


def _pack(source: Path, target: Path, index: Spec) -> None:
    """Write the index, and of the arrays those that it names."""
    target.mkdir()
    store = ArrayStore(source)
    arrays = {key: store.get(key) for key in dict.fromkeys(_keys(index))}
    plain = {key: array.copy(order="C") for key, array in arrays.items() if array.dtype.kind != "c"}
    save_file(plain, target / PACK)
    for key in arrays.keys() - plain.keys():
        (target / f"{key}.npy").write_bytes((source / f"{key}.npy").read_bytes())
    (target / "index.json").write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")


def _keys(part: Any) -> Iterator[str]:
    """Yield the keys of all arrays that a description names, wherever they stand."""
    if isinstance(part, dict):
        if part.get("t") == "tensor":
            yield part["key"]
        inner: Sequence[Any] = list(part.values())
    else:
        inner = part if isinstance(part, list) else ()
    for item in inner:
        yield from _keys(item)


ROOT = Path(__file__).parents[2]
PACKAGE = "torch2ms_parity"
FIRST = ("migrate.parity.written.support", "migrate.parity.written.torch_check")
NOTICE = (
    f"# Copied from torch2mindspore {__version__} (Apache-2.0); changes are lost when tests are "
)
NOTICE += "written again.\n"
INIT = '''"""What the parity tests beside this folder stand on."""
'''


def copies() -> dict[str, str]:
    """Return every file that the tests import, directly or not: name -> text."""
    waiting = list(FIRST)
    texts: dict[str, str] = {}
    origins: dict[str, str] = {}
    while waiting:
        module = waiting.pop()
        name = f"{_short(module)}.py"
        if origins.setdefault(name, module) != module:
            raise ValueError(f"{module} and {origins[name]} would both become {name}")
        if name in texts:
            continue
        text = _path(module).read_text(encoding="utf-8")
        texts[name] = NOTICE + _relative(text, module)
        waiting += [found for _, found in _imports(text, module)]
    return {"__init__.py": NOTICE + INIT, **dict(sorted(texts.items()))}


def _short(module: str) -> str:
    return module.rpartition(".")[2]


def _path(module: str) -> Path:
    return ROOT.joinpath(*module.split(".")[1:]).with_suffix(".py")


def _imports(text: str, module: str) -> Iterator[tuple[ast.ImportFrom, str]]:
    """Imports of this package, each with the module it needs. Raises ValueError for other forms."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import) and any(a.name.startswith("migrate") for a in node.names):
            raise ValueError(f"{module}:{node.lineno}: import the names that are needed")
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("migrate"):
            continue
        source = node.module or ""
        if _path(source).is_file():
            yield node, source
        for alias in node.names if not _path(source).is_file() else ():
            yield node, f"{source}.{alias.name}"


def _relative(text: str, module: str) -> str:
    """Return the text with ``from migrate.a.b import c`` as ``from .b import c``."""
    lines = text.splitlines(keepends=True)
    for node, needed in _imports(text, module):
        old = f"from {node.module} import"
        new = f"from .{_short(needed)} import" if needed == node.module else "from . import"
        number = node.lineno - 1
        if old in lines[number]:
            lines[number] = lines[number].replace(old, new, 1)
    return "".join(lines)
