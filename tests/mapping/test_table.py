"""In: small mappings folders. Out: whether rows, cases, errors are read as docs/table.md says."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from migrate.mapping import table as tables
from migrate.mapping.signatures import HelperFiles
from migrate.mapping.table import Table, TableError, load, mappings_folder

Make = Callable[..., Table]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A table of its own with the shipped facts: make({"torch.toml": "..."})."""

    def call(files: dict[str, str], user: dict[str, str] | None = None) -> Table:
        (tmp_path / "facts").symlink_to(mappings_folder() / "facts")
        for folder, some in ((tmp_path, files), (tmp_path / "user", user or {})):
            for name, text in some.items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        own = [tmp_path / "user" / name for name in user or {} if "/" not in name]
        return load(own, folder=tmp_path)

    return call


MAX = '["torch.max"]\nto = "helpers.largest(input)"\n'
MAX_DIM = '["torch.max:dim"]\nto = "mindspore.ops.max(input, dim, keepdim)"\n'
MAX_LITERAL = '["torch.max:a_literal"]\nwhen = { input = "literal" }\nto = "input"\n'


def test_bare_row_comes_first_then_labels_in_file_order(make: Make) -> None:
    table = make({"torch.toml": MAX_DIM + MAX_LITERAL + MAX})
    assert [row.label for row in table.rows("torch.max")] == ["", "dim", "a_literal"]
    assert table.rows("torch.min") == ()


def test_a_label_answers_for_its_overload_and_the_rest_for_what_is_left(make: Make) -> None:
    bare, dim, literal = make({"torch.toml": MAX + MAX_DIM + MAX_LITERAL}).rows("torch.max")
    assert [one.overload for one in dim.signatures] == ["dim"]
    assert [one.overload for one in bare.signatures] == ["", "other"]
    assert literal.signatures == bare.signatures


def test_field_names_of_a_named_tuple_come_from_the_facts(make: Make) -> None:
    table = make({"torch.toml": MAX + MAX_DIM})
    row = table.row("torch.max:dim")
    assert row is not None
    assert row.returns == ("values", "indices")
    assert row.signatures[0].result == "tuple[Tensor, Tensor]"


def test_a_written_signature_replaces_the_facts(make: Make) -> None:
    text = (
        '["einops.rearrange"]\nto = "helpers.rearrange(tensor, pattern, **axes_lengths)"\n'
        'signature = "rearrange(tensor: Tensor, pattern: str, **axes_lengths) -> Tensor"\n'
    )
    (row,) = make({"einops.toml": text}).rows("einops.rearrange")
    (signature,) = row.signatures
    assert [(p.name, p.kind, p.type) for p in signature.params] == [
        ("tensor", "any", "Tensor"),
        ("pattern", "any", "str"),
        ("axes_lengths", "kwargs", ""),
    ]
    assert signature.result == "Tensor"
    assert row.kind == "function"


def test_values_of_a_row(make: Make) -> None:
    text = (
        '["torch.nn.BatchNorm2d"]\nto = "mindspore.nn.BatchNorm2d(num_features)"\n'
        'only = { affine = "True", dtype = ["None", "torch.float32"] }\ndrop = ["eps"]\n'
        'weights = { weight = "gamma" }\nnext = "write it"\n'
    )
    (row,) = make({"torch.nn.toml": text}).rows("torch.nn.BatchNorm2d")
    assert row.kind == "class"
    assert row.only == {"affine": ("True",), "dtype": ("None", "torch.float32")}
    assert row.drop == {"eps"}
    assert row.weights == {"weight": "gamma"}
    assert row.next_step == "write it"
    assert row.file.endswith("torch.nn.toml")


def test_a_user_row_and_case_replace_ours(make: Make) -> None:
    table = make(
        {"torch.toml": MAX, "cases/torch.toml": '["torch.max"]\ncalls = ["torch.max(x0)"]\n'},
        user={
            "mine.toml": '["torch.max"]\nto = "mindspore.ops.amax(input)"\n',
            "cases/mine.toml": '["torch.max"]\ncalls = ["torch.max(x0 + 1)"]\n',
        },
    )
    row, case = table.row("torch.max"), table.case("torch.max")
    assert row is not None and row.to == "mindspore.ops.amax(input)"
    assert case is not None and case.calls == ("torch.max(x0 + 1)",)


@pytest.mark.parametrize(
    ("files", "parts"),
    [
        ({"torch.toml": MAX, "torch.b.toml": MAX}, ("torch.toml", "torch.b.toml", "torch.max")),
        ({"torch.toml": MAX + MAX}, ("torch.toml", "not valid TOML")),
        ({"torch.toml": '["torch.max"]\nto = 1\n'}, ("torch.toml", "torch.max", "to is 1")),
        ({"torch.toml": '["torch.max"]\nonly = "x"\n'}, ("torch.max", "only")),
        ({"torch.toml": '"torch.max" = 1\n'}, ("torch.toml", "torch.max", "table")),
        ({"torch.toml": '["torch.max"]\nsignature = "f(a"\n'}, ("torch.max", "f(a")),
    ],
)
def test_errors_name_the_file_and_the_key(
    make: Make, files: dict[str, str], parts: tuple[str, ...]
) -> None:
    with pytest.raises(TableError) as caught:
        make(files).rows("torch.max")
    for part in parts:
        assert part in str(caught.value)


def test_a_missing_user_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"nowhere\.toml"):
        load([tmp_path / "nowhere.toml"])


def test_names_of_other_places_lead_to_the_public_row(make: Make) -> None:
    table = make({"torch.nn.toml": '["torch.nn.Conv2d"]\nref = "mindspore.nn.Conv2d"\n'})
    (row,) = table.rows("torch.nn.modules.conv.Conv2d")
    assert row.name == "torch.nn.Conv2d"
    assert "torch.nn.Module" in table.bases("torch.nn.modules.conv.Conv2d")


def test_suggestions(make: Make) -> None:
    table = make({"torch.toml": MAX})
    assert table.suggest("torch.nn.Conv2e") == "torch.nn.Conv2d"
    assert table.suggest("torch.zzzzzzzz") == ""


def test_what_a_value_has_suggests_no_function_of_torch() -> None:
    rows = load()
    assert rows.suggest("torch.pi.split") == ""
    assert rows.suggest("torch.float32.chunk") == ""
    assert rows.suggest("torch.nothing.Conv2d") == "torch.nn.Conv2d"


def test_targets_have_signatures() -> None:
    table = load()
    dense = table.target_signature("mindspore.nn.Dense")
    assert dense is not None and [p.name for p in dense.params][:2] == [
        "in_channels",
        "out_channels",
    ]
    assert table.target_is_class("mindspore.nn.Dense")
    assert not table.target_is_class("mindspore.ops.relu")
    assert table.target_signature("mindspore.nn.NoSuchCell") is None
    assert len(table.target_signatures("mindspore.Tensor.max")) > 1


def test_a_helper_class_inherits_its_constructor(tmp_path: Path) -> None:
    helpers = tmp_path / "helpers"
    helpers.mkdir()
    (helpers / "one.py").write_text(
        "from mindspore import nn\n\n\nclass Plain(nn.Dense):\n    pass\n\n\n"
        "class Own(Plain):\n    def __init__(self, a, b=2):\n        pass\n\n\n"
        "class Child(Own):\n    pass\n\n\ndef f(x, *, y=1):\n    return x\n"
    )
    table = Table({}, {}, load().torch, load().mindspore, HelperFiles(helpers), tmp_path)
    names = {
        name: [p.name for p in table.target_signatures(f"helpers.{name}")[0].params]
        for name in ("Plain", "Own", "Child", "f")
    }
    assert names["Plain"][:2] == ["in_channels", "out_channels"]
    assert names["Own"] == names["Child"] == ["a", "b"]
    assert names["f"] == ["x", "y"]
    assert table.target_is_class("helpers.Child") and not table.target_is_class("helpers.f")


def test_libraries_that_need_torch() -> None:
    table = load()
    assert table.needs_torch("torchvision.models") != ""
    assert table.needs_torch("safetensors.torch") != ""
    assert table.needs_torch("safetensors") == table.needs_torch("numpy") == ""
    for name, entry in tables.read_toml(mappings_folder() / "libraries.toml").items():
        assert entry["next"].strip(), name


def test_a_thousand_rows_load_quickly(make: Make, tmp_path: Path) -> None:
    rows = "".join(
        f'["torch.nn.functional.f{number:04}"]\nto = "mindspore.ops.relu(input, {number})"\n'
        'note = "An API difference that changes no number, told in a sentence or two."\n'
        for number in range(1000)
    )
    make({"torch.nn.functional.toml": rows})
    begun = time.process_time()
    table = load(folder=tmp_path)
    assert table.kind("torch.nn.Conv2d") == "class"
    assert len(table.names) == 1000
    assert time.process_time() - begun < 0.3
