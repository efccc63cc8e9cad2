"""In: the names that an evaluation sums up. Out: what it measures, as a class name and a key."""

from __future__ import annotations

from collections.abc import Sequence

# (part of a variable's name, what it measures); the first that fits says it.
_WORDS = (
    ("top5", "Top5Accuracy"),
    ("top_5", "Top5Accuracy"),
    ("acc5", "Top5Accuracy"),
    ("correct5", "Top5Accuracy"),
    ("loss", "Loss"),
    ("acc", "Accuracy"),
    ("correct", "Accuracy"),
    ("right", "Accuracy"),
    ("hits", "Accuracy"),
    ("conf", "ConfusionMatrix"),
    ("matrix", "ConfusionMatrix"),
    ("iou", "MeanIoU"),
    ("inter", "MeanIoU"),
    ("union", "MeanIoU"),
    ("dice", "Dice"),
    ("psnr", "Psnr"),
    ("rmse", "SquaredError"),
    ("mse", "SquaredError"),
    ("mae", "AbsoluteError"),
    ("error", "Error"),
    ("pred", "Predictions"),
    ("score", "Score"),
)


def measures(sums: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """What is measured, each once. A sum has its own name first, then what is added to it.

    The first name where no word is known.
    """
    found = [next((w for w in map(_word, names) if w), "") for names in sums]
    known = tuple(dict.fromkeys(said for said in found if said))
    return known or ("".join(part.title() for part in sums[0][0].split("_")),)


def _word(name: str) -> str:
    return next((said for part, said in _WORDS if part in name.lower()), "")


def class_name(words: Sequence[str]) -> str:
    """``LossAndAccuracy``."""
    return "And".join(("".join(words[:-1]), words[-1])) if len(words) > 1 else words[0]


def key_of(words: Sequence[str]) -> str:
    """``loss_and_accuracy``: the name under which Model.eval gives it."""
    text = class_name(words).replace("IoU", "Iou")
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in text).lstrip("_")
