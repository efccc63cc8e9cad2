"""In: tensor names and maps. Out: that every torch tensor finds its partner, or is missing."""

from __future__ import annotations

from migrate.parity.weights import Held, Names, cell_path, pair_all, partner, public_names
from migrate.workspace.project import Request, convert

NAMES = Names(
    weights={
        "torch.nn.BatchNorm2d": {
            "weight": "gamma", "running_mean": "moving_mean", "num_batches_tracked": "",
        },
        "torch.nn.LayerNorm": {"weight": "gamma", "bias": "beta"},
        "torch.nn.TransformerEncoderLayer": {
            "linear1": "dense1", "norm1.weight": "norm1.scale", "extra": "",
        },
    },
    layouts={"torch.nn.Conv1d": {"weight": "unsqueeze(2)"}},
)  # fmt: skip
CLASSES = {
    "": ("net.Net", "torch.nn.modules.module.Module"),
    "bn": ("net.MyNorm", "torch.nn.modules.batchnorm.BatchNorm2d"),
    "conv": ("torch.nn.modules.conv.Conv1d",),
    "enc": ("torch.nn.modules.transformer.TransformerEncoderLayer",),
    "enc.linear1": ("torch.nn.modules.linear.Linear",),
    "enc.norm1": ("torch.nn.modules.normalization.LayerNorm",),
    "enc.norm2": ("torch.nn.modules.normalization.LayerNorm",),
}


def test_a_class_of_torch_is_known_by_its_public_name():
    assert "torch.nn.Conv2d" in public_names(["torch.nn.modules.conv.Conv2d"])
    assert "torchvision.ops.FrozenBatchNorm2d" in public_names(
        ["torchvision.ops.misc.FrozenBatchNorm2d"]
    )


def test_a_subclass_takes_the_map_of_its_base():
    assert partner("bn.weight", CLASSES, NAMES).name == "bn.gamma"
    assert partner("bn.bias", CLASSES, NAMES).name == "bn.bias"
    assert not partner("bn.num_batches_tracked", CLASSES, NAMES).needed


def test_a_layout_comes_along():
    assert partner("conv.weight", CLASSES, NAMES).layout == "unsqueeze(2)"
    assert partner("conv.bias", CLASSES, NAMES).layout == ""


def test_an_outer_map_renames_children_and_their_tensors():
    assert partner("enc.linear1.weight", CLASSES, NAMES).name == "enc.dense1.weight"
    assert partner("enc.norm1.weight", CLASSES, NAMES).name == "enc.norm1.scale"
    assert partner("enc.norm2.weight", CLASSES, NAMES).name == "enc.norm2.gamma"
    assert cell_path("enc.linear1", CLASSES, NAMES) == "enc.dense1"
    assert cell_path("", CLASSES, NAMES) == ""


def held(*places, trained=True):
    return [Held(place, place, number, trained) for number, place in enumerate(places, 1)]


def test_every_tensor_is_accounted_for_exactly_once():
    tied = dict.fromkeys(["bn.weight", "bn.num_batches_tracked", "bn.lost"], "")
    pairing = pair_all(tied, CLASSES, held("bn.gamma", "bn.surplus"), NAMES)
    assert pairing.total == 3
    assert [pair.place for pair in pairing.pairs] == ["bn.gamma", ""]
    assert pairing.missing[0][0] == "bn.lost"
    assert [item.place for item in pairing.extra] == ["bn.surplus"]


def test_a_parameter_is_found_by_its_name_too():
    cell = [Held("act.w", "act.a", 1, True)]
    names = Names({"torch.nn.PReLU": {"weight": "a"}}, {})
    classes = {"act": ("torch.nn.modules.activation.PReLU",)}
    pairing = pair_all({"act.weight": ""}, classes, cell, names)
    assert pairing.pairs[0].place == "act.w"


def test_tied_weights_must_stay_tied():
    tied = {"emb.weight": "", "head.weight": "emb.weight"}
    one = [Held("emb.weight", "emb.weight", 5), Held("head.weight", "head.weight", 5)]
    assert not pair_all(tied, {}, one, NAMES).missing
    two = [Held("emb.weight", "emb.weight", 5), Held("head.weight", "head.weight", 6)]
    assert "shares memory" in pair_all(tied, {}, two, NAMES).missing[0][1]


def test_a_shared_module_has_its_class_at_each_of_its_paths():
    classes = {"": ("net.Net",), "a": ("net.Box",), "a.conv": ("torch.nn.modules.conv.Conv1d",)}
    tied = {"a.conv.weight": "", "b.0.conv.weight": "a.conv.weight"}
    cell = [Held("a.conv.weight", "a.conv.weight", 5), Held("b.0.conv.weight", "", 5)]
    pairs = pair_all(tied, classes, cell, NAMES).pairs
    assert [pair.layout for pair in pairs] == ["unsqueeze(2)", "unsqueeze(2)"]
    other = {"a.conv.weight": "", "b.0.head": "a.conv.weight"}  # tied under another name: no alias
    assert pair_all(other, classes, [*cell, Held("b.0.head", "", 5)], NAMES).pairs[1].layout == ""


INNER = """import torch.nn as nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 1)

    def forward(self, x):
        return self.layers(x)
"""


def test_what_a_layer_holds_inside_has_its_names_in_the_record(tmp_path) -> None:
    (tmp_path / "net.py").write_text(INNER, encoding="utf-8")
    record = convert(Request(tmp_path / "net.py", tmp_path / "out.py", jobs=1)).record
    assert record.weights["torch.nn.LayerNorm"] == {"weight": "gamma", "bias": "beta"}
    other = INNER[: INNER.index("nn.TransformerEncoder(")] + "nn.Linear(8, 8)\n"
    (tmp_path / "net.py").write_text(other, encoding="utf-8")
    record = convert(Request(tmp_path / "net.py", tmp_path / "out.py", jobs=1)).record
    assert "torch.nn.LayerNorm" not in record.weights
