"""In: helper files. Out: what is copied into an output is whole and in order."""

from __future__ import annotations

import ast
import builtins
import symtable

import pytest

from migrate.codegen import helper_copy
from migrate.codegen.helper_copy import HelperError

FIRST = '''"""In: x. Out: y."""

from __future__ import annotations

import math

import mindspore as ms
from mindspore import nn, ops
from mindspore.common.initializer import Normal

from migrate.helpers.second import shared

# how much
_LIMIT = 4


def _inner(x):
    return ops.abs(x) * _LIMIT


# a comment of its own
@ms.jit
def outer(x, nn=None):
    """Reproduces torch.outer."""
    return shared(_inner(x), math.pi)


class Layer(nn.Cell):
    def construct(self, x):
        return outer(x) + self.again(Normal)

    def again(self, kind):
        return Layer
'''
SECOND = '''"""In: x. Out: y."""

import mindspore as ms
from mindspore import Tensor


def shared(x, y):
    return Tensor(x, ms.float32) + y


def alone(x):
    return x
'''


@pytest.fixture
def helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [*helper_copy.read_helpers("first.py", FIRST)]
    found += helper_copy.read_helpers("second.py", SECOND)
    monkeypatch.setattr(helper_copy, "library", lambda: {item.name: item for item in found})


def test_what_a_helper_uses_comes_first_and_once(helpers: None) -> None:
    text, roots = helper_copy.inline(["helpers.Layer", "outer"])
    defined = [
        node.targets[0].id if isinstance(node, ast.Assign) else node.name
        for node in ast.parse(text).body
        if not isinstance(node, ast.ImportFrom)
    ]
    assert sorted(defined) == ["Layer", "_LIMIT", "_inner", "outer", "shared"]
    order = {name: place for place, name in enumerate(defined)}
    assert order["_LIMIT"] < order["_inner"] < order["outer"] < order["Layer"]
    assert order["shared"] < order["outer"]
    assert roots == {"math", "mindspore", "mindspore.nn", "mindspore.ops", "mindspore.Tensor"}
    assert "from mindspore.common.initializer import Normal\n" in text


def test_text_is_exact_with_decorators_and_comments(helpers: None) -> None:
    text, _ = helper_copy.inline(["outer"])
    assert text.startswith("# Helpers from torch2ms ")
    assert FIRST[FIRST.index("# a comment") : FIRST.index("\n\n\nclass")] in text
    assert "# how much\n_LIMIT = 4\n" in text
    assert text.endswith("\n") and not text.endswith("\n\n")


def test_what_is_not_used_stays_out(helpers: None) -> None:
    text, roots = helper_copy.inline(["alone"])
    assert "shared" not in text
    assert roots == frozenset()


def test_order_does_not_depend_on_the_order_of_names(helpers: None) -> None:
    names = ["alone", "Layer", "outer", "_inner"]
    assert helper_copy.inline(names) == helper_copy.inline(names[::-1])
    assert helper_copy.module_text(names) == helper_copy.module_text(set(names))


def test_a_module_is_marked_and_read_back(helpers: None) -> None:
    data = helper_copy.module_text(["Layer"]).encode()
    assert helper_copy.is_ours(data)
    assert not helper_copy.is_ours(helper_copy.inline(["Layer"])[0].encode())
    assert helper_copy.names_in(data) == {"Layer", "_LIMIT", "_inner", "outer", "shared"}
    assert data.decode().splitlines()[3:9] == [
        "from __future__ import annotations",
        "",
        "import math",
        "",
        "import mindspore as ms",
        "from mindspore import Tensor, nn, ops",
    ]


def test_names_that_the_file_uses_itself_are_changed(helpers: None) -> None:
    assert {"shared", "_inner", "ms", "math", "Normal"} <= helper_copy.bound(["Layer"])
    rename = {"shared": "torch_shared", "_inner": "torch__inner", "ms": "mindspore"}
    text, roots = helper_copy.inline(["outer"], rename)
    assert "def torch_shared(x, y):\n    return Tensor(x, mindspore.float32) + y\n" in text
    assert "    return torch_shared(torch__inner(x), math.pi)\n" in text
    assert "@mindspore.jit\n" in text
    assert "mindspore" in roots
    compile(text, "text", "exec")


def test_imports_that_stand_in_the_text_are_changed_too(helpers: None) -> None:
    text, _ = helper_copy.inline(["Layer"], {"Normal": "ms_Normal", "Layer": "torch_Layer"})
    assert "from mindspore.common.initializer import Normal as ms_Normal\n" in text
    assert "self.again(ms_Normal)" in text
    assert "class torch_Layer(nn.Cell):" in text
    assert "        return torch_Layer\n" in text


def test_an_argument_of_the_same_name_stays(helpers: None) -> None:
    text = SECOND.replace("def alone(x)", "def alone(x, shared=None)").replace(
        "    return x\n", "    return shared\n"
    )
    found = {item.name: item for item in helper_copy.read_helpers("second.py", text)}
    (alone,) = (helper_copy._renamed(found["alone"], {"shared": "other"}),)
    assert alone == "def alone(x, shared=None):\n    return shared"


def test_a_name_that_a_helper_binds_anew_is_not_changed_by_guess(helpers: None) -> None:
    text = SECOND.replace("    return x\n", "    global shared\n    shared = x\n    return x\n")
    found = {item.name: item for item in helper_copy.read_helpers("second.py", text)}
    with pytest.raises(HelperError, match="binds 'shared' anew"):
        helper_copy._renamed(found["alone"], {"shared": "other"})


def test_an_unknown_helper(helpers: None) -> None:
    with pytest.raises(HelperError, match="no helper 'nothing'"):
        helper_copy.inline(["helpers.nothing"])


@pytest.mark.parametrize(
    "line",
    [
        "import mindspore",
        "import numpy",
        "from mindspore import nn as layers",
        "from migrate.helpers.second import shared as other",
        "from migrate.helpers import second",
    ],
)
def test_imports_that_cannot_be_copied(line: str) -> None:
    with pytest.raises(HelperError, match=r"first\.py:2: .* cannot be copied"):
        helper_copy.read_helpers("first.py", f'"""In. Out."""\n{line}\n')


def test_all_shipped_helpers_fit_into_one_module_with_every_name_bound() -> None:
    """No two files define the same name differently, and no global name is missing."""
    names = list(helper_copy.library())
    assert len(names) > 40
    text = helper_copy.module_text(names)
    known = set(dir(builtins)) | {"__name__"}
    top = symtable.symtable(text, "torch_helpers.py", "exec")
    known |= {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported()}
    missing = set()
    pending = [top]
    while pending:
        table = pending.pop()
        pending += table.get_children()
        for symbol in table.get_symbols():
            if symbol.is_global() and symbol.is_referenced() and symbol.get_name() not in known:
                missing.add(f"{table.get_name()}: {symbol.get_name()}")
    assert not missing


def test_each_shipped_helper_is_whole_by_itself() -> None:
    """Whatever of the library a helper names is copied along, and its imports can be written."""
    library = helper_copy.library()
    incomplete = {}
    for name in sorted(library):
        text, roots = helper_copy.inline([name])
        tree = ast.parse(text)
        used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        lost = (used & library.keys()) - helper_copy.bound([name]) - _locals(tree)
        lost |= {r for r in roots if not r.startswith("mindspore") and "." in r}
        if lost:
            incomplete[name] = lost
    assert not incomplete


def _locals(tree: ast.Module) -> set[str]:
    arguments = {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    stored = {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    return arguments | stored


def test_a_helper_and_an_import_of_one_name_stand_side_by_side() -> None:
    names = ("Normal", "kaiming_normal_")
    texts = (helper_copy.module_text(names), helper_copy.inline(names)[0])
    for text in texts:
        assert "import Normal as ms_Normal" in text
        assert "class Normal(Distribution):" in text
        assert "drawn(tensor, ms_Normal(" in text
    alone = helper_copy.module_text(["kaiming_normal_"])
    assert "ms_Normal" not in alone


def test_a_file_that_uses_the_name_itself_renames_the_helper_alone() -> None:
    text, _ = helper_copy.inline(("Normal", "kaiming_normal_"), {"Normal": "torch_Normal"})
    assert "import Normal as ms_Normal" in text
    assert "class torch_Normal(Distribution):" in text
    assert "drawn(tensor, ms_Normal(" in text
