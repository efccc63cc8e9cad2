"""In: table and command line. Out: whether the pages made from them are whole and up to date."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
import typer

from migrate.cli import app as cli
from migrate.cli.pages import MARKER, commands_page, rules_page
from migrate.mapping.table import load
from migrate.rules import registry

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def page() -> str:
    from migrate.explain.page import browse

    return browse(load())


def test_commands_page_is_up_to_date() -> None:
    made = commands_page(typer.main.get_command(cli.app))
    assert made.startswith(MARKER)
    assert (DOCS / "commands.md").read_text(encoding="utf-8") == made, (
        "docs/commands.md is old; write it again: torch2ms table docs -o docs"
    )


def test_rules_page_is_up_to_date() -> None:
    made = rules_page(DOCS.parent / "tests" / "rewriting_cases")
    assert (DOCS / "rules.md").read_text(encoding="utf-8") == made, (
        "docs/rules.md is old; write it again: torch2ms table docs -o docs"
    )
    assert all(f"## `{rule.name}`" in made for rule in registry.ours().rules)


def test_commands_page_names_every_option() -> None:
    root = typer.main.get_command(cli.app)
    text = commands_page(root)
    options = [p for c in root.commands.values() for p in c.params if p.param_type_name == "option"]  # type: ignore[attr-defined]
    missing = [p.opts for p in options if p.name != "version" and f"{p.opts[-1]}" not in text]
    assert not missing
    assert "## `torch2ms table verify [NAMES" in text


def test_every_row_is_on_the_page(page: str) -> None:
    rows = load()
    ids = [unescape(one) for one in re.findall(r'<tr id="([^"]*)"', page)]
    assert sorted(ids) == sorted(rows.raw)
    assert len(ids) == len(set(ids))


def test_the_page_needs_no_network(page: str) -> None:
    assert "default-src 'none'" in page
    assert not re.findall(r'(?:src|href)="', page)
    assert len(page) < 3_000_000


def test_the_page_says_what_was_not_executed(page: str) -> None:
    row = page.partition('<tr id="torch.nn.Conv2d"')[2].partition("</tr>")[0]
    assert "mint, not executed here: <code>mindspore.mint.nn.Conv2d(" in row
    flagged = page.partition('<tr id="torch.fx.*"')[2].partition("</tr>")[0]
    assert 'data-kind="flagged" data-proof=""' in flagged


def test_the_command_writes_all(tmp_path: Path, run) -> None:
    done = run("table", "docs", "-o", tmp_path / "new" / "pages")
    assert done.code == 0
    written = sorted(path.name for path in (tmp_path / "new" / "pages").iterdir())
    assert written == ["commands.md", "rules.md", "table.html"]


def test_what_the_readme_shows_is_what_the_commands_say(run, monkeypatch) -> None:
    monkeypatch.chdir(DOCS.parent)
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    scan, explained = (part.partition("```")[0] for part in text.split("```text\n")[1:3])
    for block, said in (
        (scan, run("scan", "samples/trap/torch").out),
        (explained, run("explain", "amax").out),
    ):
        assert block.strip()
        missing = [line for line in block.splitlines() if line not in said.splitlines()]
        assert not missing


def test_the_row_of_contributing_is_as_it_was_added() -> None:
    text = (DOCS.parent / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
    added = [line[1:] for line in text.splitlines() if line[:1] == "+" and line[:2] != "++"]
    rows = load()
    row, case = rows.row("torch.is_same_size"), rows.case("torch.is_same_size")
    assert row is not None
    assert case is not None
    assert f'to = "{row.to}"' in added
    assert added.count('["torch.is_same_size"]') == 1
    assert all(f'"{call}"' in "\n".join(added) for call in case.calls)
