"""In: the tables beside this file. Out: converted models, and the faults to seed into them."""

from __future__ import annotations

import ast
import functools
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pattern import Site, sites

from migrate.workspace import outputs, record
from migrate.workspace.outputs import Output
from migrate.workspace.project import Request, convert

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# What a fault may use; at the end of the file, so that no line moves.
NAMES = "\nimport mindspore\nimport mindspore as ms\nfrom mindspore import mint, nn, ops\n"


@dataclass(frozen=True)
class Model:
    """A model to verify: ``folder`` holds the conversion of the folder it comes from."""

    name: str
    folder: Path
    file: str
    build: str
    inputs: tuple[str, ...]
    loss: str = ""
    targets: tuple[str, ...] = ()
    optimizer: str = ""


@dataclass(frozen=True)
class Fault:
    """One kind of fault at one place of one model."""

    kind: str
    model: Model
    site: Site
    rung: str
    names: str


def table(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def converted(source: Path, output: Path) -> Path:
    """Convert and write a folder."""
    done = convert(Request(source, output, jobs=1))
    text = record.text(done.record)
    outputs.write((*done.outputs, Output(record.NAME, text)), output)
    return output


def own_models(scratch: Path) -> list[Model]:
    """The models beside this file: the ones that faults are seeded into."""
    folder = converted(HERE / "models", scratch / "models")
    return [
        Model(
            name, folder, row["file"], row.get("build", f"{name}()"), tuple(row["input"]),
            row.get("loss", ""), (row["target"],) if "target" in row else (),
            row.get("optimizer", ""),
        )
        for name, row in table(HERE / "models.toml").items()
    ]  # fmt: skip


def clean_models(scratch: Path) -> Iterator[Model]:
    """The samples, and the torch halves of the ports that the tests compare."""
    for given in sorted((ROOT / "samples").glob("*/verify.toml")):
        name = given.parent.name
        if not list((given.parent / "torch").rglob("*.py")):
            continue
        folder = converted(given.parent / "torch", scratch / name)
        for number, row in enumerate(table(given)["model"]):
            yield Model(f"{name}{number}", folder, row["file"], row["build"], tuple(row["input"]))
    ports = ROOT / "tests" / "hand_ports"
    (scratch / "torch").mkdir()
    for file in ports.glob("*_torch.py"):
        shutil.copy(file, scratch / "torch")
    folder = converted(scratch / "torch", scratch / "ports")
    for name, row in table(ports / "ports.toml").items():
        if any(text.endswith("float16") for text in row["input"]):
            continue  # conversions are compared in float32
        file, _, build = row["torch"].partition(":")
        build = build if build.endswith(")") else f"{build}()"
        yield Model(name, folder, f"{file}.py", build, tuple(row["input"]))


def faults(models: list[Model], most: int) -> tuple[list[Fault], list[str]]:
    """At most ``most`` places a kind, in as many models as there are; and kinds without any."""
    found: list[Fault] = []
    missing: list[str] = []
    for kind, row in table(HERE / "kinds.toml").items():
        every = [list(_fitting(kind, row, model)) for model in models]
        turns = [one for turn in range(most) for held in every for one in held[turn : turn + 1]]
        chosen = list({(f.model.file, f.site.first, f.site.before): f for f in turns}.values())
        found += chosen[:most]
        missing += [] if chosen else [kind]
    return found, missing


def _fitting(kind: str, row: Mapping[str, str], model: Model) -> Iterator[Fault]:
    program = (model.folder / model.file).read_text(encoding="utf-8")
    mine = reached(program, f"{model.build}, {model.loss or 0}, {model.optimizer or 0}")
    for site in sites(program, row["find"], row["put"]):
        if (site.owner or site.function) in mine:
            yield Fault(kind, model, site, row.get("rung", "forward eval"),
                        row.get("names", "cell"))  # fmt: skip


@functools.lru_cache(maxsize=64)
def reached(program: str, expression: str) -> frozenset[str]:
    """Classes and functions of a file that an expression uses, themselves or through others."""
    body = ast.parse(program).body
    known = {n.name: n for n in body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
    waiting: list[ast.AST] = [ast.parse(expression)]
    found: set[str] = set()
    while waiting:
        for node in ast.walk(waiting.pop()):
            if isinstance(node, ast.Name) and node.id in known and node.id not in found:
                found.add(node.id)
                waiting.append(known[node.id])
    return frozenset(found)


def seeded(fault: Fault, folder: Path) -> Path:
    """A copy of the conversion with the fault in it."""
    shutil.copytree(fault.model.folder, folder)
    text = fault.site.program + NAMES
    compile(text, fault.model.file, "exec")
    (folder / fault.model.file).write_text(text, encoding="utf-8")
    return folder
