"""In: a torch model. Out: a file of its state dict, and what a file that came back does to it."""

from __future__ import annotations

from pathlib import Path

import torch

from migrate.parity.channel import Payload
from migrate.parity.torch_files import bits


def save_state(model: torch.nn.Module, request: Payload) -> Payload:
    """Write the state dict to ``file``; the names of its tensors."""
    state = model.state_dict()
    torch.save(state, Path(request["file"]))
    return {"keys": [key for key, one in state.items() if isinstance(one, torch.Tensor)]}


def compare_state(model: torch.nn.Module, request: Payload) -> Payload:
    """Compare the ``file`` that came back with the model, as `load_state_dict` would take it.

    ``{"faults": {name: reason}, "extra": [names], "elements": {name: numbers compared}}``
    """
    state = torch.load(request["file"], map_location="cpu", weights_only=True)
    faults: dict[str, str] = {}
    elements: dict[str, int] = {}
    for key, wanted in model.state_dict().items():
        if not isinstance(wanted, torch.Tensor) or key in request["free"]:
            continue
        elements[key] = wanted.numel()
        faults[key] = _fault(state.get(key), wanted)
    return {
        "faults": {key: why for key, why in faults.items() if why},
        "extra": [key for key in state if key not in model.state_dict()],
        "elements": elements,
    }


def _fault(back: object, wanted: torch.Tensor) -> str:
    if not isinstance(back, torch.Tensor):
        return "does not come back"
    if back.shape != wanted.shape:
        return f"comes back as {tuple(back.shape)} instead of {tuple(wanted.shape)}"
    one, other = bits(back.to(wanted.dtype)), bits(wanted)
    wrong = int((one != other).sum()) if one.tobytes() != other.tobytes() else 0
    if one.tobytes() == other.tobytes():
        return ""
    return f"{wrong or 'some'} of {wanted.numel()} numbers come back otherwise"
