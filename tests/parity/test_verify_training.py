"""In: hand-written pairs that are trained for a few steps. Out: what is wrong shows on its rung."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from parity_pairs import LENET, LENET_MS, write_pair

from migrate.parity.hand.port import Pair, verify_pair
from migrate.parity.ladder import verify_with
from migrate.parity.request import VerifyRequest, parse_address
from migrate.parity.session import open_sides
from migrate.records.outcomes import Verdict

pytestmark = [
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("torch", "mindspore")),
        reason="needs torch and MindSpore",
    ),
    pytest.mark.timeout(600),
]
TORCH = "torch.optim.SGD(params, lr=0.015625, momentum=0.9)"
RUNGS = ("loss", "optimizer step", "steps")


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workers")
    pair = open_sides(VerifyRequest(folder, folder), folder, 0)
    yield pair
    pair.stop()


@pytest.fixture
def trained(sides, tmp_path):
    """Train LeNet on both sides; answers the model's result."""

    def run(mindspore=LENET_MS, **more):
        record = write_pair(tmp_path, LENET, mindspore)
        asked = {"timeout": 300.0, "modes": ("pynative",), "gradients": False, "steps": 3, **more}
        request = VerifyRequest(record, record.parent, **asked)
        (model,) = verify_with((sides,), request, lambda line: None).models
        return model

    return run


def verdicts(model, mode="pynative"):
    found = {rung.name: rung.verdict.value for rung in model.rungs if rung.mode == mode}
    return [found.get(name) for name in RUNGS]


def test_a_right_model_trains_alike_in_both_modes(trained):
    model = trained(modes=("pynative", "graph"))
    assert model.verdict is Verdict.PASS
    for mode in ("pynative", "graph"):
        assert verdicts(model, mode) == ["PASS"] * 3
        moved = [c for c in model.checks if (c.rung, c.mode) == ("optimizer step", mode)]
        every = next(rung for rung in model.rungs if rung.name == "parameters").elements
        assert sum(check.elements for check in moved) == every
        assert all(check.cumulative <= check.limit < 1e-2 for check in moved)


def test_without_steps_nothing_is_trained(trained):
    assert verdicts(trained(steps=0)) == [None] * 3


def test_one_step_has_no_curve(trained):
    assert verdicts(trained(steps=1)) == ["PASS", "PASS", None]


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [
        ("mindspore.nn.SGD(params, 0.015625, momentum=0.9)", ["PASS", "PASS", "PASS"]),
        ("mindspore.nn.SGD(params, 0.015625, momentum=0.5)", ["PASS", "PASS", "DIVERGED"]),
        ("mindspore.nn.SGD(params, 0.015625, 0.9, weight_decay=0.1)",
         ["PASS", "DIVERGED", "PROPAGATED"]),
        ("mindspore.nn.SGD(params, 0.0, 0.9)", ["PASS", "DIVERGED", "PROPAGATED"]),
        ("mindspore.nn.NoSuch(params)", ["BLOCKED", "BLOCKED", "BLOCKED"]),
    ],
)  # fmt: skip
def test_a_wrong_optimizer_shows(trained, optimizer, expected):
    model = trained(optimizer=(TORCH, optimizer))
    assert verdicts(model) == expected
    assert (model.guilty is None) == (expected[2] == "PASS")
    if "0.0, 0.9" in optimizer:
        assert "it does not move" in model.guilty.cause


LOSSES = {
    "same": ("nn.CrossEntropyLoss()", ["PASS", "PASS", "PASS"]),
    "smoothed": ("nn.CrossEntropyLoss(label_smoothing=0.1)", ["DIVERGED", "PROPAGATED",
                                                              "PROPAGATED"]),
}  # fmt: skip


@pytest.mark.parametrize("which", LOSSES)
def test_a_loss_of_the_user(trained, which):
    loss, expected = LOSSES[which]
    model = trained(loss=("nn.CrossEntropyLoss()", loss), targets=("4:int64<10",))
    assert verdicts(model) == expected


def test_a_loss_that_torch_refuses_is_not_run(trained):
    model = trained(loss=("nn.CrossEntropyLoss()",), targets=("3:int64<10",))
    assert verdicts(model) == ["NOT_RUN"] * 3
    assert "torch cannot train this" in model.detail


PORTS = Path(__file__).parents[1] / "hand_ports"


@pytest.fixture
def port(sides):
    """Train a port written by hand; answers its result."""

    def run(torch, mindspore, text, **more):
        pair = Pair(parse_address(torch), parse_address(mindspore), (str(PORTS),))
        asked = {"timeout": 300.0, "modes": ("pynative",), "steps": 3, "inputs": (text,), **more}
        return verify_pair(sides, pair, VerifyRequest(Path(), Path(), **asked), lambda _: None)[0]

    return run


@pytest.mark.parametrize("given", [False, True])
def test_a_port_climbs_the_same_rungs(port, given):
    sgd = "torch.optim.SGD(params, 0.0625, 0.9)"
    more = {"optimizer": (sgd, sgd.replace("torch.optim", "nn"))} if given else {}
    model = port("branches_torch:Twin", "branches_ms:TwinPort", "4x8", **more)
    assert verdicts(model) == ["PASS"] * 3
    assert model.verdict in (Verdict.PASS, Verdict.KERNEL)
    assert next(rung for rung in model.rungs if rung.name == "loss").curve is not None


def test_the_pieces_of_a_port_are_trained_as_one_tensor(port):
    model = port("divided_torch:Experts", "divided_ms:Stacked", "4x6")
    assert verdicts(model) == ["PASS"] * 3
    moved = {c.torch_path for c in model.checks if c.rung == "optimizer step" and c.elements}
    assert len(moved) > 2


def test_a_port_that_is_trained_otherwise_is_wrong(port):
    torch, slow = "torch.optim.SGD(params, lr=0.0625)", "nn.SGD(params, 0.03125)"
    model = port("branches_torch:Twin", "branches_ms:TwinPort", "4x8", optimizer=(torch, slow))
    assert verdicts(model) == ["PASS", "DIVERGED", "PROPAGATED"]
    assert model.guilty.rung == "optimizer step"
    loss = ("nn.MSELoss()", "nn.MSELoss(reduction='sum')")
    model = port("branches_torch:Twin", "branches_ms:TwinPort", "4x8", loss=loss, targets=("4x3",))
    assert verdicts(model)[0] == "DIVERGED"
