"""In: a report page in headless Chromium. Out: whether it works light and dark, wide and narrow."""

from __future__ import annotations

import html
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_report import make_check, make_record, trees
from test_report_models import SPREAD, make, rungs

from migrate import report
from migrate.records.outcomes import Verdict
from migrate.records.result import Guilty, Ledger

__all__ = ["trees"]

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not BROWSER, reason="needs Chromium: apt-get install chromium"),
]

# Asks the page itself, after it has run; the answer comes back in its title.
PROBE = """
<script>
const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
const luminance = (c) => [0, 1, 2].map((i) => c[i] / 255)
  .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const ground = (el) => {
  for (; el; el = el.parentElement) {
    const c = rgb(getComputedStyle(el).backgroundColor);
    if (c.length === 3 || c[3] === 1) return c;
  }
  return rgb(getComputedStyle(document.body).backgroundColor);
};
const contrast = (el) => {
  const [a, b] = [rgb(getComputedStyle(el).color), ground(el)].map(luminance);
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
};
const written = [...document.querySelectorAll("body *")].filter((el) =>
  !["SCRIPT", "STYLE", "NOSCRIPT"].includes(el.tagName) && el.offsetParent !== null
  && !el.closest(".sr,.skip") && [...el.childNodes].some((n) => n.nodeType === 3 && n.data.trim()));
const folds = document.querySelectorAll("tbody[hidden]").length;
location.hash = "#f1L60";
window.addEventListener("hashchange", () => {
  document.querySelector(".only").click();
  document.querySelector(".only").click();
  const press = (key) => document.activeElement.dispatchEvent(
    new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const squares = [...document.querySelectorAll("td.sq")];
  const place = () => squares.indexOf(document.activeElement);
  squares[0].focus();
  const keys = ["ArrowDown", "ArrowRight", "ArrowUp", "ArrowUp"];
  const walked = keys.map((key) => { press(key); return place(); });
  const stops = squares.filter((el) => el.tabIndex === 0).length;
  const more = () => [...document.querySelectorAll("tr.more")].filter((el) => !el.hidden).length;
  const opened = [more(), (press("Enter"), more()), (press("Enter"), more()),
    (document.querySelector("th button").click(), more())];
  document.querySelector(".only").click();
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "n", bubbles: true }));
  document.title = JSON.stringify({
    background: rgb(getComputedStyle(document.body).backgroundColor),
    texts: written.length,
    faint: written.filter((el) => el.isConnected && contrast(el) < 4.5)
      .map((el) => [contrast(el), el.className, el.textContent.slice(0, 30)]),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    folds: [folds, document.querySelectorAll("tbody[hidden]").length],
    fine: [...document.querySelectorAll("tr.fine")].filter((el) => el.offsetParent).length,
    reasons: document.querySelectorAll("details.why[open]").length,
    focus: document.activeElement.tagName,
    walked, stops, opened,
  });
});
</script></body>
"""


@pytest.fixture
def page(trees: tuple[Path, Path], tmp_path: Path) -> Path:
    for root, word in zip(trees, ("torch", "mindspore"), strict=True):
        path = root / "pkg" / "net.py"
        body = "".join(f"value{i} = {i}\n" for i in range(80))
        path.write_text(
            path.read_text(encoding="utf-8") + body + f"import {word}\n", encoding="utf-8"
        )
    checks = [
        make_check(
            torch_path=f"layer{i}.conv", order=i, local=10.0 ** (i - 9), verdict=verdict,
            mode=mode, spread=SPREAD,
        )
        for i, verdict in enumerate(Verdict) for mode in ("pynative", "graph")
    ]  # fmt: skip
    guilty = Guilty(rung="loss", mode="graph", torch="a", mindspore="b", torch_call="net.py:1: f()",
                    reproduction="torch2ms_reproductions/a.py")  # fmt: skip
    text = report.render(make_record(), make(*checks, rungs=rungs(), guilty=guilty), *trees)
    file = tmp_path / "report.html"
    file.write_text(text, encoding="utf-8")
    return file


def chromium(*arguments: str, page: Path, tmp_path: Path) -> str:
    done = subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path / 'profile'}",
            *arguments,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout


def ask(page: Path, tmp_path: Path, *arguments: str) -> dict[str, Any]:
    probed = tmp_path / "probed.html"
    text = page.read_text(encoding="utf-8").replace("</body>", PROBE)
    probed.write_text(text, encoding="utf-8")
    dom = chromium(
        "--virtual-time-budget=4000", "--dump-dom", *arguments, page=probed, tmp_path=tmp_path
    )
    title = dom.partition("<title>")[2].partition("</title>")[0]
    answer: dict[str, Any] = json.loads(html.unescape(title))
    return answer


@pytest.mark.parametrize("arguments", [(), ("--force-dark-mode",)], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1400, 600])
def test_page_in_a_browser(
    page: Path, tmp_path: Path, arguments: tuple[str, ...], width: int
) -> None:
    answer = ask(page, tmp_path, f"--window-size={width},900", *arguments)
    assert (sum(answer["background"][:3]) < 384) == bool(arguments)
    assert answer["texts"] > 100
    assert answer["faint"] == [], "text must have a contrast of 4.5 to 1 with its background"
    assert answer["overflow"] <= 0, "only tables may scroll sideways"
    assert answer["folds"] == [1, 0], "a link into folded lines opens them"
    assert answer["walked"] == [2, 3, 1, 1], "arrows walk through the map and stop at its edge"
    assert answer["stops"] == 1, "Tab enters the map once"
    assert answer["opened"] == [0, 1, 0, 1], "Enter and the name open and close a Cell"
    assert answer["fine"] == 0, "the box hides the Cells that are fine"
    assert (answer["reasons"], answer["focus"]) == (1, "SUMMARY"), "n opens the next reason"


def test_screenshot_is_taken(page: Path, tmp_path: Path) -> None:
    picture = tmp_path / "page.png"
    chromium(f"--screenshot={picture}", "--window-size=1400,1200", page=page, tmp_path=tmp_path)
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) > 40_000, "a blank page compresses to less"


# Follows a link into a diff that is packed, then searches the flags.
PACKED = """
<script>
const before = document.querySelectorAll("script.packed").length;
location.hash = "#f2L150";
window.addEventListener("hashchange", () => setTimeout(() => {
  const row = document.getElementById("f2L150");
  const type = (id, value) => {
    const field = document.getElementById(id);
    field.value = value;
    field.dispatchEvent(new Event("input"));
    return [...document.querySelectorAll(".flags li")].filter((li) => li.offsetParent).length;
  };
  document.title = JSON.stringify({
    packed: [before, document.querySelectorAll("script.packed").length],
    row: row ? row.textContent : "",
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    found: [type("find", ""), type("find", "NET.py  api104"), type("find", "nothing like it"),
      type("find", ""), type("work", "design"), type("work", "rewrite"), type("work", "")],
    said: document.getElementById("found").textContent,
  });
}, 1500));
</script></body>
"""


@pytest.mark.parametrize("width", [1400, 500])
def test_packed_diffs_open_and_flags_are_found(
    trees: tuple[Path, Path], tmp_path: Path, width: int
) -> None:
    record = make_record()
    (file, *rest) = record.files
    for root in trees:
        for name in ("big0.py", "big1.py"):
            text = "".join(f"self.layer{i} = nn.Conv2d({i}, 3, 3)\n" for i in range(4000))
            text = text if root == trees[0] else text.replace(", 3)", ", 4)")
            (root / "pkg" / name).write_text(text, encoding="utf-8")
    big = [
        file.model_copy(update={"source": f"pkg/{name}", "output": f"pkg/{name}", "entries": (),
                                "ledger": Ledger(), "cells": (), "source_sha256": "",
                                "output_sha256": ""})
        for name in ("big0.py", "big1.py")
    ]  # fmt: skip
    whole = record.model_copy(update={"files": (file, *big, *rest)})
    page = tmp_path / "packed.html"
    page.write_text(report.render(whole, None, *trees).replace("</body>", PACKED), encoding="utf-8")
    dom = chromium(
        "--virtual-time-budget=20000", "--dump-dom", f"--window-size={width},900", page=page,
        tmp_path=tmp_path,
    )  # fmt: skip
    title = dom.partition("<title>")[2].partition("</title>")[0]
    answer = json.loads(html.unescape(title))
    before, after = answer["packed"]
    assert (before, after) == (2, 1)
    assert "self.layer149 = nn.Conv2d(149, 3, 4)" in answer["row"]
    assert answer["overflow"] <= 0, "only tables may scroll sideways"
    assert answer["found"] == [1, 1, 0, 1, 0, 1, 1]
    assert answer["said"] == "1 shown"
