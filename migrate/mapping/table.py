"""In: mappings/*.toml, the facts, and a user's own TOML. Out: the Table of frozen Rows and Cases.

Nothing is judged here: ``migrate.mapping.table_lint`` does that. docs/table.md has the format.
"""

from __future__ import annotations

import ast
import difflib
import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from migrate.mapping.row import POLICY_DROP, Case, Row, TableError, for_mint, make_case, make_row
from migrate.mapping.signatures import Framework, HelperFiles, Param, Signature
from migrate.mapping.templates import LIBRARIES

# tomllib is part of Python from 3.11 on; tomli is the same before
_toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")

__all__ = [
    "POLICY_DROP",
    "Case",
    "Param",
    "Row",
    "Signature",
    "Table",
    "TableError",
    "load",
    "mappings_folder",
]

# what says something of libraries, not of names
_NO_ROWS = ("libraries.toml", "followed.toml")
TORCH_FACTS = "torch-2.13.json"
MINDSPORE_FACTS = "mindspore-2.10.json"


@dataclass(frozen=True)
class Table:
    """All rows, with the facts of both frameworks; made by ``load``."""

    raw: Mapping[str, Mapping[str, Any]]
    files: Mapping[str, Path]
    torch: Framework
    mindspore: Framework
    helpers: HelperFiles
    folder: Path
    user_files: tuple[Path, ...] = ()

    @cached_property
    def _keys(self) -> Mapping[str, tuple[str, ...]]:
        keys: dict[str, list[str]] = {}
        for key in self.raw:
            keys.setdefault(key.partition(":")[0], []).append(key)
        return {
            name: tuple(sorted(some, key=lambda key: key != name)) for name, some in keys.items()
        }

    @cached_property
    def _rows(self) -> dict[str, tuple[Row, ...]]:
        return {}

    @property
    def names(self) -> tuple[str, ...]:
        """Every torch name that has a row, sorted."""
        return tuple(sorted(self._keys))

    def rows(self, name: str) -> tuple[Row, ...]:
        """The rows of a torch name: the bare one first, then labels in the order of the file."""
        if name not in self._rows:
            public = self.torch.canonical(name)
            keys = self._keys.get(name) or self._keys.get(public) or self._pattern(public)
            self._rows[name] = tuple(self._make(key) for key in keys)
        return self._rows[name]

    @cached_property
    def _patterns(self) -> tuple[str, ...]:
        return tuple(sorted((key for key in self.raw if is_pattern(key)), key=len, reverse=True))

    def _pattern(self, name: str) -> tuple[str, ...]:
        """The key of the longest pattern that answers for a name: torch.fx.*, torch.cudnn_*.

        Whatever lies below a namespace is covered; other patterns cover names that torch has.
        """
        fitting = [one for one in self._patterns if fnmatchcase(name, one)]
        depth = name.count(".") if self.kind(name) else -1
        return tuple(one for one in fitting if one.endswith(".*") or one.count(".") == depth)[:1]

    def member(self, owner: str, attribute: str) -> str:
        """The name whose rows answer for an attribute of a class's instances.

        That is the attribute of the class itself, or of the nearest base that has a row for it.
        """
        classes = (owner, *self.bases(owner))
        names = (f"{one}.{attribute}" for one in classes if f"{one}.{attribute}" in self._keys)
        return next(names, f"{owner}.{attribute}")

    @cached_property
    def of_libraries(self) -> Mapping[str, str]:
        """Names of other packages' classes that stand for torch's -> torch's name."""
        targets = ((str(self.raw[key].get("ref", "")), name) for name in self._keys
                   for key in self._keys[name])  # fmt: skip
        return {ref: name for ref, name in targets if ref.partition(".")[0] in LIBRARIES}

    def library_class(self, name: str) -> str:
        """The class of another package that stands for torch's; "": none does."""
        refs = (row.ref for row in self.rows(name))
        return next((ref for ref in refs if ref in self.of_libraries), "")

    def _make(self, key: str) -> Row:
        name = key.partition(":")[0]
        return make_row(
            key,
            self.raw[key],
            self.files[key],
            self.signatures(name),
            self.kind(name),
            self.labels(name),
        )

    def row(self, key: str) -> Row | None:
        """The row of a full key ("torch.max:dim"); None: there is none."""
        return next((row for row in self.rows(key.partition(":")[0]) if row.key == key), None)

    def keys(self, name: str) -> tuple[str, ...]:
        """The keys of all rows of a torch name."""
        return self._keys.get(name, ())

    def labels(self, name: str) -> frozenset[str]:
        """The labels that rows of this name carry."""
        return frozenset(key.partition(":")[2] for key in self._keys.get(name, ())) - {""}

    def signatures(self, name: str) -> tuple[Signature, ...]:
        """torch's signatures (constructor and methods without self); () for properties."""
        return self.torch.signatures(name)

    def kind(self, name: str) -> str:
        """function, class, method, property, constant, module; "" when torch has no such name."""
        return self.torch.kind(name)

    def has(self, name: str) -> bool:
        """Return whether torch has the name, or a row of its own tells of it; patterns do not."""
        return bool(self.kind(name) or self.keys(name))

    def bases(self, name: str) -> tuple[str, ...]:
        """The bases of a torch class, nearest first: LSTM -> RNNBase, Module."""
        return self.torch.bases(name)

    def has_objects(self, name: str) -> bool:
        """Return whether objects of a class without a target may exist all the same.

        They may where a class with a target is derived from it, and where it is not known to be a
        class of one of torch's libraries, which torch's own functions alone instantiate. What is
        private (``torch._subclasses.FakeTensor``) is torch's own machinery.
        """
        public = self.torch.canonical(name)
        private = public.startswith("torch._") and not self.kind(public)
        library = public.count(".") > 1 and (private or self.kind(public) == "class")
        return not library or public in self._ancestors

    @cached_property
    def _ancestors(self) -> frozenset[str]:
        """The bases of all classes that have a target."""
        with_target = (
            n for n in self.names if self.kind(n) == "class" and not self.rows(n)[0].flag
        )
        return frozenset(base for name in with_target for base in self.bases(name))

    def target_is_class(self, name: str) -> bool:
        """Whether a target ("mindspore.nn.Conv2d", "helpers.BatchNorm2d") is a class."""
        root, _, rest = name.partition(".")
        if root == "helpers":
            return isinstance(self.helpers.definition(rest), ast.ClassDef)
        return self.mindspore.kind(name) == "class"

    def target_signature(self, name: str) -> Signature | None:
        """The target's signature (a class: its constructor without self); None: unknown name.

        Where a MindSpore name has several signatures the plain one is given; ``target_signatures``
        gives all of them.
        """
        return next(iter(self.target_signatures(name)), None)

    def target_signatures(self, name: str) -> tuple[Signature, ...]:
        """All signatures of a target; () when it is unknown or is not called."""
        root, _, rest = name.partition(".")
        if root != "helpers":
            return self.mindspore.signatures(name)
        own = self.helpers.signature(rest)
        if own is not None:
            return (own,)
        for base in self.helpers.bases(rest):
            inherited = base if base in self.helpers.paths else ""
            target = (
                f"helpers.{inherited}" if inherited else f"mindspore.{base.removeprefix('ms.')}"
            )
            if found := self.target_signatures(
                target.replace("mindspore.mindspore.", "mindspore.")
            ):
                return found
        return ()

    def suggest(self, name: str) -> str:
        """The nearest torch name that has a row or a fact, for "did you mean"; "": none is near."""
        space, _, last = name.rpartition(".")
        known = (*self.torch.names, *(key for key in self._keys if not is_pattern(key)))
        pool = [n for n in known if n.rpartition(".")[0] == space and n != name]
        near = difflib.get_close_matches(name, pool, n=1, cutoff=0.75)
        if near:
            return near[0]
        if self.torch.kind(space) not in ("", "module", "class"):
            return ""  # what a value has is none of torch's names: torch.__version__.split
        same = [n for n in self._keys if n.rpartition(".")[2] == last and n != name]
        return min(same, key=len, default="")

    @cached_property
    def _cases(self) -> Mapping[str, Case]:
        own = [path.parent / "cases" / path.name for path in self.user_files]
        ours = sorted((self.folder / "cases").glob("*.toml"))
        found: dict[str, Case] = {}
        for path in [*ours, *(file for file in own if file.is_file())]:
            for key, values in read_toml(path).items():
                found[key] = make_case(key, values, path)
        return found

    def case(self, key: str) -> Case | None:
        """The case of a row key; None: it has none."""
        return self._cases.get(key)

    @property
    def case_keys(self) -> tuple[str, ...]:
        """Every key that has a case, in the order of the files."""
        return tuple(self._cases)

    @cached_property
    def _libraries(self) -> Mapping[str, Any]:
        path = self.folder / "libraries.toml"
        return read_toml(path) if path.is_file() else {}

    def needs_torch(self, import_name: str) -> str:
        """The next step for an import whose library needs torch; "": nothing is known of it.

        The longest listed prefix counts: safetensors.torch needs torch, safetensors does not.
        """
        parts = import_name.split(".")
        prefixes = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
        entry: Mapping[str, Any] = next(
            (self._libraries[one] for one in prefixes if one in self._libraries), {}
        )
        return str(entry.get("next", ""))


def is_pattern(key: str) -> bool:
    """Whether a key stands for many names: those that fit it and have no row of their own."""
    return "*" in key


def mappings_folder() -> Path:
    """Where the mappings lie: inside the installed package, else beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "mappings"
    return inside if inside.is_dir() else package.parent / "mappings"


def load(
    user_mappings: Sequence[Path] = (), folder: Path | None = None, target: str = "portable"
) -> Table:
    """Read every mappings file; a user's row replaces ours of the same key.

    Files of the user that end in .py hold rules, and no rows.

    Raises TableError naming file and key. ``folder`` is for tests; by default the shipped one.
    ``target`` "mint": rows are those of mindspore.mint where they have such a template.
    """
    folder = folder or mappings_folder()
    user_mappings = [path for path in user_mappings if path.suffix != ".py"]
    raw: dict[str, Mapping[str, Any]] = {}
    files: dict[str, Path] = {}
    ours = [path for path in sorted(folder.glob("*.toml")) if path.name not in _NO_ROWS]
    for path in [*ours, *user_mappings]:
        for key, values in read_toml(path).items():
            if key in raw and path in ours:
                raise TableError(f"{path}: {key}: also in {files[key]}; keep one of the two rows")
            if not isinstance(values, dict):
                raise TableError(
                    f"{path}: {key}: a row is a TOML table; quote the name in brackets"
                )
            raw[key], files[key] = values, path
    facts = folder / "facts"
    helpers = HelperFiles(Path(__file__).resolve().parents[1] / "helpers")
    torch, mindspore = Framework(facts / TORCH_FACTS), Framework(facts / MINDSPORE_FACTS)
    raw = for_mint(raw) if target == "mint" else raw
    return Table(raw, files, torch, mindspore, helpers, folder, tuple(user_mappings))


def read_toml(path: Path) -> dict[str, Any]:
    """One TOML file. Raises TableError saying which file, where and what to do."""
    try:
        return dict(_toml.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise TableError(f"{path}: cannot be read: {error}; check the path given") from error
    except _toml.TOMLDecodeError as error:
        raise TableError(f"{path}: not valid TOML: {error}; correct that line") from error
