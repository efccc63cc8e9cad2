"""In: tests/metric_programs and short loops. Out: what Model.eval and a Metric make of them, run.

Model.eval must give what the loop gave; a loop that does more than sum up results stays one, and
the report says why.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from test_training_programs import difference, trained

from migrate.workspace import outputs
from migrate.workspace.project import Request, convert, convert_text

PROGRAMS = Path(__file__).parent / "metric_programs"
NAMES = sorted(path.stem for path in PROGRAMS.glob("*.py"))
LOOP = """import numpy as np
import torch
from torch import nn


def evaluate(model, data, device, classes):
    criterion = nn.CrossEntropyLoss()
    model.eval()
    total, correct, seen = 0.0, 0, 0
    with torch.no_grad():
        for x, y in data:
            x, y = x.to(device), y.to(device)
            out = model(x)
            loss = criterion(out, y)
            total += loss.item()
            correct += (out.argmax(1) == y).sum().item()
            seen += y.size(0)
    return total / seen, correct / seen


def run(model: nn.Module, data):
    return evaluate(model, data, torch.device("cpu"), 3)
"""
ROUND = "            seen += y.size(0)\n"
LAST = "    return total / seen, correct / seen\n"
STAYS = [
    (ROUND, ROUND + "            if seen > 99:\n                break\n", "it is left before"),
    (ROUND, ROUND + "            print(seen)\n", "every round prints or logs"),
    (ROUND, "            seen += y.size(0)\n            device.seen = seen\n", "it writes to dev"),
    (ROUND, ROUND + "            data.found.append(seen)\n", "data.found does not begin"),
    (ROUND, ROUND + "            total += np.random.rand()\n", "a round draws random numbers"),
    (ROUND, ROUND + "            total += model(x).sum().item()\n", "asks the network more than"),
    (ROUND, ROUND + "            text = f'{seen}'\n", "a round writes text"),
    (ROUND, ROUND + "            more = lambda: seen\n", "a round is more than sums"),
    (LAST, "    return total / seen, correct / seen, out\n", "out of the last round is read"),
    (LAST, "    return total / seen, correct / seen, y\n", "y of the last round is read"),
    (
        "for x, y in data:",
        "for x, y in tqdm(data):",
        "what the batches come from is not a variable",
    ),
    ("for x, y in data:", "for x, y, name in data:", ""),
    ("seen = 0.0, 0, 0", "seen = 0.0, classes, 0", "does not begin with a plain value"),
    (
        "            x, y = x.to(device), y.to(device)\n",
        "            x = x * 2\n",
        "is prepared in",
    ),
    (
        "total, correct, seen = 0.0, 0, 0",
        "total, correct, seen, k = 0.0, 0, 0, 1",
        "is bound toget",
    ),
    (
        "        for x, y in data:\n",
        "        for b in data:\n            x, y = b\n",
        "taken apart",
    ),
]


def notes(text: str) -> list[str]:
    made = convert_text(text, train_style="model")
    return [e.note for e in made.entries if "is not run by Model" in e.note]


def test_a_loop_becomes_a_metric() -> None:
    made = convert_text(LOOP, train_style="model")
    assert "class LossAndAccuracy(ms.train.Metric):" in made.text
    assert "        self.total, self.correct, self.seen = 0.0, 0, 0\n" in made.text
    assert "        return self.total / self.seen, self.correct / self.seen\n" in made.text
    assert "for x, y in data" not in made.text
    assert "eval_network=eval_net, metrics=" in made.text
    run = 'evaluation.eval(eval_data, dataset_sink_mode=False)["loss_and_accuracy"]'
    assert f"    return {run}\n" in made.text
    assert not notes(LOOP)


def test_cells_are_the_default() -> None:
    assert "Metric" not in convert_text(LOOP).text


def test_both_styles_account_for_the_same_references() -> None:
    def places(style: str) -> list[tuple[str, int, int]]:
        return [(e.name, e.line, e.column) for e in convert_text(LOOP, train_style=style).entries]

    assert places("model") == places("cells")


def test_only_output_and_label_are_taken_by_their_indexes() -> None:
    text = LOOP.replace("            total += loss.item()\n", "").replace("total, corr", "corr")
    text = text.replace("= 0.0, 0, 0", "= 0, 0").replace("return total / seen, ", "return ")
    text = text.replace("            loss = criterion(out, y)\n            ", "            ")
    assert "class EvalNet(nn.Cell):" in convert_text(text, train_style="model").text
    text = text.replace(
        "out = model(x)\n", "out = model(x)\n            loss = criterion(out, y)\n"
    )
    made = convert_text(text, train_style="model").text
    assert "        out, y = inputs\n" in made
    assert "eval_indexes=[0, 1, 2]" in made


@pytest.mark.parametrize(("before", "after", "reason"), STAYS)
def test_what_does_more_stays_a_loop(before: str, after: str, reason: str) -> None:
    assert before in LOOP
    text = LOOP.replace(before, after)
    if not reason:  # a third column that is only kept, and may be text
        text = text.replace(ROUND, f"{ROUND}            names.extend(name)\n")
        text = text.replace("0.0, 0, 0\n", "0.0, 0, 0\n    names = []\n").replace(LAST, f"{LAST}")
        text, reason = text.replace("correct / seen\n", "names\n"), "name may be no Tensor"
    made = convert_text(text, train_style="model")
    assert "Metric" not in made.text
    assert made.text == convert_text(text).text
    assert [n for n in notes(text) if reason in n], notes(text)


def test_a_network_that_may_train_is_not_evaluated() -> None:
    text = LOOP.replace("    model.eval()\n", "    model.eval()\n    model.drop.train()\n")
    assert "Metric" not in convert_text(text, train_style="model").text


def test_what_changes_between_evaluations_is_not_kept() -> None:
    body = LOOP[LOOP.index("    total, correct") : LOOP.index(LAST)].replace("\n    ", "\n        ")
    head = LOOP[: LOOP.index("    total, correct")]
    text = f"{head}    for data in classes:\n    {body}    print(total, correct / seen)\n".replace(
        "    print(total", "    print(total"
    )
    made = convert_text(text, train_style="model").text
    loop = made.index("for data in classes:")
    assert loop < made.index("eval_data = ") and loop < made.index("evaluation = ")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["pynative", "graph"])
def test_they_measure_alike(mode: str, tmp_path: Path) -> None:
    done = convert(Request(PROGRAMS, tmp_path / "out", jobs=1, train_style="model"))
    assert not done.record.ledger.flagged
    outputs.write(done.outputs, tmp_path / "out")
    for name in NAMES:
        text = (tmp_path / "out" / f"{name}.py").read_text(encoding="utf-8")
        assert "(ms.train.Metric):" in text and "evaluation.eval(" in text
    (tmp_path / "results").mkdir()
    trained(PROGRAMS, "torch", "", tmp_path / "results")
    trained(tmp_path / "out", "mindspore", mode, tmp_path / "results")
    found = {name: difference(tmp_path / "results", name) for name in NAMES}
    assert {n: d for n, d in found.items() if d > 1e-5} == {}
