"""In: verifications with curves, checkpoints, details. Out: what the page says of them, parsed."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_report import make_check, make_record, make_verification, read, trees

from migrate import report
from migrate.records.outcomes import Verdict
from migrate.records.result import Check, Curve, Guilty, Rung, Side, Spread, Verification
from migrate.report import ledger
from migrate.report.headline import cautions, headline
from migrate.report.heatmap import heat_map, histogram
from migrate.report.models import NONE, tensors

__all__ = ["trees"]

SIDE = Side(mean=0.5, std=2.0, least=-3.0, most=4.0)
SPREAD = Spread(bins=(3, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 1), torch=SIDE, mindspore=SIDE)
CURVE = Curve(torch=(2.0, 1.5, 1.0), mindspore=(2.0, 1.5, 1.25), reference=(2.0, 1.5, 1.0))


def rungs(**faults: str) -> tuple[Rung, ...]:
    worst = Verdict.DIVERGED if faults else Verdict.PASS
    return (
        Rung(name="loss", mode="pynative", verdict=Verdict.PASS, checks=1, curve=CURVE),
        Rung(name="checkpoint", mode="pynative", verdict=worst, checks=2, faults=faults),
    )


def make(*checks: Check, **changes: object) -> Verification:
    weights = {
        "weight_names": {"fc.weight": "fc.weight", "bn.steps": "", "bn.weight": "bn.gamma"},
        "weight_shapes": {"fc.weight": (2, 8), "bn.weight": (8,), "bn.steps": ()},
    }
    return make_verification(*(checks or (make_check(),)), **{**weights, **changes})


def test_losses_are_drawn_and_told(trees: tuple[Path, Path]) -> None:
    page = read(report.render(make_record(), make(rungs=rungs()), *trees))
    said = next(a["aria-label"] for tag, a in page.tags if tag == "svg" and a.get("role") == "img")
    assert said is not None
    assert "3 steps, pynative: torch from 2 to 1, MindSpore from 2 to 1.25" in said
    assert "largest gap 2.5e-01" in said
    lines = [a["points"] for tag, a in page.tags if tag == "polyline"]
    assert len(lines) == 2
    ends = [[float(p.partition(",")[2]) for p in (line or "").split()] for line in lines]
    assert ends[0][:2] == ends[1][:2] and ends[0][2] > ends[1][2], "the higher loss is drawn higher"
    assert page.table("Step")[3] == ["3", "1", "1.25", "2.5e-01"]


def test_without_training_nothing_is_drawn(trees: tuple[Path, Path]) -> None:
    page = read(report.render(make_record(), make(), *trees))
    assert not [tag for tag, _ in page.tags if tag == "polyline"]


def test_the_checkpoint_table_says_what_came_back(trees: tuple[Path, Path]) -> None:
    verification = make(rungs=rungs(**{"bn.weight": "3 of 8 numbers come back otherwise"}))
    page = read(report.render(make_record(), verification, *trees))
    rows = {row[0]: row[1:] for row in page.tables_with("Round trip")[1:]}
    assert next(iter(rows)) == "bn.weight", "what is wrong comes first"
    assert rows["bn.weight"] == ["bn.gamma", "8", "DIVERGED 3 of 8 numbers come back otherwise"]
    assert rows["fc.weight"] == ["fc.weight", "2 × 8", "PASS"]
    assert rows["bn.steps"] == ["", "scalar", NONE]
    assert "Checkpoint: 1 of 2 tensors come back bit by bit, 1 without a partner" in page.text


@pytest.mark.parametrize("verdict", [None, Verdict.NOT_RUN, Verdict.BLOCKED])
def test_no_tensor_passes_a_round_trip_that_was_not_made(verdict: Verdict | None) -> None:
    last = Rung(name="checkpoint", mode="pynative", verdict=verdict or Verdict.PASS, detail="why")
    model = make(rungs=(last,) if verdict else ()).models[0]
    found = tensors(model)
    assert not found.fine and {row.verdict for row in found.rows} == {None}
    assert found.note == ("why" if verdict else "the round trip was not made")


def test_a_cell_opens_its_numbers_and_sources(trees: tuple[Path, Path]) -> None:
    check = make_check(torch_line=11, mindspore_line=11, spread=SPREAD, detail="a reason")
    page = read(report.render(make_record(), make(check), *trees))
    button = next(a for tag, a in page.tags if tag == "button" and "aria-controls" in a)
    below = next(a for tag, a in page.tags if a.get("id") == button["aria-controls"])
    assert below["class"] == "more fine" and "hidden" in below
    assert button["aria-expanded"] == "false"
    row = page.table("Comparison")[1]
    assert row[0] == "forward eval, pynative" and row[1:3] == ["PASS", "4"]
    assert row[3:8] == ["1.0e-08", "2.0e-08", "1.0e-08", "1.0e-06", ""]
    assert "half below 1e-8, all 1 or more" in row[8]
    assert row[9].count("0.5 ± 2 [-3, 4]") == 2
    assert "self.fc = nn.Linear(8, 2)" in page.text and "self.fc = nn.Dense(8, 2)" in page.text
    assert "a reason" in page.text


def test_a_resnet_50_in_every_rung_and_mode_is_shown_whole_below_two_megabytes(
    trees: tuple[Path, Path],
) -> None:
    source, output = trees
    long = "".join(f"self.layer{i} = nn.Conv2d({i}, 3, 3, padding=1)  # {i}\n" for i in range(4000))
    (source / "pkg" / "net.py").write_text(long, encoding="utf-8")
    (output / "pkg" / "net.py").write_text(long.replace("=1)", "=2)"), encoding="utf-8")
    checks = [
        make_check(torch_path=f"layer{i}.conv", order=i, rung=f"rung {n}", mode=mode, spread=SPREAD)
        for i in range(153) for n in range(5) for mode in ("pynative", "graph")
    ]  # fmt: skip
    names = {f"layer{i}.conv.weight": f"layer{i}.conv.weight" for i in range(320)}
    html = report.render(make_record(), make(*checks, weight_names=names), source, output)
    assert len(html.encode()) < 2_000_000
    assert html.count('<tr class="more') == 153
    assert "fine Cells left out" not in read(html).text


def test_every_cell_that_is_not_fine_opens_even_where_there_is_little_room(
    trees: tuple[Path, Path],
) -> None:
    checks = [make_check(torch_path=f"layer{i}.conv", order=i) for i in range(1700)]
    bad = make_check(torch_path="layer7.bad", order=7, verdict=Verdict.DIVERGED, local=1.0)
    page = read(report.render(make_record(), make(*checks, bad), *trees))
    opened = [a for tag, a in page.tags if tag == "tr" and (a.get("class") or "")[:4] == "more"]
    assert len(opened) == 1


def test_histogram_shows_the_rarest_bin_and_none_of_nothing() -> None:
    found = histogram(SPREAD.model_copy(update={"bins": (0,) * 11 + (1,)}))
    assert found is not None and found.said == "half 1 or more, all 1 or more"
    rare = histogram(SPREAD.model_copy(update={"bins": (10**6, 1, *(0,) * 10)}))
    assert rare is not None and "v-1h" in rare.path
    assert histogram(SPREAD.model_copy(update={"bins": (0,) * 12})) is None


def test_the_forward_run_gives_the_order_of_the_map() -> None:
    checks = (
        make_check(torch_path="", rung="loss", order=0),
        make_check(torch_path="conv", order=3),
        make_check(torch_path="fc", order=4),
        make_check(torch_path="", order=5),
    )
    found = [row.label for row in heat_map(make(*checks).models[0]).rows]
    assert found == ["conv", "fc", "(whole model)"]


def test_the_cumulative_error_is_measured_by_its_own_limit() -> None:
    found = heat_map(make(make_check(cumulative=1e-3, cumulative_limit=1e-2)).models[0])
    square = found.rows[0].squares[0]
    assert square is not None and square.cumulative.text == ".10"
    old = heat_map(make(make_check(cumulative=1e-3)).models[0]).rows[0].squares[0]
    assert old is not None and old.cumulative.level > 5


def test_the_first_guilty_call_and_its_program_are_named(trees: tuple[Path, Path]) -> None:
    guilty = Guilty(
        rung="forward eval", mode="pynative", torch="fc (Linear)", mindspore="fc (Dense)",
        torch_call="net.py:14: x.var(1)", mindspore_call="net.py:14: x.var(1)",
        reproduction="torch2ms_reproductions/net_fc.py",
    )  # fmt: skip
    text = read(report.render(make_record(), make(guilty=guilty), *trees)).text
    assert "First call in it that differs: net.py:14: x.var(1)" in text
    assert "python torch2ms_reproductions/net_fc.py" in text
    alone = guilty.model_copy(update={"torch_call": "", "reproduction": ""})
    text = read(report.render(make_record(), make(guilty=alone), *trees)).text
    assert "First call" not in text and "without torch" not in text


def test_an_interrupted_run_is_never_verified(trees: tuple[Path, Path]) -> None:
    record = make_record(files=make_record().files[:1])
    whole = make(make_check(torch_class="Net"), make_check(torch_class="Unused"))
    partial = whole.model_copy(update={"partial": True})
    found = headline(record, partial, ledger.coverage(record, partial))
    assert (found.tone, "interrupted" in found.text) == ("warn", True)
    assert "Partial. Verification was interrupted" in read(
        report.render(record, partial, *trees)
    ).text  # fmt: skip
    assert "Partial." not in read(report.render(record, whole, *trees)).text


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"torch": "2.13.0+cpu", "device": "CPU"}, []),
        ({"torch": "2.9.1"}, ["torch 2.9.1 (the table's evidence: 2.13.0)"]),
        ({"torch": "2.13.0", "device": "Ascend"}, ["ran on Ascend"]),
        ({}, []),
    ],
)
def test_versions_and_devices_without_evidence_are_named(
    trees: tuple[Path, Path], environment: dict[str, str], said: list[str]
) -> None:
    verification = make().model_copy(update={"environment": environment})
    found = cautions(make_record(), verification)
    assert len(found) == len(said)
    for one, part in zip(found, said, strict=True):
        assert part in one
        assert part in read(report.render(make_record(), verification, *trees)).text
        plain = report.render(make_record(), verification, *trees, "md").replace("\\", "")
        assert part in plain


def test_the_commands_repeat_the_options(trees: tuple[Path, Path]) -> None:
    options = ("--steps", "3", "--loss", "nn.CrossEntropyLoss()")
    text = read(report.render(make_record(), make(options=options), *trees)).text
    assert "--input 2x3x8x8 --steps 3 --loss 'nn.CrossEntropyLoss()'" in text
