"""Write names whose kind depends on the path: a Tensor here, a list, array, number or text there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from writer import Misfit, templates

if TYPE_CHECKING:
    from statements import Body, Lines

# {a} {b} {c}: values of any kind; {z}: the name; {k} an int at hand; {u} fresh names end in 9
SKELETONS = [
    "{z} = {a}\nif {g}:\n    {z} = {b}",
    "if {g}:\n    {z} = {a}\nelse:\n    {z} = {b}",
    "{z} = {a}\nfor i9 in range(3):\n    if i9 == {k}:\n        {z} = {b}\n        break",
    "{z} = {a}\nfor i9 in range(3):\n    if i9 < {k}:\n        continue\n    {z} = {b}",
    "{z} = {a}\nwhile True:\n    if {g}:\n        {z} = {b}\n        break\n    {z} = {c}\n    break",
    "n9 = 0\n{z} = {a}\nwhile n9 < 2:\n    n9 += 1\n    if n9 > {k}:\n        {z} = {b}",
    "{z} = {a}\nwhile True:\n    try:\n        {z} = {b}\n        if {g}:\n            break\n        raise ValueError\n    except ValueError:\n        break",
    "try:\n    {z} = {a}\n    if {g}:\n        raise ValueError\n    {z} = {b}\nexcept ValueError:\n    pass",
    "{z} = {a}\ntry:\n    int('a')\n    {z} = {b}\nexcept ValueError:\n    {z} = {c}",
    "try:\n    {z} = {a}\nfinally:\n    {z} = {b}",
    "{z} = {a}\ntry:\n    [][0]\nexcept (KeyError, IndexError):\n    {z} = {b}\nelse:\n    {z} = {c}",
    "l9 = {a}\n{z} = l9\nfor i9 in range(2):\n    {z} = l9\n    l9 = {b}",
    "l9 = {a}\nm9 = l9\n{z} = m9\nfor i9 in range(3):\n    {z} = m9\n    m9 = l9\n    l9 = {b}",
    "{z} = {a}\ndef set9():\n    nonlocal {z}\n    {z} = {b}\nset9()",
    "{z} = {a}\ndef set9(v9):\n    nonlocal {z}\n    {z} = v9\nset9({b})",
    "{z} = {a}\ndef set9():\n    def deep9():\n        nonlocal {z}\n        {z} = {b}\n    deep9()\nif {g}:\n    set9()",
    "def give9():\n    if {g}:\n        return {a}\n    return {b}\n{z} = give9()",
    "def give9(v9=None):\n    v9 = v9 if v9 is not None else {a}\n    return v9\n{z} = give9()\n{z} = give9({b})",
    "def give9(v9):\n    return v9\ny9 = give9({a})\n{z} = give9({b})",
    "def give9(*v9, **w9):\n    return w9.get('k', v9[0])\n{z} = give9({a}, k={b})",
    "def give9(n9, v9):\n    return v9 if n9 == 0 else give9(n9 - 1, {b})\n{z} = give9(1, {a})",
    "def give9():\n    try:\n        return {a}\n    finally:\n        if {g}:\n            return {b}\n{z} = give9()",
    "def give9():\n    for i9 in range(3):\n        if i9 > {k}:\n            return {a}\n    else:\n        return {b}\n{z} = give9()",
    "def gen9():\n    yield {a}\n    yield {b}\nfor {z} in gen9():\n    pass",
    "def gen9():\n    yield from [{a}, {b}]\n*_, {z} = gen9()",
    "box9 = [{a}]\nbox9[0] = {b}\n{z} = box9[0]",
    "box9 = [{a}]\nother9 = box9\nother9[0] = {b}\n{z} = box9[0]",
    "box9 = [{a}]\nbox9.append({b})\n{z} = box9.pop()",
    "box9 = [{a}]\nbox9.insert(0, {b})\n{z} = box9[0]",
    "box9 = [{a}, {b}]\nbox9.reverse()\n{z} = box9[0]",
    "box9 = {{'k': {a}}}\nbox9['k'] = {b}\n{z} = box9['k']",
    "box9 = {{'k': {a}}}\nbox9.update(k={b})\n{z} = box9['k']",
    "box9 = {{'k': {a}}}\nbox9.update({{'k': {b}}})\n{z} = box9.get('k')",
    "box9 = {{}}\n{z} = box9.setdefault('k', {a})\n{z} = box9.setdefault('j', {b})",
    "box9 = dict(k={a}, j={b})\n{z} = box9['j' if {g} else 'k']",
    "box9 = dict(k={a})\nbox9 |= dict(k={b})\n{z} = box9['k']",
    "{z} = ({a}, {b})[int(bool({g}))]",
    "{z} = [{a}, {b}][-1]",
    "{z} = {a} if {g} else {b}",
    "{z} = None or {b}",
    "{z} = {k} and {b}",
    "if ({z} := {a}) is not None and {g}:\n    {z} = {b}",
    "for {z} in ({a}, {b}):\n    pass",
    "for {z} in [{a}, {b}]:\n    if {g}:\n        break",
    "for i9, {z} in enumerate([{a}, {b}]):\n    if i9 == {k}:\n        break",
    "for {z}, i9 in zip(({a}, {b}), range(2)):\n    pass",
    "{z}, y9 = {a}, {b}\n{z}, y9 = y9, {z}",
    "{z}, *y9 = {a}, {b}\n({z},) = y9",
    "*y9, {z} = [{a}, {b}]",
    "{z} = {a}\nfor i9 in [0, 1]:\n    {z}, y9 = {b}, {z}",
    "{z} = 0\nfor i9 in range(2):\n    {z} = {z} + {b}",
    "{z} = {k}\n{z} += {b}",
    "{z} = []\nfor i9 in range(2):\n    {z} += [{b}]",
    "{z} = {a}\nfor i9 in range(2):\n    {z} = [{z}]",
    "{z} = {a}\nwith contextlib.suppress(ValueError):\n    {z} = {b}\n    int('a')\n    {z} = {c}",
    "with contextlib.nullcontext({a}) as {z}:\n    pass",
    "{z} = {a}\nmatch {k}:\n    case 0:\n        {z} = {b}\n    case 1 | 2:\n        pass\n    case _:\n        {z} = {c}",
    "match [{a}, {b}]:\n    case [_, {z}]:\n        pass",
    "match {{'k': {a}}}:\n    case {{'k': {z}}}:\n        pass",
    "{z} = {a}\ndel {z}\n{z} = {b}",
    "{z} = (lambda v9: v9)({a})\n{z} = (lambda v9: v9)({b})",
    "f9 = lambda: {a}\nif {g}:\n    f9 = lambda: {b}\n{z} = f9()",
    "y9 = {b}\nf9 = lambda: y9\n{z} = f9()\ny9 = {a}\n{z} = f9()",
    "f9 = [lambda: {a}, lambda: {b}]\n{z} = f9[1]()",
    "{z} = functools.reduce(lambda u9, v9: v9, [{a}, {b}])",
    "{z} = functools.partial(lambda u9, v9: v9, {a})({b})",
    "{z} = next(iter([{b}, {a}]))",
    "{z} = [v9 for v9 in [{a}, {b}]][1]",
    "{z} = {{v9: w9 for v9, w9 in zip('ab', [{a}, {b}])}}['b']",
    "{z} = list(map(lambda v9: v9, [{a}, {b}]))[1]",
    "{z} = sorted([(1, {b}), (0, {a})], key=lambda v9: v9[0])[0][1]",
    "{z} = list(reversed([{a}, {b}]))[0]",
    "{z} = max([({k}, {a})], key=lambda v9: v9[0])[1]",
    "o9 = types9({a})\no9.v = {b}\n{z} = o9.v",
    "o9 = types9({a})\nsetattr(o9, 'v', {b})\n{z} = o9.v",
    "o9 = types9({a})\no9.__dict__['v'] = {b}\n{z} = o9.v",
    "o9 = types9({a})\nvars(o9).update(v={b})\n{z} = o9.v",
    "o9 = types9({a})\n{z} = getattr(o9, 'v')\no9.put({b})\n{z} = o9.v",
    "o9 = types9({a})\np9 = o9\np9.v = {b}\n{z} = o9.v",
    "o9 = types9({a})\no9.put({b})\n{z} = o9.get()",
    "o9 = types9({a})\n{z} = o9.prop\no9.prop = {b}\n{z} = o9.prop",
    "o9 = types9({a})\no9[0] = {b}\n{z} = o9[0]",
    "with types9({a}) as {z}:\n    pass",
    "for {z} in types9({b}):\n    pass",
    "{z} = types9({a})()",
    "{z} = types9({a}) + {b}",
    "{z} = types9.fixed({b})",
    "{z} = types9({a}).later\n",
    "o9 = sub9({a})\n{z} = o9.get()",
    "o9 = sub9({a}) if {g} else types9({b})\n{z} = o9.get()",
    "o9 = types9({a})\nglobals()['G{tag}'] = {b}\n{z} = G{tag}",
    "put_g{tag}({b})\n{z} = G{tag}",
    "{z} = get_g{tag}()\nput_g{tag}({b})\n{z} = get_g{tag}()",
    "try:\n    raise RuntimeError({b})\nexcept RuntimeError as e9:\n    {z} = e9.args[0]",
    "r9 = rec{tag}({a}, {b})\n{z} = r9.second",
    "r9 = rec{tag}({a}, {b})._replace(first={b})\n{z} = r9.first",
    "r9 = data{tag}({a})\nr9.one = {b}\n{z} = r9.one",
    "r9 = dataclasses.replace(data{tag}({a}), one={b})\n{z} = r9.one",
    "d9 = collections.defaultdict(lambda: {a})\n{z} = d9['k']\nd9['k'] = {b}\n{z} = d9['k']",
    "q9 = collections.deque([{a}], maxlen=1)\nq9.append({b})\n{z} = q9[0]",
    "{z} = {a}\ni9 = 0\nwhile i9 < 3:\n    i9 += 1\n    if i9 == 1:\n        continue\n    if i9 == 2:\n        {z} = {b}\n        continue\n    break\nelse:\n    {z} = {c}",
    "{z} = {a}\nfor i9 in range(2):\n    for j9 in range(2):\n        if j9 == {k}:\n            {z} = {b}\n            break\n    else:\n        continue\n    break",
    "def flip9(u9, v9):\n    if u9 is None:\n        return v9\n    return u9\n{z} = flip9(None, {b})",
    "def acc9(v9, into9=[]):\n    into9.append(v9)\n    return into9\nacc9({a})\n{z} = acc9({b})[0]",
    "{z} = {a}\nassert {z} is not None\n{z} = {b}",
    "x9 = y9 = {b}\n{z} = y9 if {g} else {a}",
    "{z} = [{a}]\n{z} = {z}[0]\nif {g}:\n    {z} = [{b}]\n    {z} = {z}[0]",
    "def pair9():\n    return {a}, {b}\n{z} = pair9()[1]",
    "def pair9(v9):\n    if v9:\n        return {a}, 1\n    return {b}, 2\n{z}, y9 = pair9({k})",
    "{z} = {a}\nif isinstance({z}, torch.Tensor):\n    {z} = {b}\nelif isinstance({z}, list):\n    {z} = {c}",
    "{z} = {a}\nif not isinstance({z}, torch.Tensor):\n    {z} = torch.as_tensor({z})",
    "{z} = {a}\nif type({z}) is not list:\n    {z} = {b}",
    "{z} = {a}\nif torch.is_tensor({z}) or {g}:\n    {z} = {b}",
    "{z} = {a}\n{z} = {b} if hasattr({z}, 'dim') else {z}",
    "{z} = {a}\nif {z} is None:\n    {z} = {b}",
    "{z} = {a}\ntry:\n    {z}.dim()\n    {z} = {b}\nexcept AttributeError:\n    {z} = {c}",
]  # fmt: skip

CLASSES = """class types9:
    fixed9 = 0

    def __init__(self, v):
        self.v = v

    @property
    def prop(self):
        return self.v

    @prop.setter
    def prop(self, v):
        self.v = v

    @property
    def later(self):
        return self.get()

    @staticmethod
    def fixed(v):
        return v

    def put(self, v):
        self.v = v

    def get(self):
        return self.v

    def __getitem__(self, i):
        return self.v

    def __setitem__(self, i, v):
        self.v = v

    def __enter__(self):
        return self.v

    def __exit__(self, *a):
        return False

    def __iter__(self):
        return iter([self.v])

    def __call__(self):
        return self.v

    def __add__(self, other):
        return other


class sub9(types9):
    def get(self):
        return [super().get()][0]
"""
GLOBALS = """{g} = 1


def put_{low}(v):
    global {g}
    {g} = v


def get_{low}():
    return {g}
"""


def confused(body: Body, depth: int) -> Lines:
    """A name of several kinds, and what is done with it."""
    w, draws = body.w, body.draws
    name = w.fresh("z")
    mixes = [["floats", "views"], ["others"], ["others", "floats"]]
    skeleton = draws.choice(SKELETONS)
    places: dict[str, str] = {"z": name, "tag": w.tag}
    order = draws.sample(mixes, 3)
    for place, blocks in zip("abc", order, strict=True):
        places[place] = w.expression(*blocks)[0]
    places["g"] = body.condition()
    text = w.filled(skeleton, **places)
    before = _definitions(text, w.tag)
    for old, new in (("types9", f"Box{w.tag}"), ("sub9", f"Sub{w.tag}")):
        text = text.replace(old, new)
    if before and not set(before) <= set(body.before) and not w.executed(before):
        raise Misfit
    if before and not set(before) <= set(body.before):
        body.before += ["", "", *before]
    lines = text.rstrip("\n").split("\n")
    if not w.executed(lines) or name not in w.values:
        raise Misfit
    w.bind(name)
    uses = 0
    for _ in range(60):
        template = draws.choice(templates()["uses"])
        result = w.fresh()
        try:
            use = w.filled(template, q=name)
            value = w.evaluated(use)
        except Exception:
            continue
        from writer import _is_usable

        if not _is_usable(value):
            continue
        w.values[result] = value
        guard = draws.random()
        if guard < 0.15:
            test = draws.choice([f"isinstance({name}, torch.Tensor)", f"torch.is_tensor({name})",
                                 f"isinstance({name}, (list, tuple))", f"hasattr({name}, 'dim')"])  # fmt: skip
            lines += [f"{result} = {use} if {test} else None"]
            if not w.executed(lines[-1:]):
                lines.pop()
                continue
        else:
            lines += [f"{result} = {use}"]
        w.bind(result)
        body.show(result)
        w.features.add(template)
        uses += 1
        if uses == 2 or draws.random() < 0.4:
            break
    if not uses:
        raise Misfit
    w.features.add(skeleton)
    return lines


def _definitions(text: str, tag: str) -> list[str]:
    """The classes and functions of the module that a skeleton needs."""
    lines: list[str] = []
    if "types9" in text or "sub9" in text:
        lines += CLASSES.replace("types9", f"Box{tag}").replace("sub9", f"Sub{tag}").split("\n")
    if f"G{tag}" in text or f"_g{tag}" in text:
        lines += GLOBALS.format(g=f"G{tag}", low=f"g{tag}").split("\n")
    if f"rec{tag}" in text:
        lines += [f"rec{tag} = collections.namedtuple('rec{tag}', 'first second')"]
    if f"data{tag}" in text:
        lines += [
            "@dataclasses.dataclass",
            f"class data{tag}:",
            "    one: object",
            "    two: int = 1",
        ]
    return lines
