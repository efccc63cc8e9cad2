"""In: a conversion's output, or a pair. Out: nothing, or an AssertionError that names the Cell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from migrate.cli import verify, verify_pair
from migrate.records.outcomes import Verdict
from migrate.workspace.settings import VerifySettings

if TYPE_CHECKING:
    from migrate.records.result import PairResult, Verification

FINE = (Verdict.PASS, Verdict.KERNEL, Verdict.NONDET)


def assert_parity(
    out: str | Path, port: str = "", *, build: str | Sequence[str] = (),
    input: str | Sequence[str] = (), mode: Literal["both", "pynative", "graph"] | None = None,
    k: float | None = None, rtol: float | None = None, atol: float | None = None,
    timeout: float | None = None, torch_python: Path | None = None, steps: int | None = None,
    loss: str | Sequence[str] = (), target: str | Sequence[str] = (),
    optimizer: str | Sequence[str] = (), magnitudes: Sequence[float] = (),
    map: Path | None = None, folders: Sequence[Path] = (),
) -> Verification | PairResult:  # fmt: skip
    """Fail unless both frameworks compute the same, in every Cell that could be compared.

    ``assert_parity("out/net.py", build="Net(10)", input="2x3x32x32")`` verifies what convert
    wrote; ``assert_parity("net_torch:Net", "net_ms:Net", input="2x3x32x32")`` a port written by
    hand, whose modules are looked for in ``folders`` and the current one. The other arguments are
    the options of ``torch2ms verify``; [tool.torch2ms.verify] counts as well. Answers the result.

    Raises:
        AssertionError: a Cell differs, or nothing was compared; its text is that of the command.
        migrate.errors.Problem: there is no record, a framework is missing, or an option is wrong.
    """
    given = VerifySettings(
        build=_several(build), input=_several(input), mode=mode, timeout=timeout, k=k, rtol=rtol,
        atol=atol, torch_python=torch_python, steps=steps, loss=_several(loss),
        target=_several(target), optimizer=_several(optimizer), magnitudes=tuple(magnitudes),
    )  # fmt: skip
    result: Verification | PairResult
    if port:
        result, _ = verify_pair.verified(str(out), port, given, map, folders)
        said = list(verify_pair.lines(result))
    else:
        result = verify.verified(Path(out), given)
        said = [*verify.lines(result, Path(out))][:-1]  # the last one names the next command
    if result.verdict not in FINE:
        raise AssertionError("\n".join(["torch and MindSpore differ:", *said]))
    return result


def _several(value: str | Sequence[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
