"""In: a flag code such as API104. Out: the topic that its letters stand for."""

from __future__ import annotations

from types import MappingProxyType

TOPICS = MappingProxyType(
    {
        "API": "API missing",
        "DEF": "defaults differ",
        "DTY": "dtype",
        "INP": "in-place or alias",
        "GRF": "graph mode syntax",
        "DAT": "data pipeline",
        "LOP": "training loop",
        "OPT": "optimizer or learning rate",
        "DEV": "mode or device",
        "CKP": "checkpoint",
        "RNG": "randomness",
        "ENV": "environment",
        "INT": "error of the converter",
        "SUP": "comment that silences a flag",
    }
)


def topic(code: str) -> str:
    """The topic of a code, or "other" for letters that docs/flags.md does not name."""
    return TOPICS.get(code.rstrip("0123456789"), "other")
