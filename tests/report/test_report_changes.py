"""In: two conversions. Out: whether what got better and worse is told apart, as text and status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from migrate.records.outcomes import Outcome, Verdict
from migrate.records.result import (
    Check,
    Entry,
    FileResult,
    Ledger,
    ModelResult,
    Record,
    Verification,
)
from migrate.report import changes, compare
from migrate.report.changes import Changes
from migrate.report.formats import Document


def flag(name: str, line: int = 3) -> Entry:
    return Entry(
        name=name, outcome=Outcome.FLAGGED, line=line, column=1, code="API104", reason="*no* target"
    )


def document(*flags: Entry, verification: Verification | None = None, failed: bool = False):
    ledger = Ledger(total=5, converted=5 - len(flags), flagged=len(flags))
    files = [FileResult(source="net.py", ledger=ledger, entries=flags)]
    files += [FileResult(source="bad.py", status="failed")] if failed else []
    return Document(record=Record(files=tuple(files)), verification=verification)


def verified(verdict: Verdict, elements: int = 4, cell: str = "fc", inputs: str = "2x3"):
    check = Check(
        rung="gradients", mode="graph", torch_path=cell, verdict=verdict, elements=elements
    )
    model = ModelResult(
        name="Net", source="net.py", build="Net()", inputs=(inputs,), verdict=verdict,
        checks=(check,),
    )  # fmt: skip
    return Verification(verdict=verdict, models=(model,))


def between(old: Verification | None, new: Verification | None) -> Changes:
    return compare(document(verification=old), document(verification=new))


def test_flags_that_only_move_have_not_changed() -> None:
    found = compare(document(flag("torch.a", 3)), document(flag("torch.a", 9)))
    assert not found.flags_new and not found.flags_gone and not found.worse
    assert changes(found, "md").startswith("# Nothing got worse\n")


def test_one_flag_more_of_the_same_kind_is_new() -> None:
    found = compare(document(flag("torch.a")), document(flag("torch.a"), flag("torch.a", 8)))
    ((one,), gone) = found.flags_new, found.flags_gone
    assert (one.name, one.count) == ("torch.a", 1) and not gone and found.worse
    text = changes(found, "md")
    assert text.startswith("# Worse than before\n") and "## New flags (1)" in text
    assert "torch.a: \\*no\\* target" in text and "| flagged | 1 | 2 | +1 |" in text


def test_flags_that_are_gone_are_no_fault() -> None:
    found = compare(document(flag("torch.a"), flag("torch.b")), document(flag("torch.b")))
    assert [one.name for one in found.flags_gone] == ["torch.a"] and not found.worse


def test_files_that_fail() -> None:
    found = compare(document(), document(failed=True))
    assert found.failed_new == ("bad.py",) and found.worse
    back = compare(document(failed=True), document())
    assert back.failed_gone == ("bad.py",) and not back.worse


@pytest.mark.parametrize(
    ("old", "new", "worse"),
    [
        (verified(Verdict.PASS), verified(Verdict.DIVERGED), True),
        (verified(Verdict.PASS), verified(Verdict.KERNEL), True),
        (verified(Verdict.DIVERGED), verified(Verdict.PASS), False),
        (verified(Verdict.PASS), None, True),
        (None, verified(Verdict.DIVERGED), False),
        (verified(Verdict.PASS), verified(Verdict.PASS, elements=0), True),
        (verified(Verdict.PASS), verified(Verdict.PASS, cell="other"), True),
        (verified(Verdict.PASS), verified(Verdict.PASS, inputs="4x3"), True),
        (verified(Verdict.PASS), verified(Verdict.PASS, elements=3), False),
    ],
)
def test_verdicts(old: Verification | None, new: Verification | None, worse: bool) -> None:
    found = between(old, new)
    assert found.worse is worse
    assert ("Verdicts that got worse" in changes(found, "md")) is worse


def test_nothing_is_listed_where_nothing_changed() -> None:
    same = verified(Verdict.PASS)
    found = between(same, same)
    assert not found.verdicts and "##" not in changes(found, "md")


def test_json_says_the_same(tmp_path: Path) -> None:
    found = between(verified(Verdict.PASS), verified(Verdict.DIVERGED))
    assert Changes.model_validate_json(changes(found, "json")) == found
    with pytest.raises(ValueError, match="md or json"):
        changes(found, "html")


def test_the_command_reads_outputs_and_reports_and_fails_for_the_worse(run, write) -> None:
    good = write({"a.py": "import torch\n\n\ndef f(x: torch.Tensor):\n    return torch.abs(x)\n"})
    bad = write({"a.py": "import torch\n\n\ndef f():\n    return torch.cuda.Stream()\n"}, "in2")
    top = good.parent
    for source, out in ((good, "old"), (bad, "new")):
        run("convert", source, "-o", top / out)
    assert run("report", top / "old", "-o", top / "old.json").code == 0
    ran = run("report", "--compare", top / "old.json", top / "new")
    assert ran.code == 1 and "DEV109" in ran.out
    assert run("report", "--compare", top / "new", top / "old").code == 0
    assert run("report", "--compare", top / "old", top / "new", "-o", top / "c.json").code == 1
    assert json.loads((top / "c.json").read_text())["flags_new"][0]["code"] == "DEV109"
    assert run("report", "--compare", top / "a.py", top / "new").code == 2
    (top / "no.json").write_text("{}")
    assert "not a report" in run("report", "--compare", top / "no.json", top / "new").err


def test_formats_that_are_text_can_be_printed(run, write) -> None:
    root = write({"a.py": "import torch\n\n\ndef f():\n    return torch.cuda.Stream()\n"})
    run("convert", root, "-o", root.parent / "out")
    for format, start in (
        ("github", "::warning file="),
        ("md", "# "),
        ("sarif", "{"),
        ("junit", "<"),
    ):
        assert run("report", root.parent / "out", "--format", format).out.startswith(start)
    assert "give -o FILE" in run("report", root.parent / "out").err
    run("report", root.parent / "out", "-o", root.parent / "r.sarif")
    assert json.loads((root.parent / "r.sarif").read_text())["version"] == "2.1.0"
