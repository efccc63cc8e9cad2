"""In: trees of checkpoints and a verified model. Out: every tensor accounted for, both ways."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from migrate.parity.checkpoint import (
    Account,
    Conversion,
    Job,
    as_dict,
    convert_checkpoint,
    direction,
    entries,
    packed,
    renamed_tree,
    unpacked,
    unstorable,
    unwrapped,
)
from migrate.parity.exchange import ArrayStore, Spec, apply_layout, undo_layout
from migrate.parity.optimizer_state import Held, to_mindspore_moments, to_torch_moments
from migrate.records.outcomes import Problem
from migrate.records.result import ModelResult

NAMES = {
    "bn.weight": "bn.gamma", "bn.steps": "", "head.weight": "emb.table", "emb.w": "emb.table",
}  # fmt: skip
MODEL = ModelResult(
    name="Net", source="net.py", build="Net()", inputs=(), verdict="PASS", weight_names=NAMES,
    weight_layouts={"bn.weight": "unsqueeze(1)"}, parameters=("bn.weight", "emb.w"),
)  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> ArrayStore:
    return ArrayStore(tmp_path)


def tensor(store: ArrayStore, *numbers: float, dtype: str = "float32") -> Spec:
    array = np.asarray(numbers, dtype)
    return {"t": "tensor", "key": store.put(array), "dtype": dtype, "shape": list(array.shape)}


def numbers(store: ArrayStore, spec: Spec) -> list[float]:
    found: list[float] = store.get(spec["key"]).tolist()
    return found


def job(store: ArrayStore, to_torch: bool = False, **more: object) -> Job:
    return Job(MODEL, store, to_torch, Account(), **more)  # type: ignore[arg-type]


def test_every_tensor_of_torch_is_accounted_for(store: ArrayStore) -> None:
    one = job(store)
    given = {"bn.weight": tensor(store, 1, 2), "bn.steps": tensor(store, 7), "x": tensor(store, 3)}
    made = entries(renamed_tree(as_dict(given), one))
    assert list(made) == ["bn.gamma"]
    assert numbers(store, made["bn.gamma"]) == [[1], [2]]
    assert one.account.copied == {"bn.weight": "bn.gamma"}
    assert list(one.account.dropped) == ["bn.steps"]
    assert list(one.account.unknown) == ["x"]
    assert one.account.absent == ["head.weight", "emb.w"]
    assert one.account.total == 3


def test_tied_tensors_become_one_and_two_again(store: ArrayStore) -> None:
    one, same = job(store), tensor(store, 1, 2)
    given = {"head.weight": same, "emb.w": tensor(store, 1, 2), "bn.weight": tensor(store, 5, 6)}
    made = renamed_tree(as_dict(given), one)
    assert list(entries(made)) == ["emb.table", "bn.gamma"]
    assert not one.account.unknown
    back = job(store, to_torch=True)
    again = entries(renamed_tree(made, back))
    assert {key: numbers(store, spec) for key, spec in again.items()} == {
        "bn.weight": [5, 6], "head.weight": [1, 2], "emb.w": [1, 2],
    }  # fmt: skip
    assert again["head.weight"]["key"] == again["emb.w"]["key"]
    assert not back.account.absent


def test_tied_tensors_that_differ_are_not_lost_in_silence(store: ArrayStore) -> None:
    one = job(store)
    given = {"head.weight": tensor(store, 1), "emb.w": tensor(store, 2)}
    renamed_tree(as_dict(given), one)
    assert list(one.account.unknown) == ["emb.w"]


def test_a_file_of_torch_gives_what_mindspore_does_not_keep(store: ArrayStore) -> None:
    given = {"bn.gamma": column(store), "emb.table": tensor(store, 2), "moments": tensor(store, 9)}
    base = {"bn.steps": tensor(store, 7)}
    one = job(store, to_torch=True, base=base)
    made = entries(renamed_tree(as_dict(given), one))
    assert list(made) == ["bn.weight", "bn.steps", "head.weight", "emb.w"]
    assert list(one.account.unknown) == ["moments"]
    without = job(store, to_torch=True)
    assert "bn.steps" not in entries(renamed_tree(as_dict(given), without))
    assert any("bn.steps" in note for note in without.account.notes)


def column(store: ArrayStore) -> Spec:
    key = store.put(np.ones((2, 1), np.float32))
    return {"t": "tensor", "key": key, "dtype": "float32", "shape": [2, 1]}


def test_states_lie_anywhere_and_all_else_stays(store: ArrayStore) -> None:
    state = as_dict({"bn.weight": tensor(store, 1), "emb.w": tensor(store, 2)})
    other = {"t": "opaque", "why": "an object of class Clock"}
    tree = as_dict({"a": as_dict({"net": state}), "epoch": {"t": "value", "v": 3},
                    "clock": other, "rng": tensor(store, 4)})  # fmt: skip
    one = job(store)
    made = entries(renamed_tree(tree, one))
    assert list(made) == ["a", "epoch", "rng"]
    assert list(entries(entries(made["a"])["net"])) == ["bn.gamma", "emb.table"]
    assert one.account.dropped == {"clock": "an object of class Clock"}
    assert one.account.copied["rng"] == "as it is"


def test_what_wraps_a_model_is_left_out_only_when_all_keys_have_it() -> None:
    assert unwrapped(["module.a", "module.b"]) == {"a": "module.a", "b": "module.b"}
    assert unwrapped(["module.a", "b"]) == {"module.a": "module.a", "b": "b"}
    assert unwrapped(["_orig_mod.module.a"]) == {"a": "_orig_mod.module.a"}


def test_the_way_follows_from_names_and_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.ckpt").write_bytes(b"\n\x10\n")
    (tmp_path / "lightning.ckpt").write_bytes(b"PK\x03\x04")
    assert direction(tmp_path / "a.ckpt", Path("b.pth"), None) is True
    assert direction(tmp_path / "lightning.ckpt", Path("b.ckpt"), None) is False
    assert direction(Path("a.pth"), Path("b.ckpt"), None) is False
    assert direction(Path("a.safetensors"), Path("b.pth"), None) is True
    assert direction(Path("a.safetensors"), Path("b.safetensors"), None) is None
    assert direction(Path("a.safetensors"), Path("b.safetensors"), True) is True


def test_a_structure_is_stored_and_read_again(store: ArrayStore) -> None:
    tree = as_dict({"net": as_dict({"w": tensor(store, 1)}), "betas": {
        "t": "tuple", "items": [{"t": "value", "v": 0.9}, {"t": "value", "v": None}]}})  # fmt: skip
    entries_ = packed(tree)
    assert entries_["keys"] == ["obj.net.w", "structure"]
    assert unpacked(entries_) == tree
    plain = as_dict({"w": tensor(store, 1)})
    assert packed(plain) == plain == unpacked(plain)
    damaged = {**entries_, "keys": ["other", "structure"]}
    with pytest.raises(ValueError, match="damaged"):
        unpacked(damaged)


def test_what_a_checkpoint_cannot_hold_is_said() -> None:
    assert "complex64" in unstorable({"shape": [2], "dtype": "complex64"})
    assert "without elements" in unstorable({"shape": [0, 2], "dtype": "float32"})
    assert unstorable({"shape": [], "dtype": "bfloat16"}) == ""


@pytest.mark.parametrize("layout", ["", "unsqueeze(2)", "transpose(0, 1)", "permute(2, 0, 1)"])
def test_a_layout_is_undone(layout: str) -> None:
    array = np.arange(24).reshape(2, 3, 4)
    np.testing.assert_array_equal(undo_layout(apply_layout(array, layout), layout), array)


def test_a_layout_that_loses_the_shape_is_not_undone() -> None:
    with pytest.raises(ValueError, match="cannot be undone"):
        undo_layout(np.zeros(4), "flatten()")


def optimizer(store: ArrayStore, groups: int = 1, steps: tuple[int, int] = (3, 3)) -> Spec:
    rows = [
        as_dict({"step": tensor(store, step), "exp_avg": tensor(store, step, 1),
                 "exp_avg_sq": tensor(store, step, 2)})
        for step in steps
    ]  # fmt: skip
    held = {"t": "list", "items": [{"t": "value", "v": n} for n in range(2)]}
    value = {"t": "value", "v": 0.1}
    group = as_dict({"lr": value, "betas": value, "amsgrad": value, "fused": value, "params": held})
    return as_dict({
        "state": {"t": "dict", "keys": [0, 1], "items": rows},
        "param_groups": {"t": "list", "items": [group] * groups},
    })  # fmt: skip


def held(store: ArrayStore) -> Held:
    weights = {"bn.weight": tensor(store, 0, 0), "emb.w": tensor(store, 0, 0)}
    return Held(MODEL, store, weights)


def test_moments_have_the_names_of_the_converted_optimizer(store: ArrayStore) -> None:
    given = optimizer(store)
    for row in given["items"][0]["items"]:
        row["items"][0] = {"t": "value", "v": 3.0}
    done = to_mindspore_moments(given, held(store))
    assert done.tree is not None
    state = entries(entries(done.tree)["state"])
    assert list(state) == [
        f"{prefix}.{name}" for name in ("bn.gamma", "emb.table")
        for prefix in ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
    ] + ["state_step"]  # fmt: skip
    assert numbers(store, state["exp_avg.bn.gamma"]) == [[3], [1]]
    assert numbers(store, state["state_step"]) == 3
    group = entries(entries(done.tree)["param_groups"]["items"][0])
    assert list(group) == ["lr", "betas", "amsgrad", "params"]
    back = to_torch_moments(done.tree, held(store))
    assert back.tree is not None
    rows = entries(entries(back.tree)["state"])
    assert list(entries(rows["0"])) == ["step", "exp_avg", "exp_avg_sq"]
    assert numbers(store, entries(rows["1"])["exp_avg"]) == [3, 1]


@pytest.mark.parametrize(
    ("changes", "why"),
    [({"groups": 2}, "several groups"), ({"steps": (3, 4)}, "different numbers of steps")],
)
def test_moments_whose_meaning_is_not_sure_are_left_out(
    store: ArrayStore, changes: dict[str, object], why: str
) -> None:
    given = optimizer(store, **changes)  # type: ignore[arg-type]
    for row in given["items"][0]["items"]:
        step = store.get(row["items"][0]["key"]).item()
        row["items"][0] = {"t": "value", "v": step}
    done = to_mindspore_moments(given, held(store))
    assert done.tree is None and why in done.why


def test_a_moment_must_have_the_shape_of_its_weight(store: ArrayStore) -> None:
    wrong = Held(MODEL, store, {"bn.weight": tensor(store, 0, 0, 0), "emb.w": tensor(store, 0, 0)})
    given = optimizer(store)
    for row in given["items"][0]["items"]:
        row["items"][0] = {"t": "value", "v": 3.0}
    assert "another shape" in to_mindspore_moments(given, wrong).why


def test_a_model_without_names_is_refused(tmp_path: Path) -> None:
    blank = MODEL.model_copy(update={"weight_names": {}})
    with pytest.raises(Problem, match="run torch2ms verify first"):
        convert_checkpoint(Conversion(tmp_path / "a.pth", tmp_path / "a.ckpt", blank), tmp_path)
