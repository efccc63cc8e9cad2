"""Write Modules with layers, buffers and state, and loops that train them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from cases import calls
from programs import Program
from statements import Body, Lines, indented
from torch_side import fill
from writer import Misfit, Writer

# layers by number of input dimensions: {c} is the size that they take (last, or channels)
FLAT = ["nn.Linear({c}, 4)", "nn.Linear({c}, 3, bias=False)", "nn.LayerNorm({c})", "nn.Identity()",
        "nn.Sequential(nn.Linear({c}, 5), nn.ReLU(), nn.Linear(5, 4))", "nn.Dropout(0.0)",
        "nn.Sequential(nn.Linear({c}, 4), nn.Tanh())", "nn.Softmax(dim=-1)", "nn.GELU()",
        "nn.ReLU(inplace=True)", "nn.LeakyReLU(0.1)", "nn.Flatten(0)", "nn.BatchNorm1d({c})"]  # fmt: skip
IMAGE = ["nn.Conv2d({c}, 3, 3, padding=1)", "nn.Conv2d({c}, 2, 1)", "nn.BatchNorm2d({c})", "nn.ReLU()",
         "nn.Conv2d({c}, 4, 3, stride=2, padding=1, bias=False)", "nn.MaxPool2d(2)", "nn.AvgPool2d(2)",
         "nn.AdaptiveAvgPool2d(2)", "nn.GroupNorm(1, {c})", "nn.Upsample(scale_factor=2)", "nn.SiLU()",
         "nn.Sequential(nn.Conv2d({c}, 4, 1), nn.BatchNorm2d(4), nn.ReLU())", "nn.Dropout2d(0.0)",
         "nn.InstanceNorm2d({c})", "nn.ConvTranspose2d({c}, 2, 2, stride=2)", "nn.Identity()"]  # fmt: skip
STATE = ["self.w{i} = nn.Parameter(torch.ones({c}))", "self.register_buffer('b{i}', torch.zeros({c}))",
         "self.register_buffer('b{i}', torch.arange({c}).float(), persistent=False)", "self.n{i} = 2",
         "self.w{i} = nn.Parameter(torch.zeros({c}, {c}))", "self.s{i} = 0.5", "self.l{i} = [1.0, 2.0]",
         "self.w{i} = nn.Parameter(torch.ones({c}), requires_grad=False)", "self.t{i} = (1, 2)",
         "self.c{i} = torch.ones({c}) * 0.5", "self.d{i} = {'a': 1.5}", "self.o{i} = None",
         "self.register_parameter('w{i}', nn.Parameter(torch.ones({c})))", "self.g{i} = True",
         "self.m{i} = nn.ModuleList([nn.Linear({c}, {c}) for _ in range(2)])",
         "self.m{i} = nn.ModuleDict({'a': nn.Linear({c}, {c})})", "self.f{i} = torch.sin",
         "self.f{i} = F.relu if self.g0 else F.gelu", "self.m{i} = nn.ParameterList([nn.Parameter(torch.ones({c}))])"]  # fmt: skip
# what a forward does with its state; {v} is the value that flows, {z} a name
USES = {
    "w": ["{v} = {v} * self.w{i}", "{v} = {v} + self.w{i}.sum()", "{v} = {v} @ self.w{i}",
          "{v} = F.linear({v}, self.w{i})", "{v} = {v} * self.w{i}.data", "{v} = {v} * self.w{i}.detach()",
          "{v} = {v} + self.w{i}.norm()", "{v} = {v} * (self.w{i} > 0).float()"],
    "b": ["{v} = {v} + self.b{i}", "self.b{i} += {v}.detach().flatten(0, -2).mean(0)", "self.b{i}.add_(1)",
          "self.b{i}.copy_({v}.detach().flatten(0, -2)[0])", "self.b{i}[0] = 2.0", "self.b{i}.mul_(0.9).add_(0.1)",
          "self.b{i} = self.b{i} + 1", "{v} = {v} * self.b{i}.mean()", "self.b{i}.data.fill_(0.5)",
          "self.b{i}.zero_()", "self.b{i} = {v}.detach().flatten(0, -2).mean(0)",
          "with torch.no_grad():\n    self.b{i}.lerp_({v}.flatten(0, -2).mean(0), 0.1)"],
    "n": ["self.n{i} += 1\n{v} = {v} * self.n{i}", "{v} = {v} * self.n{i}", "for q9 in range(self.n{i}):\n    {v} = {v} + 0.1"],
    "s": ["{v} = {v} * self.s{i}", "self.s{i} = 0.25\n{v} = {v} + self.s{i}"],
    "l": ["{v} = {v} + self.l{i}[0]", "{v} = {v} * sum(self.l{i})", "self.l{i}.append(1.0)\n{v} = {v} * len(self.l{i})",
          "for q9 in self.l{i}:\n    {v} = {v} + q9"],
    "t": ["{v} = {v}.sum(self.t{i}[0] - 1, keepdim=True) + {v}", "{z}, _ = self.t{i}\n{v} = {v} + {z}"],
    "c": ["{v} = {v} * self.c{i}", "{v} = {v} + self.c{i}.to({v}.device)", "self.c{i} = self.c{i} * 2\n{v} = {v} + self.c{i}"],
    "d": ["{v} = {v} * self.d{i}['a']", "{v} = {v} + self.d{i}.get('b', 1.0)", "{v} = {v} * len(self.d{i})"],
    "o": ["if self.o{i} is not None:\n    {v} = {v} + 1", "{v} = {v} if self.o{i} is None else -{v}",
          "{v} = self.o{i}({v}) if self.o{i} else {v}"],
    "g": ["if self.g{i}:\n    {v} = {v} * 2", "if self.g{i} and self.training:\n    {v} = {v} + 1"],
    "m": ["for q9 in self.m{i}:\n    {v} = q9({v})", "{v} = self.m{i}[0]({v})", "{v} = {v} + sum(q9({v}) for q9 in self.m{i})",
          "{v} = self.m{i}['a']({v})", "for i9, q9 in enumerate(self.m{i}):\n    {v} = q9({v}) * (i9 + 1)",
          "{v} = torch.stack([q9({v}) for q9 in self.m{i}]).sum(0)", "for q9 in self.m{i}.values():\n    {v} = q9({v})",
          "{v} = {v} * self.m{i}[0]"],
    "f": ["{v} = self.f{i}({v})"],
}  # fmt: skip
LOOSE = ["if self.training:\n    {v} = {v} * 2", "{v} = {v} if self.training else {v} * 3",
         "{v} = {v} + len(list(self.parameters()))", "{v} = {v} * sum(p9.numel() for p9 in self.parameters())",
         "{v} = {v} + self.help({v})", "{v} = self.act({v})", "{v}.add_(1.0)", "{v} += 1", "{v} = self.scaled * {v}",
         "{v} = {v} + next(self.parameters()).sum()", "{v} = {v} * len(list(self.children()))"]  # fmt: skip
METHODS = {
    "help": ["def help(self, a):\n    return a * 0.5", "def help(self, a):\n    return a.mean()",
             "def help(self, a, b=None):\n    if b is None:\n        b = a\n    return a + b",
             "@staticmethod\ndef help(a):\n    return a.abs()", "def help(self, a):\n    a = a * 1.0\n    a[0] = 0.0\n    return a"],
    "act": ["def act(self, a):\n    return F.relu(a)", "def act(self, a):\n    return torch.where(a > 0, a, a * 0.1)",
            "def act(self, a):\n    if a.dim() > 2:\n        return a.tanh()\n    return a.sigmoid()"],
    "scaled": ["@property\ndef scaled(self):\n    return 2.0", "@property\ndef scaled(self):\n    return self.k9 * 2"],
}  # fmt: skip
RUNS = ["return {net}(x)", "{net}.eval()\n    return {net}(x)", "{net}.train()\n    return {net}(x)",
        "with torch.no_grad():\n        return {net}(x)", "{net}.eval()\n    a = {net}(x)\n    {net}.train()\n    return a, {net}(x)",
        "{net}(x)\n    {net}(x)\n    return [b for b in {net}.buffers()]", "a = {net}(x)\n    {net}.eval()\n    return [a, {net}(x), {net}.training]",
        "{net}(x)\n    return {k: v for k, v in {net}.state_dict().items()}", "{net}.requires_grad_(False)\n    return {net}(x)",
        "return {net}.train(False)(x)", "before = [p.clone() for p in {net}.parameters()]\n    {net}(x)\n    return before, list({net}.parameters())",
        "return [p.shape for p in {net}.parameters()], {net}(x)", "for m in {net}.modules():\n        if isinstance(m, nn.Linear):\n            nn.init.constant_(m.weight, 0.1)\n    return {net}(x)",
        "return sum(p.numel() for p in {net}.parameters() if p.requires_grad), {net}(x)"]  # fmt: skip


class Cells:
    """Writes one Module class while an instance of it is built."""

    def __init__(self, draws: random.Random, number: int, graph: bool = False) -> None:
        self.draws, self.tag = draws, str(number)
        self.writer = Writer(draws, self.tag)
        self.init: Lines = []
        self.methods: dict[str, Lines] = {}
        self.made = 0
        self.self = torch.nn.Module()
        self.self.k9 = 1.5
        self.writer.values["self"] = self.self
        self.body = Body(self.writer)

    def built(self, line: str) -> bool:
        if not self.writer.executed([line]):
            return False
        fill(self.self)
        self.init.append(line)
        return True

    def flow(self, line: str) -> bool:
        """Execute lines of forward."""
        return self.writer.executed(line.split("\n"))

    def layer(self, lines: Lines) -> None:
        v = self.writer.values["v"]
        if v.dim() == 4:
            text, size = self.draws.choice(IMAGE), v.shape[1]
        elif v.dim() in (2, 3):
            text, size = self.draws.choice(FLAT), v.shape[-1]
        else:
            raise Misfit
        name = f"self.part{self.made}"
        self.made += 1
        if not self.built(f"{name} = " + text.replace("{c}", str(size))):
            raise Misfit
        forms = [
            "v = {n}(v)",
            "v = {n}(v)",
            "v = v + {n}(v)",
            "v = F.relu({n}(v))",
            "v = {n}.forward(v)",
        ]
        for _ in range(4):
            line = self.draws.choice(forms).replace("{n}", name)
            if self.flow(line):
                lines.append(line)
                return

    def state(self, lines: Lines) -> None:
        v = self.writer.values["v"]
        if not v.dim():
            raise Misfit
        text = self.draws.choice(STATE)
        i = self.made
        self.made += 1
        text = text.replace("{i}", str(i)).replace("{c}", str(v.shape[-1]))
        if not self.built(text.replace("self.g0", "True")):
            raise Misfit
        self.init[-1] = text.replace("self.g0", "True")
        at = text.index(f"{i}")
        letter = text[at - 1]
        for _ in range(6):
            use = self.draws.choice(USES[letter]).replace("{i}", str(i)).replace("{v}", "v")
            use = use.replace("{z}", f"z{i}")
            if self.flow(use):
                lines += use.split("\n")
                return

    def loose(self, lines: Lines) -> None:
        text = self.draws.choice(LOOSE).replace("{v}", "v")
        for name, forms in METHODS.items():
            if f"self.{name}" in text and name not in self.methods:
                form = self.draws.choice(forms).split("\n")
                scope = dict(self.writer.values)
                exec(
                    "class Z9(torch.nn.Module):\n    k9 = 1.5\n" + "\n".join(indented(form)), scope
                )
                setattr(type(self.self), name, scope["Z9"].__dict__[name])
                self.methods[name] = form
        if self.flow(text):
            lines += text.split("\n")

    def statements(self, lines: Lines) -> None:
        """Statements of functions, on the value that flows."""
        kept = list(self.writer.names)
        self.writer.names = ["v"]
        try:
            lines += self.body.block(self.draws.randint(1, 2), 1)
        finally:
            self.writer.names = list(dict.fromkeys([*kept, *self.writer.names]))


def model_text(
    draws: random.Random, number: int, x: np.ndarray, plain: bool = False
) -> tuple[str, Any, Any]:
    """(definition of a Module class, its writer, what its forward gives)."""
    saved = torch.nn.Module
    cells = Cells(draws, number)
    # methods that a draw adds belong to a class of its own
    own = type("Own", (torch.nn.Module,), {})
    cells.self.__class__ = own
    cells.writer.values["v"] = torch.from_numpy(x.copy())
    cells.writer.values["flag"] = False
    lines: Lines = []
    forms = [
        (Cells.layer, 5),
        (Cells.state, 4),
        (Cells.loose, 3),
        (Cells.statements, 0 if plain else 3),
    ]
    for _ in range(draws.randint(2, 5)):
        form = draws.choices([f for f, _ in forms], [n for _, n in forms])[0]
        try:
            form(cells, lines)
        except Misfit:
            continue
    if not lines or not isinstance(cells.writer.values.get("v"), torch.Tensor):
        raise Misfit
    assert saved is torch.nn.Module
    value = cells.writer.values["v"]
    extra = [n for n in cells.writer.names if n != "v" and _shown(cells.writer, n)][-2:]
    result = "v"
    if extra and draws.random() < 0.5:
        result = "v, " + ", ".join(extra)
    tag = str(number)
    head = f"class Net{tag}(nn.Module):"
    default = draws.choice(["def forward(self, v):", "def forward(self, v, flag=False):"])
    if any("flag" in line for line in lines):
        default = "def forward(self, v, flag=False):"
    text = [
        head,
        "    def __init__(self):",
        "        super().__init__()",
        "        self.k9 = 1.5",
        *indented(cells.init, 2),
    ]
    for form in cells.methods.values():
        text += ["", *indented(form)]
    text += ["", "    " + default, *indented(lines, 2), f"        return {result}"]
    if draws.random() < 0.25 and not plain:
        text = _derived(draws, tag, text)
    before = "\n".join(cells.body.before).strip("\n")
    return (before + "\n\n\n" if before else "") + "\n".join(text) + "\n", cells, value


def _shown(writer: Writer, name: str) -> bool:
    from writer import _is_usable

    return name in writer.values and _is_usable(writer.values[name])


def _derived(draws: random.Random, tag: str, text: Lines) -> Lines:
    """The class split into a base and a class derived from it."""
    base = [text[0].replace(f"Net{tag}", f"Base{tag}"), *text[1:]]
    more = [
        ["    def forward(self, v):", "        return super().forward(v)"],
        [
            "    def forward(self, v, **k):",
            "        a = super().forward(v * 0.5, **k)",
            "        return a",
        ],
        ["    pass"],
        ["    def __init__(self):", "        super().__init__()", "        self.k9 = 2.5"],
        ["    def help(self, a):", "        return a * 0.25"],
        ["    def act(self, a):", "        return torch.sin(a)", "", "    scaled = 3.0"],
    ]
    return [*base, "", "", f"class Net{tag}(Base{tag}):", *draws.choice(more)]


def model_program(draws: random.Random, number: int) -> Program:
    """A Module, what builds it, and for some a function that runs it."""
    x = _input(draws)
    if draws.random() < 0.35:
        return _layer_program(draws, number)
    text, cells, _ = model_text(draws, number, x)
    tag = str(number)
    text += f"\n\ndef make{tag}():\n    net = Net{tag}()\n    fill(net)\n    return net\n"
    features = frozenset(cells.writer.features | set(cells.init))
    if draws.random() < 0.3:
        run = draws.choice(RUNS).replace("{net}", "net")
        text += f"\n\ndef run{tag}(x):\n    net = make{tag}()\n    {run}\n"
        return Program(f"p{tag}", "call", text, f"run{tag}", ((x,),), features=features)
    return Program(f"p{tag}", "model", text, f"make{tag}", ((x,),), features=features)


def _layer_program(draws: random.Random, number: int) -> Program:
    """A layer of the table in a Module."""
    call = draws.choice(calls()[1])
    arrays = call.arrays()
    if sum(a.size for a in arrays) > 3000:
        raise Misfit
    import re

    names = [f"x{i}" for i in range(len(arrays))]
    run = re.sub(r"\bm\b", "self.part", call.forward)
    text = call.text.replace("torch.nn.", "nn.")
    tag = str(number)
    lines = [f"class Net{tag}(nn.Module):", "    def __init__(self):", "        super().__init__()",
             f"        self.part = {text}", "", f"    def forward(self, {', '.join(names)}):", f"        a = {run}"]  # fmt: skip
    after = ["        return a", "        return a * 2 if torch.is_tensor(a) else a", "        return [a, x0]",
             "        b = a[0]\n        return a, b", "        if torch.is_tensor(a):\n            a = a.detach()\n        return a",
             "        a += 1\n        return a", "        b = a\n        b *= 2\n        return a, b"]  # fmt: skip
    lines += [draws.choice(after)]
    lines += ["", "", f"def make{tag}():", f"    net = Net{tag}()", "    fill(net)"]
    if draws.random() < 0.3:
        lines += ["    net.eval()"]
    lines += ["    return net", ""]
    return Program(f"p{tag}", "model", "\n".join(lines), f"make{tag}", (tuple(arrays),),
                   features=frozenset({f"row {call.key}"}))  # fmt: skip


def _input(draws: random.Random) -> np.ndarray:
    from generate import array

    return array(draws, draws.choice([(2, 3), (4, 4), (2, 3, 4), (2, 2, 4, 4), (2, 3, 6, 6)]))


# -- training ------------------------------------------------------------------------------------

OPTIMIZERS = ["torch.optim.SGD({p}, lr=0.05)", "torch.optim.SGD({p}, lr=0.05, momentum=0.9)", "torch.optim.Adam({p}, lr=0.01)",
              "torch.optim.AdamW({p}, lr=0.01, weight_decay=0.1)", "torch.optim.SGD({p}, 0.1, weight_decay=0.01)",
              "torch.optim.RMSprop({p}, lr=0.01)", "torch.optim.Adagrad({p}, lr=0.05)", "torch.optim.Adam({p}, lr=0.01, betas=(0.8, 0.9))",
              "torch.optim.SGD({p}, lr=0.05, momentum=0.9, nesterov=True)"]  # fmt: skip
PARAMETERS = ["net.parameters()", "net.parameters()", "net.parameters()", "list(net.parameters())",
              "[p for p in net.parameters() if p.requires_grad]", "[{'params': net.parameters(), 'lr': 0.02}]",
              "filter(lambda p: p.requires_grad, net.parameters())", "[p for n, p in net.named_parameters()]"]  # fmt: skip
LOSSES = ["F.mse_loss(out, y)", "nn.MSELoss()(out, y)", "((out - y) ** 2).mean()", "F.l1_loss(out, y)", "F.smooth_l1_loss(out, y)",
          "(out - y).pow(2).sum() / y.numel()", "nn.functional.mse_loss(out, y, reduction='sum') * 0.1", "criterion(out, y)"]  # fmt: skip
STEPS = [
    ["opt.zero_grad()", "out = net(x)", "loss = {loss}", "loss.backward()", "{clip}", "opt.step()", "{more}"],
    ["out = net(x)", "loss = {loss}", "opt.zero_grad()", "loss.backward()", "{clip}", "opt.step()", "{more}"],
    ["out = net(x)", "loss = {loss}", "opt.zero_grad(set_to_none=True)", "loss.backward()", "opt.step()", "{more}"],
    ["net.zero_grad()", "out = net(x)", "loss = {loss}", "loss.backward()", "opt.step()", "{more}"],
    ["out = net(x)", "loss = {loss}", "(loss / 2).backward()", "if (step + 1) % 2 == 0:", "    opt.step()", "    opt.zero_grad()", "{more}"],
    ["out = net(x)", "loss = {loss} + 0.01 * sum(p.pow(2).sum() for p in net.parameters())", "opt.zero_grad()", "loss.backward()", "opt.step()", "{more}"],
    ["opt.zero_grad()", "loss = 0", "for part, goal in ((x, y), (x * 2, y)):", "    out = net(part)", "    loss = loss + F.mse_loss(out, goal)", "loss.backward()", "opt.step()", "{more}"],
    ["opt.zero_grad()", "out = net(x)", "loss = {loss}", "if step == 1:", "    continue", "loss.backward()", "opt.step()", "{more}"],
    ["opt.zero_grad()", "out = net(x)", "loss = {loss}", "loss.backward()", "for p in net.parameters():", "    p.grad.mul_(0.5)", "opt.step()", "{more}"],
    ["out = net(x)", "loss = {loss}", "grads = torch.autograd.grad(loss, list(net.parameters()))", "with torch.no_grad():", "    for p, g in zip(net.parameters(), grads):", "        p -= 0.05 * g"],
    ["out = net(x)", "loss = {loss}", "loss.backward()", "with torch.no_grad():", "    for p in net.parameters():", "        p.sub_(0.05 * p.grad)", "        p.grad = None"],
    ["def closure():", "    opt.zero_grad()", "    out = net(x)", "    loss = {loss}", "    loss.backward()", "    return loss", "loss = opt.step(closure)"],
    ["opt.zero_grad()", "out = net(x)", "loss = {loss}", "extra = out.abs().mean()", "(loss + extra).backward()", "opt.step()", "{more}"],
    ["opt.zero_grad()", "out = net(x)", "loss = {loss}", "loss.backward(retain_graph=True)", "out.mean().backward()", "opt.step()", "{more}"],
]  # fmt: skip
CLIPS = ["pass", "pass", "torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)", "torch.nn.utils.clip_grad_value_(net.parameters(), 0.1)",
         "norm = nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)\nhistory.append(norm.item())"]  # fmt: skip
MORE = ["pass", "pass", "sched.step()", "history.append(opt.param_groups[0]['lr'])", "net.eval()\nwith torch.no_grad():\n    history.append(net(x).mean().item())\nnet.train()",
        "for g in opt.param_groups:\n    g['lr'] *= 0.5", "history.append(out.detach().mean().item())", "best = min(best, loss.item())",
        "if step == 0:\n    for p in list(net.parameters())[:1]:\n        p.requires_grad = False", "sched.step()\nhistory.append(sched.get_last_lr()[0])"]  # fmt: skip
SCHEDULES = ["torch.optim.lr_scheduler.StepLR(opt, 1, 0.5)", "torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)", "torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=4)",
             "torch.optim.lr_scheduler.LambdaLR(opt, lambda e: 1 / (e + 1))", "torch.optim.lr_scheduler.MultiStepLR(opt, [1, 2], gamma=0.1)"]  # fmt: skip
OPENINGS = [
    "net.train()",
    "pass",
    "net.eval()",
    "for p in list(net.parameters())[:1]:\n    p.requires_grad_(False)",
    "net.train(True)",
]
ENDS = ["return history, [p.detach() for p in net.parameters()]", "return history, list(net.parameters())", "return history",
        "return history, [v for v in net.state_dict().values()]", "net.eval()\nreturn history, net(x).detach()", "with torch.no_grad():\n    return history, net(x)"]  # fmt: skip


def training_program(draws: random.Random, number: int) -> Program:
    """A function that builds a Module, trains it for a few steps, and returns what it saw."""
    x = _input(draws)
    text, _, value = model_text(draws, number, x, plain=True)
    if not value.dim() or not value.is_floating_point() or "Parameter" not in text + "nn.Parameter":
        raise Misfit
    from generate import array

    y, tag = array(draws, tuple(value.shape)), str(number)
    text += f"\n\ndef make{tag}():\n    net = Net{tag}()\n    fill(net)\n    return net\n"
    closures = [s for s in STEPS if "def closure():" in s]  # hardly any program has one
    step = draws.choice(
        closures if draws.random() < 0.02 else [s for s in STEPS if s not in closures]
    )
    clip, more = draws.choice(CLIPS), draws.choice(MORE)
    loss = draws.choice(LOSSES)
    body: Lines = []
    for line in step:
        pad = line[: len(line) - len(line.lstrip())]
        line = line.replace("{loss}", loss).replace("{clip}", clip).replace("{more}", more)
        body += [pad + one.removeprefix(pad) for one in line.split("\n") if one.strip() != "pass"]
    body += [
        draws.choice(
            [
                "history.append(loss.item())",
                "history.append(float(loss))",
                "history.append(loss.detach())",
            ]
        )
    ]
    whole = "\n".join(body)
    optimizer = draws.choice(OPTIMIZERS).replace("{p}", draws.choice(PARAMETERS))
    lines = [
        "history, best = [], 1e9",
        draws.choice([f"net = make{tag}()", f"net = Net{tag}()\nfill(net)"]),
    ]
    lines += [draws.choice(OPENINGS)]
    lines += [f"opt = {optimizer}"] if "opt." in whole or "sched" in whole else []
    lines += ["criterion = nn.MSELoss()"] if "criterion" in whole else []
    lines += [f"sched = {draws.choice(SCHEDULES)}"] if "sched" in whole else []
    lines += ["for step in range(3):", *indented(body)]
    lines += [draws.choice(ENDS)]
    flat = [one for line in lines for one in line.split("\n") if one.strip() != "pass"]
    text += f"\n\ndef train{tag}(x, y):\n" + "\n".join(indented(flat)) + "\n"
    return Program(f"p{tag}", "train", text, f"train{tag}", ((x, y),),
                   features=frozenset({*body, optimizer}))  # fmt: skip
