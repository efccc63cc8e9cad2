"""In: a package with Jinja templates. Out: those that make Python are converted as Python is."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.workspace.jinja import read_template
from migrate.workspace.project import Request, convert

TEMPLATE = """\
import torch
from torch import Tensor
{% for module in modules %}
from {{module}} import *
{%- endfor %}

def run(self, x: Tensor, {{name}}: {{kind}}) -> {{kind}}:
    if x is None:
{%- if strict and
        name %}
        raise ValueError("{{name}}")
{%- endif %}
        x = torch.zeros(1)
    out = torch.cat([x, {{name}}], dim=1)
{%- if fuse %}
    if not torch.jit.is_scripting():
        out = self.message(out, '{{name}}')
{%- endif %}
    return out
"""
CONVERTED = """\
import mindspore as ms
from mindspore import Tensor, ops
{% for module in modules %}
from {{module}} import *
{%- endfor %}

def run(self, x: Tensor, {{name}}: {{kind}}) -> {{kind}}:
    if x is None:
{%- if strict and
        name %}
        raise ValueError("{{name}}")
{%- endif %}
        x = ops.zeros(1)
    out = ops.cat([x, {{name}}], axis=1)
{%- if fuse %}
    out = self.message(out, '{{name}}')
{%- endif %}
    return out
"""
PROSE = "import torch {{and}} be glad\n"


def test_a_template_of_python_is_converted_and_any_other_file_is_copied(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "net.py").write_text("x = 1\n")
    (source / "run.jinja").write_text(TEMPLATE)
    (source / "page.j2").write_text("{{torch}}\n")
    (source / "prose.jinja").write_text(PROSE)
    made = convert(Request(source, tmp_path / "out"))
    texts = {o.path: o.content.decode() if o.content else "" for o in made.outputs}
    assert texts["run.jinja"] == CONVERTED


def test_what_is_no_python_with_torch_is_no_template() -> None:
    assert read_template("page.j2", b"{{torch}}\n") is None
    assert read_template("prose.jinja", PROSE.encode()) is None


@pytest.mark.parametrize("line", ["loss.backward()", "out.add_(x)", "out += x", "out[0] = x"])
def test_what_rests_on_the_order_of_statements_is_not_moved_round_blocks(line: str) -> None:
    text = TEMPLATE.replace("    return out\n", f"{{% if fuse %}}\n    {line}\n{{% endif %}}\n")
    assert read_template("run.jinja", TEMPLATE.encode()) is not None
    assert read_template("run.jinja", text.encode()) is None


def test_what_is_hidden_comes_back() -> None:
    taken = read_template("run.jinja", TEMPLATE.encode())
    assert taken is not None and "{" not in taken.text
