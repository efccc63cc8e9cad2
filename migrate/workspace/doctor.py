"""In: this machine. Out: findings about what verify needs, without importing a framework."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

Level = Literal["ok", "advice", "problem"]
Version = Callable[[str], str]
INSTALL = 'pip install "torch2mindspore[verify]"'


@dataclass(frozen=True)
class Finding:
    """One line of the report: what was looked at, what was found, and what to do next."""

    level: Level
    name: str
    found: str
    next_step: str = ""


def diagnose() -> tuple[Finding, ...]:
    """Look at Python, torch, MindSpore, numpy, the processor, memory and the helper variables."""
    return judge(
        sys.version_info[:2], installed, platform.machine(), cpu_flags(), dict(os.environ),
        os.cpu_count() or 1, memory_gib(),
    )  # fmt: skip


def installed(name: str) -> str:
    """The installed version of a distribution; empty when it is missing or cannot be found."""
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
    return version if importlib.util.find_spec(name) is not None else ""


def cpu_flags() -> frozenset[str]:
    """Instruction sets that the processor reports (Linux); empty elsewhere."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return frozenset()
    lines = [line for line in text.splitlines() if line.startswith(("flags", "Features"))]
    return frozenset(lines[0].partition(":")[2].split()) if lines else frozenset()


def memory_gib() -> float:
    """Memory that is free for programs, in GiB (Linux); 0 where that is unknown."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return 0.0
    rows = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return float(rows.get("MemAvailable", "0 kB").split()[0]) / 2**20


def judge(
    python: tuple[int, ...], version: Version, machine: str, flags: frozenset[str],
    environment: Mapping[str, str], processors: int, memory: float,
) -> tuple[Finding, ...]:  # fmt: skip
    """The findings for one environment; pure but for ``version``, which looks packages up."""
    return (
        _python(python),
        _torch(version("torch")),
        _mindspore(version("mindspore"), python),
        _numpy(version("numpy"), version("mindspore")),
        _onednn(machine, flags, environment),
        _size(processors, memory),
    )


def _python(python: tuple[int, ...]) -> Finding:
    text = ".".join(str(number) for number in python)
    if (3, 10) <= python < (3, 13):
        return Finding("ok", "Python", text)
    return Finding(
        "problem", "Python", f"{text}; MindSpore 2.10 has wheels for 3.10 to 3.12 only",
        "convert and report work here; make a Python 3.11 environment for verify",
    )  # fmt: skip


def _torch(version: str) -> Finding:
    if version:
        return Finding("ok", "torch", version)
    return Finding(
        "problem", "torch", "not installed here",
        f"{INSTALL}, or verify --torch-python PATH to a Python that has it",
    )  # fmt: skip


def _mindspore(version: str, python: tuple[int, ...]) -> Finding:
    if version:
        level: Level = "ok" if version.startswith("2.10") else "advice"
        step = "" if level == "ok" else "the table was measured with 2.10; other versions differ"
        return Finding(level, "mindspore", version, step)
    step = INSTALL if (3, 10) <= python < (3, 13) else "see Python"
    return Finding("problem", "mindspore", "not installed here", step)


def _numpy(version: str, mindspore: str) -> Finding:
    if not version:
        return Finding("problem", "numpy", "not installed here", INSTALL)
    if int(version.partition(".")[0]) < 2:
        return Finding("ok", "numpy", version)
    level: Level = "problem" if mindspore else "advice"
    return Finding(
        level, "numpy", f"{version}; MindSpore 2.10 needs a version below 2",
        'pip install "numpy<2"; a torch environment with numpy 2 goes by --torch-python',
    )  # fmt: skip


def _onednn(machine: str, flags: frozenset[str], environment: Mapping[str, str]) -> Finding:
    value = environment.get("ONEDNN_MAX_CPU_ISA", "")
    wide = any(flag.startswith("avx512") for flag in flags)
    if not wide:
        return Finding("ok", "oneDNN", f"{machine or 'processor'} without AVX-512")
    if value:
        return Finding("ok", "oneDNN", f"ONEDNN_MAX_CPU_ISA={value}")
    return Finding(
        "advice", "oneDNN",
        "AVX-512 and no ONEDNN_MAX_CPU_ISA: MindSpore 2.10 then runs its reference convolution, "
        "up to 80 times slower",
        "export ONEDNN_MAX_CPU_ISA=AVX2 before MindSpore starts (verify does so by itself)",
    )  # fmt: skip


def _size(processors: int, memory: float) -> Finding:
    text = f"{processors} processors" + (f", {memory:.1f} GiB free" if memory else "")
    if not memory or memory >= 4.0:
        return Finding("ok", "machine", text)
    return Finding(
        "advice", "machine", text,
        "both frameworks and the recorded activations need about 4 GiB: verify --jobs 1",
    )  # fmt: skip
