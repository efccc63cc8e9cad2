"""In: the example in README.md. Out: whether it is what the converter makes of the sample."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]


def blocks(language: str) -> list[str]:
    """The fenced code blocks of one language."""
    parts = (ROOT / "README.md").read_text(encoding="utf-8").split(f"```{language}\n")[1:]
    return [part.partition("```")[0] for part in parts]


def test_the_example_is_real() -> None:
    before, after = blocks("python")[:2]
    for text, framework in ((before, "torch"), (after, "mindspore")):
        sample = (ROOT / "samples" / "unet" / framework / "unet.py").read_text(encoding="utf-8")
        assert text.count("\n") > 15
        assert text in sample


def test_links_lead_somewhere() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for part in page.read_text(encoding="utf-8").split("](")[1:]:
            target = part.partition(")")[0].partition("#")[0]
            if target and "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
