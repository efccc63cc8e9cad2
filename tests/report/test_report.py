"""In: small records and verifications made by hand. Out: whether the report tells the truth."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from markupsafe import escape

from migrate import report
from migrate.records.outcomes import Outcome, Verdict
from migrate.records.result import (
    CellPlace,
    Check,
    Entry,
    FileResult,
    Guilty,
    Ledger,
    ModelResult,
    Record,
    Rung,
    Verification,
    counted,
)
from migrate.report import ledger
from migrate.report.diff import blocks, changed, markup, tokens
from migrate.report.headline import headline
from migrate.report.heatmap import heat, heat_map

BEFORE = '''import torch
from torch import nn


class Net(nn.Module):
    """A net: <b> & "quotes" stay text."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1, padding_mode="reflect")
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        return self.fc(self.conv(x).mean((2, 3)))


class Unused(nn.Module):
    pass
'''
AFTER = '''from mindspore import nn


class Net(nn.Cell):
    """A net: <b> & "quotes" stay text."""

    def __init__(self):
        super().__init__()
        # TODO(torch2ms API104): padding_mode
        raise NotImplementedError("torch2ms API104: padding_mode")
        self.fc = nn.Dense(8, 2)

    def construct(self, x):
        return self.fc(self.conv(x).mean((2, 3)))


class Unused(nn.Cell):
    pass
'''
ENTRIES = (
    Entry(
        name="torch.nn.Module",
        outcome=Outcome.CONVERTED,
        line=5,
        column=11,
        output_line=4,
        row="torch.nn.Module",
        target="mindspore.nn.Cell",
    ),
    Entry(
        name="torch.nn.Conv2d",
        outcome=Outcome.FLAGGED,
        line=10,
        column=21,
        output_line=9,
        code="API104",
        reason="padding_mode='reflect' has no target <script>alert(1)</script>",
        next_step="pad first with ops.pad",
    ),
    Entry(
        name="torch.nn.Linear",
        outcome=Outcome.CONVERTED,
        line=11,
        column=19,
        output_line=11,
        row="torch.nn.Linear",
        target="mindspore.nn.Dense",
        note="Same first values.",
    ),
    Entry(
        name="torch.Tensor.mean",
        outcome=Outcome.KEPT,
        line=14,
        column=24,
        output_line=14,
        row="torch.Tensor.mean",
    ),
    Entry(
        name="torch.nn.Module",
        outcome=Outcome.CONVERTED,
        line=17,
        column=14,
        output_line=17,
        row="torch.nn.Module",
        target="mindspore.nn.Cell",
    ),
)


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def make_record(**changes: object) -> Record:
    file = FileResult(
        source="pkg/net.py",
        output="pkg/net.py",
        lines=18,
        source_sha256=digest(BEFORE),
        output_sha256=digest(AFTER),
        ledger=counted(ENTRIES),
        entries=ENTRIES,
        cells=(
            CellPlace(name="Net", line=5, end_line=14, output_line=4, output_end_line=14),
            CellPlace(name="Unused", line=17, end_line=18, output_line=17, output_end_line=18),
        ),
    )
    fields: dict[str, object] = {
        "tool_version": "0.1.0",
        "kind": "folder",
        "source_root": "/home/me/project",
        "facts": {"torch": "2.13.0"},
        "files": (
            file,
            FileResult(source="old.py", status="failed", reason="line 3: print statement"),
            FileResult(source=".venv", status="skipped", reason="virtual environment"),
            FileResult(source="data.csv", output="data.csv", status="copied"),
        ),
    }
    return Record.model_validate({**fields, **changes})


def make_check(**changes: object) -> Check:
    fields: dict[str, object] = {
        "rung": "forward eval",
        "mode": "pynative",
        "torch_path": "fc",
        "mindspore_path": "fc",
        "torch_class": "Linear",
        "mindspore_class": "Dense",
        "source": "pkg/net.py",
        "verdict": Verdict.PASS,
        "elements": 4,
        "local": 1e-8,
        "cumulative": 2e-8,
        "own": 1e-8,
        "limit": 1e-6,
    }
    return Check.model_validate({**fields, **changes})


def make_verification(*checks: Check, **changes: object) -> Verification:
    verdict = max((c.verdict for c in checks), key=list(Verdict).index, default=Verdict.NOT_RUN)
    model = ModelResult(
        name="Net",
        source="pkg/net.py",
        build="Net()",
        inputs=("2x3x8x8",),
        verdict=verdict,
        rungs=(Rung(name="forward eval", mode="pynative", verdict=verdict, checks=len(checks)),),
        checks=checks,
        weights_total=2,
        weights_matched=2,
    )
    return Verification(
        verdict=verdict,
        environment={"torch": "2.13.0", "mindspore": "2.10.0"},
        models=(model.model_copy(update=changes),),
    )


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    for name, text in (("in", BEFORE), ("out", AFTER)):
        (tmp_path / name / "pkg").mkdir(parents=True)
        (tmp_path / name / "pkg" / "net.py").write_text(text, encoding="utf-8")
    return tmp_path / "in", tmp_path / "out"


class Page(HTMLParser):
    """Reads a page: open tags must close, ids must be unique, tables and texts are kept."""

    VOID = frozenset({"meta", "link", "br", "hr", "img", "input", "col", "wbr"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.inside: list[list[list[str]]] = []  # the tables that are open, the innermost last
        self.texts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if tag not in self.VOID:
            self.open.append(tag)
        if found.get("id"):
            self.ids.append(found["id"] or "")
        if tag == "a":
            self.links.append(found.get("href") or "")
        if tag == "table":
            self.tables.append([])
            self.inside.append(self.tables[-1])
        if tag == "tr" and self.inside:
            self.inside[-1].append([])
        if tag in ("td", "th") and self.inside:
            self.inside[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "table":
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("script", "style"):
            return
        self.texts.append(data)
        if self.inside and self.inside[-1] and self.inside[-1][-1]:
            self.inside[-1][-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    def table(self, head: str) -> list[list[str]]:
        return self._stripped(lambda first: first[0] == head)

    def tables_with(self, head: str) -> list[list[str]]:
        """The table one of whose columns has this head."""
        return self._stripped(lambda first: head in first)

    def _stripped(self, wanted: Callable[[list[str]], bool]) -> list[list[str]]:
        found = ([[cell.strip() for cell in row] for row in table] for table in self.tables)
        return next(table for table in found if table and table[0] and wanted(table[0]))


def read(text: str) -> Page:
    page = Page(text)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    return page


def test_page_is_whole_and_self_contained(trees: tuple[Path, Path]) -> None:
    page = read(report.render(make_record(), make_verification(make_check()), *trees, "html"))
    for tag, attributes in page.tags:
        assert tag not in ("link", "img", "iframe", "object")
        assert not (tag == "script" and "src" in attributes)
    assert all(link.startswith("#") for link in page.links)
    assert all(link[1:] in page.ids for link in page.links)


def test_text_of_the_user_never_becomes_markup(trees: tuple[Path, Path]) -> None:
    record = make_record(source_root="/home/<script>alert(2)</script>")
    html = report.render(record, make_verification(make_check(), detail="<img src=x>"), *trees)
    assert "<script>alert" not in html
    assert "<img" not in html
    assert "<script>alert(1)</script>" in read(html).text


def test_ledger_tables_show_the_numbers_of_the_record(trees: tuple[Path, Path]) -> None:
    record = make_record()
    page = read(report.render(record, None, *trees))
    total = [str(getattr(record.ledger, column)) for column in (*ledger.COLUMNS, "total")]
    for head in ("File", "torch name"):
        table = page.table(head)
        numbers = [[int(cell) for cell in row[1:]] for row in table[1:]]
        assert [str(cell) for cell in numbers[-1]] == total
        assert [sum(column) for column in zip(*numbers[:-1], strict=True)] == numbers[-1]
        assert all(sum(row[:-1]) == row[-1] for row in numbers)
    assert page.table("torch name")[1] == ["torch.nn.Module", "2", "0", "0", "0", "0", "2"]


def test_a_ledger_that_does_not_add_up_is_announced(trees: tuple[Path, Path]) -> None:
    bad = make_record().files[0].model_copy(update={"ledger": Ledger(total=9, converted=3)})
    record = make_record(files=(bad,))
    assert len(ledger.complaints(record)) == 2
    assert "The ledger does not add up" in read(report.render(record, None, *trees)).text
    assert ledger.complaints(make_record()) == ()


@pytest.mark.parametrize(
    ("verification", "tone", "badge"),
    [
        (None, "warn", "NOT verified"),
        (make_verification(), "bad", "NOT verified"),
        (make_verification(make_check(elements=0)), "bad", "NOT verified"),
        (make_verification(make_check(verdict=Verdict.DIVERGED)), "bad", "DIVERGED"),
        (make_verification(make_check(verdict=Verdict.BLOCKED)), "bad", "BLOCKED"),
        (make_verification(make_check(torch_class="Net")), "warn", "Verified in part"),
    ],
)
def test_headline_never_claims_more_than_was_shown(
    verification: Verification | None, tone: str, badge: str
) -> None:
    record = make_record(files=make_record().files[:1])
    found = headline(record, verification, ledger.coverage(record, verification))
    assert (found.tone, found.badge) == (tone, badge)


def test_headline_is_good_only_when_all_classes_match_and_nothing_is_flagged() -> None:
    checks = make_check(torch_class="Net"), make_check(torch_class="Unused")
    clean = tuple(entry for entry in ENTRIES if entry.outcome is not Outcome.FLAGGED)
    change = {"entries": clean, "ledger": counted(clean)}
    record = make_record(files=(make_record().files[0].model_copy(update=change),))
    verification = make_verification(*checks)
    assert headline(record, verification, ledger.coverage(record, verification)).tone == "good"
    failed = make_record()
    assert headline(failed, verification, ledger.coverage(failed, verification)).tone == "bad"


def test_coverage_counts_classes_and_references_apart() -> None:
    checks = (
        make_check(torch_class="pkg.net.Net", local=1.0, verdict=Verdict.DIVERGED),
        make_check(),
    )
    seen = ledger.coverage(make_record(), make_verification(*checks))
    assert (len(seen.classes), seen.classes_executed, seen.classes_matched) == (2, 1, 0)
    assert (seen.inside, seen.executed, seen.matched) == (4, 3, 0)
    assert (seen.checks, seen.checks_matched, seen.elements) == (2, 1, 8)


def test_flags_carry_reason_and_next_step(trees: tuple[Path, Path]) -> None:
    page = read(report.render(make_record(), None, *trees))
    assert "API104 API missing 1" in page.text
    assert "Next: pad first with ops.pad" in page.text
    assert "#f1L10" in page.links


def test_failed_skipped_and_copied_files_are_listed(trees: tuple[Path, Path]) -> None:
    text = read(report.render(make_record(), None, *trees)).text
    assert "failed old.py line 3: print statement" in text
    assert "skipped .venv virtual environment" in text
    assert "1 file copied as they are data.csv" in text


def test_missing_and_changed_files_degrade_with_a_message(trees: tuple[Path, Path]) -> None:
    source, output = trees
    (output / "pkg" / "net.py").write_text(AFTER + "# by hand\n", encoding="utf-8")
    assert (
        "The output file pkg/net.py has changed"
        in read(report.render(make_record(), None, source, output)).text
    )
    page = read(report.render(make_record(), None, source / "gone", output))
    assert all(link[1:] in page.ids for link in page.links)
    text = page.text
    assert "the source file cannot be read" in text
    assert "convert again" in text


def test_one_file_may_stand_for_its_root(trees: tuple[Path, Path]) -> None:
    source, output = (root / "pkg" / "net.py" for root in trees)
    html = report.render(make_record(kind="file"), None, source, output)
    page = read(html)
    assert "self.fc = nn.Dense(8, 2)" in page.text and "cannot be read" not in page.text


def test_guilty_cell_is_named(trees: tuple[Path, Path]) -> None:
    guilty = Guilty(
        rung="forward eval",
        mode="pynative",
        torch="fc",
        mindspore="fc",
        torch_place="pkg/net.py:11",
        mindspore_place="pkg/net.py:11",
        cause="bias missing",
    )
    check = make_check(verdict=Verdict.DIVERGED, local=1.0, torch_line=11)
    html = report.render(make_record(), make_verification(check, guilty=guilty), *trees)
    assert "#f1L11" in read(html).links
    text = read(html).text
    assert "First Cell whose local check fails: fc → fc" in text
    assert "bias missing" in text
    assert "DIVERGED" in text


def test_heat_map_is_in_order_of_execution_and_shows_the_worst_call() -> None:
    checks = (
        make_check(torch_path="block.b", order=2),
        make_check(torch_path="a", order=1),
        make_check(torch_path="a", order=3, verdict=Verdict.DIVERGED, local=1.0),
        make_check(torch_path="a", order=1, mode="graph"),
    )
    found = heat_map(make_verification(*checks).models[0])
    assert [row.parent + row.label for row in found.rows] == ["a", "block.b"]
    assert [(c.rung, c.mode) for c in found.columns] == [
        ("forward eval", "pynative"),
        ("forward eval", "graph"),
    ]
    worst = found.rows[0].squares[0]
    assert worst is not None and worst.verdict is Verdict.DIVERGED and worst.calls == 2
    assert found.rows[1].squares[1] is None
    assert [row.fine for row in found.rows] == [False, True]


@pytest.mark.parametrize(
    ("error", "limit", "level", "text"),
    [
        (None, 1e-6, -1, "-"),
        (0.0, 1e-6, 0, "0"),
        (1e-9, 1e-6, 0, "<.01"),
        (9.99e-7, 1e-6, 3, ".99"),
        (1e-6, 1e-6, 3, "1.00"),
        (1.001e-6, 1e-6, 4, "1.1"),
        (5e-4, 1e-6, 7, "500"),
        (1.0, 1e-6, 7, "1e6"),
        (float("nan"), 1e-6, 7, "nan"),
        (1e-3, 0.0, 7, "1e-03"),
        (1e-3, None, -1, "1e-03"),
    ],
)
def test_heat(error: float | None, limit: float | None, level: int, text: str) -> None:
    found = heat(error, limit)
    assert (found.level, found.text) == (level, text)


def test_diff_shows_every_line_of_both_sides_once() -> None:
    rows = [row for block in blocks(BEFORE, AFTER, ENTRIES) for row in block.rows]
    assert [row.left for row in rows if row.left] == list(range(1, BEFORE.count("\n") + 1))
    assert [row.right for row in rows if row.right] == list(range(1, AFTER.count("\n") + 1))
    assert [e for row in rows for e in row.entries] == list(ENTRIES)
    same = [row for row in rows if row.kind == "same"]
    assert all(row.left_html == row.right_html for row in same)
    assert (11, 11) in [(row.left, row.right) for row in rows]


def test_diff_of_one_empty_side() -> None:
    rows = [row for block in blocks("", "x = 1\n", ()) for row in block.rows]
    assert [(row.kind, row.right) for row in rows] == [("add", 1)]
    assert blocks("", "", ()) == ()


def test_long_unchanged_stretches_are_folded() -> None:
    body = "".join(f"a{i} = {i}\n" for i in range(100))
    found = blocks("import torch\n" + body, "import mindspore\n" + body, ())
    assert [block.folded for block in found] == [False, True]
    assert sum(len(block.rows) for block in found) == 101


def test_highlighting_keeps_the_text_and_marks_what_changed() -> None:
    (line,) = tokens("x = nn.Linear(3, 'a<b')  # c\n")
    assert "".join(token.text for token in line) == "x = nn.Linear(3, 'a<b')  # c"
    assert "a&lt;b" in markup(line)
    (after,) = tokens("x = nn.Dense(3, 'a<b')  # c\n")
    left, right = changed(line, after)
    assert [t.text for t, mark in zip(line, left, strict=True) if mark] == ["Linear"]
    assert [t.text for t, mark in zip(after, right, strict=True) if mark] == ["Dense"]


def test_json_is_the_result_and_fits_the_schema(trees: tuple[Path, Path]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    record, verification = make_record(), make_verification(make_check(local=float("inf")))
    document = json.loads(report.render(record, verification, *trees, "json"))
    jsonschema.validate(document, report.schema())
    assert Record.model_validate(document["record"]) == record
    assert json.loads(report.render(record, None, *trees, "json"))["verification"] is None
    document["record"]["surprise"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, report.schema())


def test_the_shipped_schema_is_the_generated_one() -> None:
    version = report.schema()["properties"]["schema_version"]["default"]
    path = Path(__file__).parents[2] / "docs" / "schema" / f"result-v{version}.json"
    assert json.loads(path.read_text(encoding="utf-8")) == report.schema()


def test_markdown_escapes_and_tells_the_same_story() -> None:
    record = make_record()
    text = report.render(record, make_verification(make_check()), Path(), Path(), "md")
    assert text.startswith("# Files failed: `/home/me/project`")
    assert "- **API104** `pkg/net.py:10`" in text and "\\<script\\>" in text
    assert "| `Net()` | PASS | 1 of 1 |" in text
    assert "| Sum | 3 | 1 | 0 | 1 | 0 | 5 |" in text
    assert "NOT verified" in report.render(record, None, Path(), Path(), "md")


def test_sarif_has_a_place_for_every_flag_and_failure() -> None:
    guilty = Guilty(
        rung="r", mode="graph", torch="fc", mindspore="fc", torch_place="pkg/net.py:11", cause="x"
    )
    verification = make_verification(make_check(), guilty=guilty)
    text = report.render(make_record(), verification, Path(), Path(), "sarif")
    (run,) = json.loads(text)["runs"]
    found = [
        (r["ruleId"], r["level"], r["locations"][0]["physicalLocation"]) for r in run["results"]
    ]
    assert [(code, level) for code, level, _ in found] == [
        ("API104", "warning"),
        ("FAILED", "error"),
        ("PARITY", "error"),
    ]
    assert found[0][2]["region"] == {"startLine": 10, "startColumn": 21}
    assert found[2][2]["region"]["startLine"] == 11
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {c for c, _, _ in found}
    schema = Path(__file__).parents[1] / "schemas" / "sarif-2.1.0-rtm.5.json"
    jsonschema.validate(json.loads(text), json.loads(schema.read_text(encoding="utf-8")))


def test_annotations_for_flags_failures_and_the_guilty_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guilty = Guilty(
        rung="r", mode="graph", torch="fc", mindspore="fc", torch_place="pkg/net.py:11", cause="x"
    )
    monkeypatch.chdir(tmp_path)
    verification = make_verification(make_check(), guilty=guilty)
    root = tmp_path / "src"
    lines = report.render(make_record(), verification, root, Path(), "github").splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["::warning", "::error", "::error"]
    assert "file=src/pkg/net.py,line=10,col=21,title=API104::" in lines[0]
    assert lines[2] == "::error file=src/pkg/net.py,line=11,title=parity::Net(): fc: x"


def test_junit_counts_failures_and_never_passes_what_did_not_run() -> None:
    checks = (
        make_check(),
        make_check(torch_path="a", verdict=Verdict.DIVERGED, detail="\x00 & <b>"),
        make_check(torch_path="b", verdict=Verdict.NOT_RUN, elements=0),
        make_check(torch_path="c", elements=0),
    )
    text = report.render(make_record(), make_verification(*checks), Path(), Path(), "junit")
    suite = ElementTree.fromstring(text)[0]
    counts = [suite.get(name) for name in ("tests", "failures", "skipped")]
    assert counts == ["4", "2", "1"]
    nothing = ElementTree.fromstring(report.render(make_record(), None, Path(), Path(), "junit"))
    assert nothing[0].get("skipped") == "1"


@pytest.mark.parametrize("version", ["2.13.0+cpu", "2.9.1"])
def test_ci_formats_say_when_the_evidence_is_of_other_versions(version: str) -> None:
    record = make_record(facts={"torch": "2.13.0"})
    ran = {"environment": {"torch": version}}
    verification = make_verification(make_check()).model_copy(update=ran)
    foreign = version == "2.9.1"
    (run,) = json.loads(report.render(record, verification, Path(), Path(), "sarif"))["runs"]
    said = json.dumps(run.get("invocations", []))
    assert ("2.9.1 (the table's evidence: 2.13.0)" in said) is foreign
    suite = ElementTree.fromstring(report.render(record, verification, Path(), Path(), "junit"))[0]
    found = {one.get("name"): one.get("value") for one in suite.findall("properties/property")}
    assert found["torch"] == version and ("caution" in found) is foreign
    assert suite.get("tests") == "1"


def test_unknown_format_names_the_known_ones(trees: tuple[Path, Path]) -> None:
    with pytest.raises(ValueError, match="html, json, md, sarif, junit, github"):
        report.render(make_record(), None, *trees, "pdf")


def packed(page: str) -> list[str]:
    """The diffs that a page holds packed."""
    found = re.findall(
        r'<script type="application/octet-stream" class="packed">(.*?)</script>', page
    )
    return [zlib.decompress(base64.b64decode(text)).decode() for text in found]


def test_flagged_files_have_room_first_and_no_diff_is_left_out(trees: tuple[Path, Path]) -> None:
    source, output = trees
    record = make_record()
    (flagged,) = (file for file in record.files if file.ledger.flagged and file.output)
    plain = flagged.model_copy(update={"ledger": Ledger(), "entries": (), "cells": ()})
    files = []
    for n in range(40):
        name = f"pkg/big{n}.py"
        text = "".join(f"self.layer{i} = nn.Conv2d({i}, 3, 3)  # {n}\n" for i in range(300))
        (source / name).write_text(text, encoding="utf-8")
        (output / name).write_text(text.replace(", 3)", ", 4)"), encoding="utf-8")
        files.append(plain.model_copy(update={"source": name, "output": name, "output_sha256": "",
                                              "source_sha256": ""}))  # fmt: skip
    page = report.render(
        record.model_copy(update={"files": (*files, flagged)}), None, source, output
    )
    assert len(page.encode()) < 3_000_000
    assert "left out" not in page
    assert f'id="f41L{flagged.entries[0].line}"' in page  # the last one, as it is
    kept = packed(page)
    assert len(kept) > 20
    assert all(f"# {n}</i>" in page or any(f"# {n}</i>" in one for one in kept) for n in range(40))
    assert all('id="f' in one and "<script" not in one for one in kept)


def test_every_flag_has_its_code_beside_it(trees: tuple[Path, Path]) -> None:
    source, output = trees
    record = make_record()
    (file,) = (file for file in record.files if file.ledger.flagged and file.output)
    (entry,) = (entry for entry in file.entries if entry.code)
    before = (source / file.source).read_text().split("\n")[entry.line - 1].strip()
    page = report.render(record, None, source, output)
    assert f'<pre class="was">{escape(before)}</pre>' in page
    many = tuple(entry.model_copy(update={"column": n + 1}) for n in range(450))
    whole = record.model_copy(update={"files": (file.model_copy(update={"entries": many}),)})
    page = report.render(whole, None, source, output)
    assert page.count('<pre class="was">') == 450
    assert 'data-work="rewrite"' in page and "<option>API104</option>" in page


def test_a_large_result_stays_below_two_megabytes(trees: tuple[Path, Path]) -> None:
    source, output = trees
    long = "".join(f"self.layer{i} = nn.Conv2d({i}, 3, 3, padding=1)  # {i}\n" for i in range(4000))
    (source / "pkg" / "net.py").write_text(long, encoding="utf-8")
    (output / "pkg" / "net.py").write_text(long.replace("=1)", "=2)"), encoding="utf-8")
    checks = [
        make_check(torch_path=f"layer{i}.conv", order=i, rung=rung, mode=mode)
        for i in range(450)
        for rung in ("forward eval", "forward train")
        for mode in ("pynative", "graph")
    ]
    html = report.render(make_record(), make_verification(*checks), source, output)
    text = read(html).text
    assert len(html.encode()) < 2_000_000
    assert "The diff is left out" not in text
    assert "layer3999" in packed(html)[0]
    assert "450 fine Cells left out" in text
