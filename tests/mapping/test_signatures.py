"""In: the shipped facts. Out: whether they can be read, and agree with the installed frameworks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from migrate.mapping.signatures import NUMPY_KEYWORDS, SignatureError, parse_signature
from migrate.mapping.table import MINDSPORE_FACTS, TORCH_FACTS, load, mappings_folder

TABLE = load()


def names_of(name: str, overload: str = "") -> list[str]:
    return next(
        [param.name for param in one.params]
        for one in TABLE.signatures(name)
        if one.overload == overload
    )


def test_every_signature_of_both_facts_files_can_be_read() -> None:
    for facts in (TABLE.torch, TABLE.mindspore):
        read = sum(len(facts.signatures(name)) for name in facts.names)
        assert read > 2000


def test_notation_of_signatures() -> None:
    text = "f(a: Tensor, /, b: list[int] | None = None, *c, d: int = 1, **e) -> tuple[Tensor, int]"
    signature = parse_signature(text, "dim")
    assert [(p.name, p.kind, p.default, p.type, p.optional) for p in signature.params] == [
        ("a", "pos", None, "Tensor", False),
        ("b", "any", "None", "int[]", True),
        ("c", "args", None, "", False),
        ("d", "kw", "1", "int", False),
        ("e", "kwargs", None, "", False),
    ]
    assert (signature.result, signature.overload) == ("tuple[Tensor, int]", "dim")
    named = parse_signature("(x) -> namedtuple(values=Tensor, indices=Tensor)")
    assert (named.result, named.fields) == ("tuple[Tensor, Tensor]", ("values", "indices"))
    with pytest.raises(SignatureError, match="not Python"):
        parse_signature("f(a b)")


def test_torch_names_have_their_kinds() -> None:
    kinds = {
        "torch.nn.Conv2d": "class",
        "torch.nn.LSTM.forward": "method",
        "torch.nn.Module.eval": "method",
        "torch.Tensor.view": "method",
        "torch.Tensor.shape": "property",
        "torch.float32": "constant",
        "torch.nn.functional": "module",
        "torch.max": "function",
        "torch.jit.is_scripting": "function",
        "torch.distributed.init_process_group": "function",
        "torch.no_such_name": "",
    }
    assert {name: TABLE.kind(name) for name in kinds} == kinds


def test_arguments_are_those_that_a_user_may_write() -> None:
    assert names_of("torch.sum") == ["input", "dim", "keepdim", "dtype", "out"]
    assert names_of("torch.Tensor.sum") == ["dim", "keepdim", "dtype"]
    assert names_of("torch.max", "dim") == ["input", "dim", "keepdim", "out"]
    assert names_of("torch.nn.functional.max_pool2d")[:3] == ["input", "kernel_size", "stride"]
    assert names_of("torch.nn.LSTM")[:3] == ["input_size", "hidden_size", "num_layers"]
    assert names_of("torch.Tensor.view") == ["size"]
    assert names_of("torch.where", "self")[:3] == ["condition", "input", "other"]
    assert names_of("torch.Tensor.to", "other") == [
        "other",
        "non_blocking",
        "copy",
        "memory_format",
    ]


def test_lists_of_ints_that_may_be_separate_arguments_are_variadic() -> None:
    for name in ("torch.Tensor.view", "torch.Tensor.permute", "torch.zeros", "torch.Tensor.expand"):
        assert TABLE.signatures(name)[0].params[0].kind == "args", name
    for name in ("torch.full", "torch.permute", "torch.Tensor.roll"):
        assert TABLE.signatures(name)[0].params[0].kind == "any", name


def test_no_default_depends_on_the_run() -> None:
    for name in (TORCH_FACTS, MINDSPORE_FACTS):
        text = (mappings_folder() / "facts" / name).read_text(encoding="utf-8")
        assert " at 0x" not in text
        assert "site-packages" not in text


@pytest.mark.slow
def test_writing_the_facts_again_gives_the_same_bytes(tmp_path: Path) -> None:
    from migrate.evidence.signatures import write

    for path in write(tmp_path, progress=lambda line: None):
        shipped = mappings_folder() / "facts" / path.name
        assert path.read_bytes() == shipped.read_bytes(), path.name


@pytest.mark.slow
def test_torch_accepts_its_numpy_keywords_and_our_names() -> None:
    probe = (
        "import torch; t = torch.ones(2, 3)\n"
        "torch.sum(t, axis=0, keepdims=True); torch.sum(x=t); torch.sum(a=t)\n"
        "torch.add(x1=t, x2=t); torch.sum(input=t, dim=0, keepdim=True)\n"
        "torch.max(input=t, dim=0, keepdim=True); torch.where(condition=t > 0, input=t, other=t)\n"
    )
    assert set(NUMPY_KEYWORDS) == {"axis", "keepdims", "x", "a", "x1", "x2"}
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-500:]


@pytest.mark.slow
def test_facts_agree_with_calls_that_torch_accepts() -> None:
    """Each C function with one plain overload really takes its arguments by our names."""
    probe = (
        "import sys, torch\nfrom migrate.mapping.table import load\ntable = load()\nwrong = []\n"
        "for name, entry in table.torch.names.items():\n"
        "    if entry[1] != 'native_functions.yaml' or entry[0] != 'function': continue\n"
        "    if name.endswith('_') or '._' in name: continue\n"
        "    function = eval(name)\n"
        "    for one in table.signatures(name):\n"
        "        given = {p.name: object() for p in one.params if p.kind == 'any'}\n"
        "        try: function(**given)\n"
        "        except Exception as error:\n"
        "            if 'unexpected keyword' in str(error): wrong.append(f'{name}: {error}')\n"
        "try: torch.relu(input=object(), nonsense=1)\n"
        "except TypeError as error: assert 'unexpected keyword' in str(error), error\n"
        "print(*wrong, sep='\\n'); sys.exit(bool(wrong))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-500:]
