"""In: hand-written pairs. Out: that right ones pass and wrong ones are blamed on the right Cell.

One pair of workers serves the whole file: importing the frameworks costs more than the tests.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from parity_pairs import BLOCK, BLOCK_MS, LENET, LENET_MS, TAGGER, TAGGER_MS, write_pair

from migrate.parity.ladder import verify_with
from migrate.parity.request import VerifyRequest
from migrate.parity.session import open_sides
from migrate.records.outcomes import Problem, Verdict

pytestmark = [
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("torch", "mindspore")),
        reason="needs torch and MindSpore",
    ),
    pytest.mark.timeout(600),
]
PYNATIVE = ("pynative",)
SLOW = pytest.mark.slow


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workers")
    pair = open_sides(VerifyRequest(folder, folder), folder, 0)
    yield pair
    pair.stop()


@pytest.fixture
def verified(sides, tmp_path):
    """Verify a pair of sources; answers the Verification."""

    def run(torch, mindspore, name="net.py", **more):
        record = write_pair(tmp_path, torch, mindspore, name)
        request = VerifyRequest(record, record.parent, **{"timeout": 300.0, **more})
        return verify_with((sides,), request, lambda line: None)

    return run


def model_of(verification, name="Net()"):
    return next(m for m in verification.models if name in (m.name, m.build))


def check_of(model, path, rung="forward eval", mode="pynative"):
    return next(c for c in model.checks if (c.torch_path, c.rung, c.mode) == (path, rung, mode))


def test_a_right_model_passes_every_rung_in_both_modes(verified):
    result = verified(LENET, LENET_MS)
    model = model_of(result, "LeNet")
    assert result.verdict is Verdict.PASS
    assert model.guilty is None
    assert (model.weights_total, model.weights_matched) == (8, 8)
    assert {(r.name, r.mode) for r in model.rungs} >= {
        (name, mode)
        for name in ("forward eval", "forward train", "gradients")
        for mode in ("pynative", "graph")
    }
    assert all(rung.elements for rung in model.rungs if rung.name != "import")
    assert all(check.elements for check in model.checks)
    conv = check_of(model, "conv1")
    assert (conv.torch_line, conv.mindspore_line) == (10, 8)
    assert 0 < conv.local < conv.limit < 1e-5
    assert conv.elements == 4 * 6 * 28 * 28


@SLOW
def test_dropout_is_compared_number_by_number_in_train_mode(verified):
    wrong = LENET_MS.replace("nn.Dropout(p=0.25)", "nn.Dropout(0.25)")
    model = model_of(verified(LENET, wrong, modes=PYNATIVE, gradients=False), "LeNet")
    assert check_of(model, "drop").verdict is Verdict.PASS
    assert check_of(model, "drop", "forward train").verdict is Verdict.DIVERGED
    assert (model.guilty.rung, model.guilty.torch) == ("forward train", "drop (Dropout)")


BN1 = "self.bn1 = nn.BatchNorm2d(outside)"
BN2 = "self.bn2 = nn.BatchNorm2d(outside)"
WRONG = {
    "eps": (BN1, BN1[:-1] + ", eps=1e-4)", "forward eval", "layers.0.bn1", "eps is 0.0001"),
    "momentum": (BN2, BN2[:-1] + ", momentum=0.1)", "forward train", "layers.0.bn2", "running_"),
    "stride": ("3, stride, pad_mode", "3, 2, pad_mode", "forward eval", "layers.0.conv1", "stride"),
    "padding": ("3, 1, pad_mode='pad', padding=1", "3, 1, pad_mode='valid'", "forward eval",
                "layers.0.conv2", "shape"),
    "bias": ("nn.Dense(16, 5)", "nn.Dense(16, 5, has_bias=False)", "parameters", "head",
             "head.bias"),
    "order": ("ops.relu(out + self.shortcut(x))", "ops.relu(out) + self.shortcut(x)",
              "forward eval", "layers.0", "relative error"),
    "swapped": ("self.bn1(self.conv1(x))", "self.conv1(x)", "forward eval", "layers.0", ""),
    "gradient": ("out = self.bn2(self.conv2(out))",
                 "out = self.bn2(ops.stop_gradient(self.conv2(out)))", "gradients", "layers.0",
                 "relative error"),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", ["eps", "momentum", *(pytest.param(n, marks=SLOW) for n in list(WRONG)[2:])]
)
def test_a_wrong_model_is_blamed_on_the_first_wrong_cell(verified, name):
    right, wrong, rung, path, cause = WRONG[name]
    assert right in BLOCK_MS
    source = BLOCK_MS.replace(right, wrong)
    gradients = rung == "gradients"
    result = verified(BLOCK, source, builds=("Net()",), modes=PYNATIVE, gradients=gradients)
    guilty = model_of(result).guilty
    assert result.verdict in (Verdict.DIVERGED, Verdict.SHAPE, Verdict.BLOCKED)
    assert (guilty.rung, guilty.torch.split(" ")[0]) == (rung, path)
    assert cause in guilty.cause
    assert guilty.mindspore_place.startswith("net.py:")


@SLOW
def test_cells_after_the_guilty_one_inherit_and_are_not_blamed(verified):
    wrong = BLOCK_MS.replace("nn.Conv2d(inside, outside, 1, stride, pad_mode='pad')",
                             "nn.Conv2d(inside, outside, 1, stride, pad_mode='pad').to_float("
                             "ms.float16)").replace("from mindspore import nn",
                                                    "import mindspore as ms\nfrom mindspore "
                                                    "import nn")  # fmt: skip
    result = verified(BLOCK, wrong, builds=("Net()",), modes=PYNATIVE, gradients=False)
    model = model_of(result)
    assert check_of(model, "layers.0.conv1").verdict is Verdict.PASS
    assert check_of(model, "layers.1.conv1").verdict is Verdict.PROPAGATED
    assert check_of(model, "layers.1.conv1").local < 1e-5
    assert model.guilty.torch.startswith("layers.0.shortcut.0")


@SLOW
def test_a_tensor_without_a_partner_is_unmatched(verified):
    wrong = BLOCK_MS.replace("nn.Dense(16, 5)", "nn.Dense(16, 5, has_bias=False)")
    result = verified(BLOCK, wrong, builds=("Net()",), modes=PYNATIVE, gradients=False)
    model = model_of(result)
    rung = next(rung for rung in model.rungs if rung.name == "parameters")
    assert rung.verdict is Verdict.UNMATCHED
    assert (model.weights_total, model.weights_matched) == (50, 49)
    assert any("head.bias" in line for line in model.unmatched)


@SLOW
def test_recurrent_models_and_tokens_pass(verified):
    result = verified(TAGGER, TAGGER_MS, modes=PYNATIVE)
    model = model_of(result, "Tagger")
    assert result.verdict in (Verdict.PASS, Verdict.KERNEL)
    assert model.inputs == ("2x16:int64<50",)
    assert check_of(model, "lstm").elements == 2 * 16 * 20 + 2 * (4 * 2 * 10)


@SLOW
def test_values_at_the_start_are_compared_before_torchs_are_copied(verified):
    mindspore = TAGGER_MS.replace("Normal(1.0)", "Normal(0.01)").replace(
        "self.norm = nn.LayerNorm((20,), epsilon=1e-5)",
        "self.norm = nn.LayerNorm((20,), gamma_init='zeros', epsilon=1e-5)",
    )
    model = model_of(verified(TAGGER, mindspore, modes=PYNATIVE, gradients=False), "Tagger")
    assert check_of(model, "embed", "initial values").verdict is Verdict.DIVERGED
    assert check_of(model, "norm", "initial values").verdict is Verdict.DIVERGED
    assert check_of(model, "lstm", "initial values").verdict is Verdict.PASS
    assert check_of(model, "norm").verdict is Verdict.PASS
    assert (model.guilty.rung, model.guilty.torch) == ("initial values", "embed (Embedding)")


MISSING = """
import os
import time
from mindspore import nn, ops


class Ends(nn.Cell):
    def construct(self, x):
        os._exit(9)


class Hangs(nn.Cell):
    def construct(self, x):
        time.sleep(1000)


class Raises(nn.Cell):
    def construct(self, x):
        raise NotImplementedError("torch2ms API104: no target")


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = nn.Dense(6, 6)
        self.act = CLASS()
        self.last = nn.Dense(6, 3)

    def construct(self, x):
        return self.last(self.act(self.first(x)))
"""
PLAIN = """
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.act = nn.ReLU()
        self.last = nn.Linear(6, 3)

    def forward(self, x):
        return self.last(self.act(self.first(x)))
"""


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("Raises", "API104"),
        pytest.param("Ends", "status 9", marks=SLOW),
        pytest.param("Hangs", "within 15 s", marks=SLOW),
    ],
)
def test_a_cell_that_raises_ends_or_hangs_costs_itself(verified, kind, said):
    source = MISSING.replace("CLASS", kind)
    result = verified(PLAIN, source, modes=PYNATIVE, gradients=False, timeout=15.0)
    model = model_of(result)
    assert check_of(model, "act").verdict is Verdict.BLOCKED
    assert said in check_of(model, "act").detail
    assert check_of(model, "first").verdict is Verdict.PASS
    assert check_of(model, "last").verdict is Verdict.PASS
    assert model.guilty.torch == "act (ReLU)"
    assert model.verdict is Verdict.BLOCKED


def test_a_random_module_is_nondeterministic_and_not_wrong(verified):
    torch = PLAIN.replace("self.act(self.first(x))", "self.act(x + torch.randn_like(x))")
    mindspore = MISSING.replace("CLASS", "nn.ReLU").replace(
        "self.act(self.first(x))", "self.act(x + ops.randn_like(x))"
    )
    model = model_of(verified(torch, mindspore, modes=PYNATIVE))
    assert check_of(model, "").verdict is Verdict.NONDET
    assert check_of(model, "act").verdict is Verdict.PASS  # on torch's input
    assert check_of(model, "act").cumulative is None
    assert check_of(model, "first").verdict is Verdict.NOT_RUN
    assert "never ran" in check_of(model, "first").detail
    assert model.verdict is Verdict.NONDET


def test_a_coarse_kernel_is_named_so(verified):
    torch = PLAIN.replace("nn.ReLU()", "nn.Tanh()").replace("Linear(6, 6)", "Linear(6, 4000)")
    torch = torch.replace("Linear(6, 3)", "Linear(4000, 3)")
    mindspore = MISSING.replace("CLASS", "nn.Tanh").replace("Dense(6, 6)", "Dense(6, 4000)")
    mindspore = mindspore.replace("Dense(6, 3)", "Dense(4000, 3)")
    torch = torch.replace("self.act(", "self.act(6 * ")
    mindspore = mindspore.replace("self.act(", "self.act(6 * ")
    result = verified(torch, mindspore, modes=PYNATIVE, inputs=("64x6",))
    check = check_of(model_of(result), "act")
    assert check.verdict is Verdict.KERNEL
    assert 1e-6 < check.local < 3e-4
    assert model_of(result).verdict is Verdict.KERNEL


def test_what_cannot_be_built_says_where_what_why_next(verified):
    broken = PLAIN.replace("super().__init__()", "super().__init__(); raise ValueError('no disk')")
    result = verified(broken, MISSING.replace("CLASS", "nn.ReLU"))
    model = model_of(result)
    assert model.verdict is Verdict.NOT_RUN
    assert "net.py" in model.detail and "no disk" in model.detail and "Next:" in model.detail
    shaped = verified(PLAIN, MISSING.replace("CLASS", "nn.ReLU"), inputs=("2x7",))
    assert "mat1" in model_of(shaped).detail
    other = verified(PLAIN, "import torch\n" + MISSING.replace("CLASS", "nn.ReLU"))
    assert model_of(other).verdict is Verdict.BLOCKED
    assert "not available to converted code" in model_of(other).detail


def test_a_file_in_a_package_is_imported_through_it(verified, tmp_path):
    for root in ("torch_code", "ms_code"):
        (tmp_path / root / "nets").mkdir(parents=True)
        (tmp_path / root / "nets" / "__init__.py").write_text("")
        (tmp_path / root / "nets" / "width.py").write_text("WIDTH = 6\n")
    torch = PLAIN.replace("import torch\n", "from .width import WIDTH\nimport torch\n")
    mindspore = "from nets.width import WIDTH\n" + MISSING.replace("CLASS", "nn.ReLU")
    result = verified(
        torch.replace("Linear(6, 6)", "Linear(WIDTH, 6)"), mindspore, "nets/net.py",
        modes=PYNATIVE, gradients=False,
    )  # fmt: skip
    assert result.verdict is Verdict.PASS


def test_a_project_that_is_itself_called_torchvision_is_found_by_its_own_name(verified, tmp_path):
    for root in ("torch_code", "ms_code"):
        (tmp_path / root / "torchvision").mkdir(parents=True)
        (tmp_path / root / "torchvision" / "__init__.py").write_text("")
        (tmp_path / root / "torchvision" / "width.py").write_text("WIDTH = 6\n")
    own = "from torchvision.width import WIDTH\n"
    torch = own + PLAIN.replace("Linear(6, 6)", "Linear(WIDTH, 6)")
    mindspore = own + MISSING.replace("CLASS", "nn.ReLU")
    result = verified(torch, mindspore, "torchvision/net.py", modes=PYNATIVE, gradients=False)
    assert result.verdict is Verdict.PASS, [m.detail for m in result.models]


def test_source_and_output_are_not_written_to(verified, tmp_path):
    verified(PLAIN, MISSING.replace("CLASS", "nn.ReLU"), gradients=False)
    files = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    assert files == {"torch_code/net.py", "ms_code/net.py", "ms_code/torch2ms.json"}


def test_no_record_no_model_and_a_bad_input_are_errors(verified, tmp_path):
    with pytest.raises(Problem, match="; run torch2ms convert first"):
        verify_with((), VerifyRequest(tmp_path / "none.json", tmp_path), print)
    with pytest.raises(Problem, match="no model was found"):
        verified("import torch\n", "import mindspore\n")
    with pytest.raises(Problem, match="flot32"):
        verified(PLAIN, MISSING, inputs=("2x3:flot32",))


def test_a_missing_framework_says_how_to_install_it(tmp_path):
    record = write_pair(tmp_path, PLAIN, MISSING)
    python = Path("/usr/bin/python3")
    if not python.exists():
        pytest.skip("no second Python on this machine")
    request = VerifyRequest(record, record.parent, torch_python=python)
    pair = open_sides(request, tmp_path / "workers", 0)
    try:
        with pytest.raises(Problem, match="torch2mindspore\\[verify\\]"):
            verify_with((pair,), request, print)
    finally:
        pair.stop()


@SLOW
def test_only_what_follows_a_random_draw_is_nondeterministic(verified):
    torch = PLAIN.replace(
        "self.last(self.act(self.first(x)))",
        "self.last(x + 0 * torch.rand(1)) + self.act(self.first(x))[:, :3]",
    )
    torch = torch.replace("self.first = ", "self.before = nn.Linear(6, 6)\n        self.first = ")
    torch = torch.replace("return self.last(x", "x = self.before(x)\n        return self.last(x")
    mindspore = MISSING.replace("CLASS", "nn.ReLU").replace(
        "self.last(self.act(self.first(x)))",
        "self.last(x + 0 * ops.rand(1)) + self.act(self.first(x))[:, :3]",
    )
    mindspore = mindspore.replace(
        "self.first = ", "self.before = nn.Dense(6, 6)\n        self.first = "
    ).replace("return self.last(x", "x = self.before(x)\n        return self.last(x")
    model = model_of(verified(torch, mindspore, modes=PYNATIVE, gradients=False))
    assert check_of(model, "before").verdict is Verdict.PASS
    assert check_of(model, "last").local is not None
    assert check_of(model, "").verdict is Verdict.NONDET
