"""Describe what to verify: a VerifyRequest, its inputs, addresses of models."""

from __future__ import annotations

import ast
import math
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

DTYPES = (
    "float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64",
    "bool", "complex64", "complex128",
)  # fmt: skip

_MISSING = re.compile(r"No module named '([\w.]+)'")
# what a module's package is called in the index, where it is not the module's name
_PACKAGES = {
    "attr": "attrs", "bs4": "beautifulsoup4", "cv2": "opencv-python", "dateutil": "python-dateutil",
    "git": "GitPython", "google.protobuf": "protobuf", "PIL": "pillow",
    "pytorch_lightning": "pytorch-lightning", "skimage": "scikit-image", "sklearn": "scikit-learn",
    "tensorboardX": "tensorboardX", "torch_geometric": "torch-geometric", "yaml": "PyYAML",
}  # fmt: skip


def to_install(error: str, root: Path, python: Path | None = None) -> str:
    """Return what to do about a module that is missing: the command that installs it; else "".

    Args:
        error: what an import said.
        root: the folder of the side that was imported; a module in it is not to be installed.
        python: the Python of that side, if another one.
    """
    found = _MISSING.search(error)
    if found is None:
        return ""
    name = found.group(1)
    top = name.partition(".")[0]
    inside = [p for p in (root / f"{top}.py", root / top) if p.exists()]
    if inside:
        return f"{name} is looked for in {inside[0]}; convert and verify the folder that holds it"
    package = _PACKAGES.get(name) or _PACKAGES.get(top) or top.replace("_", "-")
    shown = shlex.quote(str(python or sys.executable))
    return f"the package {top} is missing: {shown} -m pip install {package}"


@dataclass(frozen=True)
class VerifyRequest:
    """What to verify and how strictly.

    ``record`` is the file that convert wrote; ``output_root`` the folder (or file) of the
    converted code. ``builds`` are expressions evaluated in each side's own module; empty means
    every model that can be built without arguments. ``inputs`` are described in `parse_input`;
    empty means shapes are found by trying. ``k`` is the factor on torch's own float32 error;
    ``rtol``/``atol`` replace the whole rule by an elementwise one. ``timeout`` is in seconds and
    counts for one step of one Cell. ``jobs`` models are verified side by side, or on the dask
    cluster ``cluster``: an address, or local:N for N processes here.
    Without ``modes`` no model is run: only its weights find their partners. ``journal`` is the
    folder where finished rungs are kept until the run is complete, ``reproductions`` the one for
    programs that show a guilty Cell alone, ``tests`` the one for tests that verify it again.

    ``device`` is MindSpore's (CPU, GPU, Ascend); ``memory`` is the limit of each of the two
    processes in GiB, 0 for none.

    ``magnitudes`` are factors: the whole model is run on inputs of those sizes as well.

    ``steps`` are those of training that both sides make; 0: none. ``loss`` and ``optimizer`` are
    expressions for torch and MindSpore (one: for both), evaluated in each side's own module: what
    is called with the result and the ``targets``, and an optimizer of ``params``.

    ``scripts`` are commands, a converted file and its arguments: they are run as a whole, and no
    model is looked for.
    """

    record: Path
    output_root: Path
    builds: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    file: str = ""
    modes: tuple[str, ...] = ("pynative", "graph")
    gradients: bool = True
    rtol: float | None = None
    atol: float | None = None
    k: float = 3.0
    jobs: int = 1
    timeout: float = 120.0
    torch_python: Path | None = None
    seed: int = 0
    device: str = "CPU"
    memory: float = 0.0
    magnitudes: tuple[float, ...] = ()
    cluster: str = ""
    steps: int = 0
    loss: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    optimizer: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    journal: Path | None = field(default=None, compare=False)
    reproductions: Path | None = field(default=None, compare=False)
    tests: Path | None = field(default=None, compare=False)


def arguments(request: VerifyRequest) -> tuple[str, ...]:
    """Return the options of verify, but builds and inputs, that ask for the same again."""
    plain = VerifyRequest(Path(), Path())
    found: list[str] = []
    for name in ("steps", "k", "rtol", "atol", "device"):
        value = getattr(request, name)
        if value != getattr(plain, name):
            found += [f"--{name}", str(value)]
    if len(request.modes) == 1:
        found += ["--mode", request.modes[0]]
    found += [part for factor in request.magnitudes for part in ("--magnitude", f"{factor:g}")]
    for option, values in (
        ("--loss", request.loss), ("--target", request.targets), ("--optimizer", request.optimizer)
    ):  # fmt: skip
        found += [part for value in values for part in (option, value)]
    return tuple(found)


@dataclass(frozen=True)
class InputSpec:
    """One input: a tensor (shape, dtype, whole numbers below ``high``) or a Python literal."""

    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    low: int = 0
    high: int = 0
    literal: str = ""
    name: str = ""

    @property
    def text(self) -> str:
        """Return the description that parses back to this input."""
        prefix = f"{self.name}=" if self.name else ""
        if self.literal:
            return f"{prefix}py:{self.literal}"
        shape = "x".join(str(size) for size in self.shape) or "scalar"
        if self.dtype == "float32" and not self.high:
            return prefix + shape
        limits = f"{self.low}<={self.dtype}<{self.high}" if self.low else f"{self.dtype}"
        limits += f"<{self.high}" if self.high and not self.low else ""
        return f"{prefix}{shape}:{limits}"

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


def parse_input(text: str) -> InputSpec:
    """Read one input description.

    ``2x3x64x64`` is a float32 tensor of normal numbers, ``2x16:int64<100`` whole numbers from 0
    to 99 (``2x16:5<=int64<100`` from 5), ``2x8:bool``, ``scalar`` a tensor without axes,
    ``py:None`` or ``py:(8, 8)`` a Python literal; ``mask=2x8:bool`` passes it by keyword.
    Raises ValueError that names the part that cannot be read.
    """
    name, rest = _keyword(text.strip())
    if rest.startswith("py:"):
        try:
            ast.literal_eval(rest[3:].strip())
        except (ValueError, SyntaxError) as error:
            raise ValueError(f"input {text!r}: {rest[3:]!r} is not a Python literal") from error
        return InputSpec(literal=rest[3:].strip(), name=name)
    shape_text, _, dtype_text = rest.partition(":")
    dtype, low, high = _limits(text, dtype_text.strip() or "float32")
    return InputSpec(_shape(text, shape_text.strip()), dtype, low, high, name=name)


def _keyword(text: str) -> tuple[str, str]:
    head, mark, tail = text.partition("=")
    if mark and head.strip().isidentifier() and not tail.startswith("="):
        return head.strip(), tail.strip()
    return "", text


def _shape(text: str, shape: str) -> tuple[int, ...]:
    if shape == "scalar":
        return ()
    try:
        sizes = tuple(int(part) for part in shape.split("x"))
    except ValueError as error:
        raise ValueError(
            f"input {text!r}: {shape!r} is not a shape; write sizes joined by x, like 2x3x64x64"
        ) from error
    if any(size < 0 for size in sizes):
        raise ValueError(f"input {text!r}: a size is negative")
    return sizes


def _limits(text: str, dtype: str) -> tuple[str, int, int]:
    low, high = "0", "0"
    if "<=" in dtype:
        low, _, dtype = dtype.partition("<=")
    if "<" in dtype:
        dtype, _, high = dtype.partition("<")
    dtype = dtype.strip()
    if dtype not in DTYPES:
        raise ValueError(f"input {text!r}: {dtype!r} is no dtype; one of {', '.join(DTYPES)}")
    try:
        return dtype, int(low), int(high)
    except ValueError as error:
        raise ValueError(f"input {text!r}: a limit is not a whole number") from error


@dataclass(frozen=True)
class Draw:
    """A change of the inputs: floats times ``factor``, ``put`` at the end of whole numbers.

    ``longer`` (1 or -1) lengthens or shortens the axes after the second one. ``root_only``: the
    whole model alone is compared.
    """

    factor: float = 1.0
    put: int | None = None
    longer: int = 0
    root_only: bool = False

    @property
    def is_plain(self) -> bool:
        return (self.factor, self.put, self.longer) == (1.0, None, 0)

    @property
    def text(self) -> str:
        """Return how the inputs differ, in words."""
        parts = [f"inputs times {self.factor:g}"] if self.factor != 1.0 else []
        parts += [f"inputs that end on {self.put}"] if self.put is not None else []
        parts += [f"inputs {'longer' if self.longer > 0 else 'shorter'} by one"] * bool(self.longer)
        return ", ".join(parts)

    @property
    def suffix(self) -> str:
        """Return what names the folder that holds it."""
        whole = "_whole" if self.root_only else ""
        return "" if self.is_plain else f"_{self.text}{whole}".replace(" ", "_")


PLAIN = Draw()


def has_floats(inputs: Sequence[str]) -> bool:
    """Return whether one of these inputs is a tensor that has a size to change."""
    specs = [parse_input(text) for text in inputs]
    return any(not spec.literal and spec.dtype.startswith(("float", "bfloat")) for spec in specs)


@dataclass(frozen=True)
class Address:
    """One side of a pair; ``build`` is evaluated in ``module`` and called if it is no model yet."""

    module: str
    build: str

    @property
    def text(self) -> str:
        return f"{self.module}:{self.build}"


def is_address(text: str) -> bool:
    """Return whether an argument names an object of a module, and not a file or folder."""
    module, mark, build = text.partition(":")
    return bool(mark and build) and all(part.isidentifier() for part in module.split("."))


def parse_address(text: str) -> Address:
    """Read one side of a pair. Raises ValueError that says what cannot be read."""
    if not is_address(text):
        raise ValueError(f"{text!r} is not module:name or module:call(...)")
    module, _, build = text.partition(":")
    try:
        ast.parse(build.strip(), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"{text!r}: {build!r} is not a Python expression") from error
    return Address(module, build.strip())
