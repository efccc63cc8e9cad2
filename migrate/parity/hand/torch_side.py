"""In: requests of the verifying process. Out: answers about a torch model that somebody wrote."""

from __future__ import annotations

from migrate.parity import torch_side
from migrate.parity.torch_draws import Draws


def main() -> None:
    """Serve until stdin ends, with shared draws."""
    Draws().share()
    torch_side.main()
