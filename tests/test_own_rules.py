"""Rules of users: as an installed package, as a file of a project, and when they are wrong."""

from __future__ import annotations

import re
import sys
from functools import cache
from importlib.metadata import DistributionFinder
from pathlib import Path

import pytest

from migrate.mapping import table
from migrate.records.outcomes import Problem
from migrate.rules import own_rules
from migrate.workspace.project import ConvertedText, convert_text

DOCS = Path(__file__).parents[1] / "docs"
NET = """\
import company
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        y = company.gate(torch.relu(x) + 1).sum()
        return company.gate(y, low)
"""


def documented() -> str:
    """The plug-in of docs/contributing.md."""
    text = (DOCS / "contributing.md").read_text(encoding="utf-8")
    return next(c for c in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "(Rule)" in c)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages, with one that brings the documented rule."""
    package = tmp_path / "site" / "company_torch2ms"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "gate_rule.py").write_text(documented())
    info = package.parent / "company_torch2ms-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: company-torch2ms\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[torch2mindspore.rules]\ncompany = company_torch2ms.gate_rule\n"
    )
    monkeypatch.syspath_prepend(str(package.parent))
    for name in [n for n in sys.modules if n.startswith("company_torch2ms")]:
        monkeypatch.delitem(sys.modules, name)
    for finder in sys.meta_path:
        if isinstance(finder, DistributionFinder) or hasattr(finder, "invalidate_caches"):
            finder.invalidate_caches()
    (tmp_path / "net.py").write_text(NET)
    return tmp_path


def test_the_documented_rule_is_short() -> None:
    code = documented().partition("class Gate")[2].splitlines()
    assert len(code) <= 20
    assert max(map(len, documented().splitlines())) <= 100


def test_an_installed_package_brings_a_rule(installed: Path, run) -> None:
    done = run("convert", installed / "net.py", "-o", installed / "out.py")
    text = (installed / "out.py").read_text()
    assert "y = ops.clip(ops.relu(x) + 1, 0.0).sum()" in text
    assert "import company" not in text
    assert "# TODO(torch2ms OWN101): company.gate: the bound is not known to be a number" in text
    assert "raise NotImplementedError('torch2ms OWN101 company.gate')" in text
    assert done.code == 1 and "company.gate" in done.out
    assert run("scan", installed / "net.py").code == 1


def test_its_examples_are_run(installed: Path, run) -> None:
    done = run("rules", "--check")
    assert done.code == 0 and "1 rules of yours, 0 problems" in done.err
    path = installed / "site" / "company_torch2ms" / "gate_rule.py"
    path.write_text(documented().replace("ops.clip(x + y, 0.0)", "ops.clip(x, 0.0)"))
    sys.modules.pop("company_torch2ms.gate_rule")
    done = run("rules", "--check")
    assert done.code == 1 and "gate_rule.Gate: 'import company" in done.out
    assert "gate_rule.Gate" in run("rules", "Gate").out


def test_a_rule_of_a_project(tmp_path: Path, run, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gate_rule.py").write_text(documented())
    (tmp_path / "pyproject.toml").write_text('[tool.torch2ms]\nrules = ["gate_rule.py"]\n')
    (tmp_path / "net.py").write_text(NET)
    run("convert", tmp_path / "net.py", "-o", tmp_path / "out.py")
    assert "ops.clip(ops.relu(x) + 1, 0.0)" in (tmp_path / "out.py").read_text()
    (tmp_path / "pyproject.toml").write_text('[tool.torch2ms]\nrules = ["gate_rule"]\n')
    run("convert", tmp_path / "net.py", "-o", tmp_path / "out.py", "--force")
    assert "ops.clip(ops.relu(x) + 1, 0.0)" in (tmp_path / "out.py").read_text()
    (tmp_path / "pyproject.toml").write_text('[tool.torch2ms]\nrules = ["gone.py"]\n')
    done = run("convert", tmp_path / "net.py", "-o", tmp_path / "out.py")
    assert done.code == 2 and "no module gone.py" in done.err


def test_the_command_names_the_rule_of_a_line(tmp_path: Path, run) -> None:
    (tmp_path / "v.py").write_text(
        "import torch\n\ndef f(x: torch.Tensor):\n    return x.view(-1)\n"
    )
    done = run("rules", f"{tmp_path / 'v.py'}:4")
    assert "torch.Tensor.view: kept by the row torch.Tensor.view of torch.Tensor.toml" in done.out
    assert re.search(r"members\.decide  migrate/rules/members\.py:\d+", done.out)
    assert run("rules", f"{tmp_path / 'v.py'}:2").code == 1


# -- one rule at a time -------------------------------------------------------------------------


@cache
def rows() -> table.Table:
    return table.load()


HEAD = """
import libcst as cst
from migrate import Rule

class Own(Rule):
    "Own rule."
"""


def converted(tmp_path: Path, body: str, code: str) -> ConvertedText:
    """Convert statements of a function by a rule with this body."""
    path = tmp_path / "own.py"
    path.write_text(HEAD + "".join(f"    {line}\n" for line in body.strip().splitlines()))
    rules, covering = own_rules.loaded((path,), rows())
    lines = "".join(f"    {line}\n" for line in code.strip().splitlines())
    text = f"import torch\n\ndef f(x: torch.Tensor, y: torch.Tensor, n):\n{lines}"
    return convert_text(text, covering, rules=rules)


SQUARES = """
looks_for = (cst.BinaryOperation,)
def decide(self, node, facts):
    if not isinstance(node.operator, cst.Power) or facts.kinds(node.left) != {"Tensor"}:
        return None
    if getattr(node.right, "value", "") != "2":
        return facts.refuse("only squares are known")
    return facts.template("mindspore.ops.square({x})", x=node.left)
"""


@pytest.mark.parametrize(
    ("code", "made"),
    [
        ("return (x + y) ** 2 + torch.relu(x)", "return ops.square(x + y) + ops.relu(x)"),
        ("return torch.relu(x) ** 2", "return ops.square(ops.relu(x))"),
        ("return (x ** 2) ** 2", "return ops.square(ops.square(x))"),
        ("return (x, (y, x ** 2))", "return (x, (y, ops.square(x)))"),
        ("return n ** 2", "return n ** 2"),
        ("return x + 2", "return x + 2"),
        ("z = (\n    x  # é\n    * torch.sin(y)\n) ** 2", "z = ops.square(x  # é"),
    ],
)
def test_a_rule_for_a_class_of_nodes(tmp_path: Path, code: str, made: str) -> None:
    done = converted(tmp_path, SQUARES, code)
    assert made in done.text
    assert not [e for e in done.entries if e.code]
    assert "torch" not in done.text.replace("torch2ms", "")


def test_what_it_refuses_stops_and_is_counted(tmp_path: Path) -> None:
    done = converted(tmp_path, SQUARES, "z = x ** 3\nreturn torch.relu(y)")
    assert "raise NotImplementedError('torch2ms OWN101 x ** 3')" in done.text
    assert "return ops.relu(y)" in done.text
    assert [e.code for e in done.entries if e.code] == ["OWN101"]


CHUNK = """
looks_for = ("torch.chunk", "torch.Tensor.chunk")
{order}
def decide(self, node, facts):
    given = facts.arguments
    if not isinstance(given.get("chunks"), cst.Name):
        return None
    x = given.get("input") or node.func.value
    return facts.template("mindspore.ops.split({{x}}, {{n}})", x=x, n=given["chunks"])
"""
BEFORE = CHUNK.format(order='before = ("torch2ms",)')


def test_it_decides_before_ours_and_leaves_the_rest_to_them(tmp_path: Path) -> None:
    done = converted(tmp_path, BEFORE, "return torch.chunk(x, n), (x + y).chunk(n), x.chunk(3)")
    assert "return ops.split(x, n), ops.split(x + y, n), mint.chunk(x, 3)" in done.text


def test_without_an_order_nothing_starts(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"own\.Own and .* claim the same places"):
        converted(tmp_path, CHUNK.format(order=""), "return x")


def test_what_ours_flag_may_be_converted_behind_them(tmp_path: Path) -> None:
    body = """
looks_for = ("torch.Tensor.data_ptr",)
after = ("torch2ms",)
def decide(self, node, facts):
    return "id(x)"
"""
    assert "return id(x)" in converted(tmp_path, body, "return x.data_ptr()").text


RAISING = """
looks_for = ("torch.relu",)
before = ("torch2ms",)
def decide(self, node, facts):
    return {}["a fact"]
"""


@pytest.mark.parametrize(
    "body", [RAISING, SQUARES.replace('"value", ""', "0")], ids=["a name", "a class of nodes"]
)
def test_a_rule_that_raises_costs_its_place(tmp_path: Path, body: str) -> None:
    done = converted(tmp_path, body, "z = torch.relu(x) ** 2\nreturn torch.sin(y)")
    found = [e for e in done.entries if e.code]
    assert [e.code for e in found] == ["INT901"]
    assert "the rule own.Own raised " in found[0].reason and "(own.py:" in found[0].reason
    assert str(tmp_path / "own.py") in found[0].next_step
    assert "return ops.sin(y)" in done.text


PASSING = """
looks_for = ("torch.relu",)
before = ("torch2ms",)
def decide(self, node, facts):
    return facts.template("{text}", x=node.args[0].value)
"""


def test_a_module_of_the_program_may_be_named_as_ours(tmp_path: Path) -> None:
    body = PASSING.replace("{text}", "mindspore.ops.gelu({x})")
    code = "import helpers\nreturn torch.relu(helpers.scaled(x) + helpers.ONE)"
    done = converted(tmp_path, body, code)
    assert "return ops.gelu(helpers.scaled(x) + helpers.ONE)" in done.text
    assert not [e for e in done.entries if e.code]


def test_a_helper_that_is_none_costs_its_place(tmp_path: Path) -> None:
    body = PASSING.replace("{text}", "helpers.nowhere({x})")
    done = converted(tmp_path, body, "z = torch.relu(x)\nreturn torch.sin(y)")
    assert [e.code for e in done.entries if e.code] == ["INT901"]
    assert "return ops.sin(y)" in done.text


def test_two_edits_of_one_node_name_both_rules(tmp_path: Path) -> None:
    body = """
looks_for = (cst.Call,)
def decide(self, node, facts):
    return "mindspore.ops.abs(x)"
"""
    done = converted(tmp_path, body, "return torch.relu(x)")
    found = [e for e in done.entries if e.code == "INT901"]
    assert found and "own.Own" in found[0].reason and "references.decide" in found[0].reason


@pytest.mark.parametrize("made", ["torch.relu(x)", "nowhere(x)", "mindspore.ops.relu(x) +"])
def test_a_wrong_result_is_found(tmp_path: Path, made: str) -> None:
    body = f"""
looks_for = ("torch.sin",)
before = ("torch2ms",)
def decide(self, node, facts):
    return {made!r}
"""
    done = converted(tmp_path, body, "return torch.sin(x)")
    assert [e.code for e in done.entries if e.code] == ["INT901"]


def test_a_statement_goes(tmp_path: Path) -> None:
    body = """
looks_for = ("company.profile",)
before = ("torch2ms",)
def decide(self, node, facts):
    return "None"
"""
    done = converted(tmp_path, body, "import company\ncompany.profile()\nreturn torch.sin(x)")
    assert "def f(x: ms.Tensor, y: ms.Tensor, n):\n    return ops.sin(x)\n" in done.text


def test_a_copy_of_an_old_node_is_that_node(tmp_path: Path) -> None:
    body = """
looks_for = ("torch.relu",)
before = ("torch2ms",)
def decide(self, node, facts):
    return cst.Call(cst.parse_expression("mindspore.ops.abs"), [a.deep_clone() for a in node.args])
"""
    assert (
        "ops.abs(ops.sin(x))" in converted(tmp_path, body, "return torch.relu(torch.sin(x))").text
    )


def test_packages_of_the_user_are_imported(tmp_path: Path) -> None:
    body = """
looks_for = ("torch.relu",)
before = ("torch2ms",)
imports = ("company_ms",)
def decide(self, node, facts):
    return facts.template("company_ms.ops.act({x})", x=node.args[0].value)
"""
    done = converted(tmp_path, body, "return torch.relu(x)")
    assert "import company_ms\n" in done.text and "return company_ms.ops.act(x)" in done.text


def test_facts(tmp_path: Path) -> None:
    body = """
looks_for = ("torch.Tensor.add_",)
before = ("torch2ms",)
def decide(self, node, facts):
    x, given = node.func.value, node.args[0].value
    shown = [sorted(facts.kinds(x)), facts.resolved(node.func), facts.values(x),
             facts.missed_by(), facts.is_read_after("v"), facts.in_graph, facts.line,
             facts.resolved(given.func), list(facts.arguments)]
    return facts.refuse(repr(shown))
"""
    code = "w = x.clone()\nv = [w]\nw.add_(torch.sin(y))\nreturn v"
    done = converted(tmp_path, body, code)
    found = next(e for e in done.entries if e.code == "OWN101").reason
    shown = [["Tensor"], "torch.Tensor.add_", ("x.clone()",), "read later as v", True, False, 6]
    assert found == str([*shown, "torch.sin", ["other"]])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "no rule in it"),
        ("x =", "rules cannot be imported"),
        (HEAD, "looks for nothing"),
        (HEAD + "    looks_for = ('torch.chonk',)\n    before = ('torch2ms',)", "did you mean"),
        (HEAD + "    looks_for = (cst.For,)", "cannot look for For"),
        (HEAD + "    looks_for = ('torch.chunk',)\n    before = ('nothing',)", "no such rule"),
    ],
)
def test_a_file_that_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "own.py").write_text(text)
    with pytest.raises(Problem, match=said):
        own_rules.loaded((tmp_path / "own.py",), rows())
