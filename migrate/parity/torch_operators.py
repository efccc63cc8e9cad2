"""In: a torchvision whose binary does not fit this torch. Out: one that imports all the same.

Its compiled operators are declared without a kernel: models that do not call them run, and a
model that does raises.
"""

from __future__ import annotations

import torch

SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


def is_missing_operator(error: BaseException) -> bool:
    """Whether an import failed because torchvision's operators are not there."""
    return isinstance(error, RuntimeError) and "operator torchvision::" in str(error)


def declare() -> object:
    """Declare the operators; they stay for as long as the answer is kept."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    for schema in SCHEMAS:
        library.define(schema)
    return library
