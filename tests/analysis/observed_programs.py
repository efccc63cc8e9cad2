"""Programs in which one container has several names, in several units."""

PROGRAMS = (
    """
def main(c):
    def inner():
        add = c.append
        add(torch.ones(1))
        id(c)
    inner()
    id(c)


main([])
""",
    """
class B:
    def __init__(self):
        self.items = []
        self.h = None
    def give(self):
        return self.items
    def keep(self, v):
        self.h = v

def main(b, a):
    b.items.append('s')
    c = b.items
    id(c)
    d = c[0]
    id(d)
    e = b.give()
    id(e)

main(B(), [1])
""",
    """
class B:
    def __init__(self):
        self.items = [1]
    def give(self):
        return self.items

def main(b, a):
    b.items.append('s')
    e = b.give()
    id(e)
    f = e[-1]
    id(f)

main(B(), [1])
""",
    """
class B:
    def __init__(self):
        self.items = [1]
    def give(self):
        return self.items

def fill(xs):
    xs.append('s')

def main(b, a):
    fill(b.items)
    e = b.give()
    id(e)
    f = e[-1]
    id(f)

main(B(), [1])
""",
    """
class B:
    def __init__(self):
        self.items = [1]
    def give(self):
        return self.items
    def look(self):
        x = self.items
        id(x)

def main(b, a):
    x = b.give()
    x.append('s')
    e = b.give()
    id(e)
    b.look()

main(B(), [1])
""",
    """
class B:
    def __init__(self, items):
        self.items = items
    def look(self):
        x = self.items
        id(x)

def main():
    xs = [1]
    b = B(xs)
    xs.append('s')
    b.look()
    id(b.items)

main()
""",
    """
G = [1]

def fill():
    G.append('s')

def look():
    x = G
    id(x)

def main():
    fill()
    look()
    y = G
    y.append(None)
    look()

main()
""",
    """
class B:
    H = [1]
    def look(self):
        x = self.H
        id(x)

def main():
    B.H.append('s')
    B().look()
    y = B().H
    y.append(None)
    B().look()

main()
""",
    """
def look(xs):
    id(xs)

def main():
    xs = [1]
    look(xs)
    xs.append('s')
    ys = xs
    f = lambda: ys.append(None)
    f()
    id(xs)
    look(xs)

main()
""",
    """
def gen(xs):
    for x in xs:
        yield x

def main():
    xs = [1]
    g = gen(xs)
    xs.append('s')
    for y in g:
        id(y)
    zs = (w for w in xs)
    xs.append(None)
    for y in zs:
        id(y)
    for p, q in zip(xs, xs):
        id(p)
    m = map(same, xs)
    xs.append([1])
    for y in m:
        id(y)

def same(x):
    id(x)
    return x

main()
""",
    """
class B:
    def __init__(self):
        self.d = {}
    def put(self, k, v):
        self.d[k] = v
    def look(self):
        x = self.d
        id(x)
        for y in x.values():
            id(y)

def main():
    b = B()
    b.put('k', 1)
    b.look()
    xs = [1]
    b.put('j', xs)
    xs.append('s')
    b.look()
    b.d['z'] = None
    b.look()

main()
""",
    """
def keep(box, v):
    box.h = v

class B:
    def __init__(self):
        self.h = [1]

def main():
    b = B()
    xs = [1]
    keep(b, xs)
    xs.append('s')
    y = b.h
    id(y)

main()
""",
    """
def both(a, b):
    a.append(b)
    return a

def main():
    xs = []
    ys = [1]
    zs = both(xs, ys)
    ys.append('s')
    id(zs)
    id(xs)
    w = zs[0]
    id(w)

main()
""",
    """
def main():
    xs = [[1], [2]]
    a, b = xs
    a.append('s')
    id(xs)
    id(b)
    for c in xs:
        c.append(None)
    id(xs)
    id(a)
    ys = list(xs)
    ys[0].append([1])
    id(xs)
    zs = [x for x in xs]
    zs[0].append({})
    id(xs)
    ws = xs + ys
    ws[0].append(1.5)
    id(a)
    vs = xs[:1]
    vs[0].append(True)
    id(a)
    us = sorted(xs, key=len)
    us[0].append(())
    id(a)
    d = dict(k=a)
    d['k'].append({1: 2})
    id(a)
    d.get('k').append(None)

main()
""",
    """
def f(a, b):
    a.append('s')
    c = b[0]
    id(b)
def main():
    xs = [1]
    f(xs, xs)
    f([2], [3])
main()
""",
    """
class B:
    def __init__(self):
        xs = [1]
        self.a = xs
        self.b = xs
    def fill(self):
        self.a.append('s')
    def look(self):
        x = self.b
        id(x)
def main():
    b = B()
    b.fill()
    b.look()
    y = b.b
    y.append(None)
    z = b.a
    id(z)
main()
""",
    """
def f(x, acc=[]):
    acc.append(x)
    id(acc)
    return acc
def main():
    f(1)
    f('s')
    y = f(None)
    y.append([])
    z = f(1)
    id(z)
main()
""",
    """
class B:
    def __init__(self):
        self.a = [1]
    def call(self):
        g(self, self.a)
def g(b, xs):
    xs.append('s')
    y = b.a
    id(y)
def main():
    B().call()
    b = B()
    g(b, b.a)
    id(b.a)
main()
""",
    """
class B:
    def __init__(self, xs):
        self.a = xs
    def look(self):
        x = self.a
        id(x)
        for y in self.a:
            id(y)
class C:
    def __init__(self):
        self.own = [1]
        self.b = B(self.own)
    def more(self):
        self.own.append('s')
def main():
    c = C()
    c.more()
    c.b.look()
main()
""",
    """
R = {}
def register(name):
    def inner(f):
        R[name] = f
        return f
    return inner
@register('a')
def one(x):
    return x
def look():
    for k, v in R.items():
        id(k)
    d = R.get('a')
    R['z'] = [1]
    e = R['z']
    id(e)
look()
look()
""",
    """
def outer():
    xs = [1]
    ys = xs
    def inner():
        ys.append('s')
        zs = ys
        zs.append(None)
    inner()
    id(xs)
    a = xs[0]
    id(a)
outer()
""",
    """
def fill(xs, n):
    if n:
        xs.append(n)
        fill(xs, None)
        fill(xs, 's') if callable(0) else 0
    return xs
def main():
    xs = []
    ys = fill(xs, 1)
    id(xs)
    id(ys)
    zs = [fill(xs, 1)]
    zs[0].append([])
    id(xs)
main()
""",
    """
class N:
    def __init__(self):
        self.kids = []
        self.v = None
    def add(self, n):
        self.kids.append(n)
        return self
def main():
    a = N()
    b = N()
    a.add(b).add(a)
    k = a.kids
    id(k)
    for x in k:
        id(x)
        x.kids.append(1)
    x = a.kids[0]
    id(x)
    a.v = a.kids
    a.v.append('s')
    y = b.kids
    id(y)
main()
""",
    """
def swap(d, e):
    d['x'] = e
    e['y'] = d
def main():
    d = {}
    e = {'k': 1}
    swap(d, e)
    e['z'] = None
    x = d['x']
    id(x)
    for v in x.values():
        id(v)
    t = (d, e)
    t[0]['n'] = 's'
    id(d)
    u = dict(d)
    u['x']['q'] = 1.5
    v = e['q']
    id(v)
    for v in e.values():
        id(v)
main()
""",
)

# bodies of `main(box, a, b, c)`, see `HEAD`; ";" ends a statement
BODIES = (
    "xs.extend([xs]); id(xs)",
    "xs.append(xs); id(xs); a = xs[0]; id(a); b = a[0]; id(b)",
    "d['k'] = d; id(d); a = d['k']; id(a)",
    "xs.append(d); d['k'] = xs; id(d); id(xs); a = xs[0]; id(a); b = a['k']; id(b)",
    "box.push(box.items); id(box); a = box.items; id(a); b = a[0]; id(b)",
    "put(xs, xs); id(xs); a = xs[0]; id(a)",
    "a = same(xs); xs.append(a); id(xs); b = a[0]; id(b)",
    "box.hold(xs); xs.append(box.items); a = box.give(); id(a); b = a[0]; id(b); id(xs)",
    "xs += [xs]; id(xs); xs.insert(0, [xs]); id(xs)",
    "box.h = box; a = box.h; id(a)",
    "xs[:] = [xs]; id(xs)",
    "xs = xs or d; d.setdefault('k', d); id(xs); id(d)",
    "box.items = [box.items]; box.items = [box.items]; a=box.items; id(a)",
    "for i in range(9): a=[a]; id(a); b=a[0]; id(b)",
    "def inner():\n        xs.append(xs)\n    inner()\n    id(xs)\n    a = xs[0]\n    id(a)",
    "d.update(k=d); id(d)",
    "put(box.items, box.items); a = box.items; id(a); b = a[0]; id(b)",
    "put(xs, a); a.append('s'); b = xs[0]; id(b)",
    "put(xs, a); xs[0].append('s'); id(a)",
    "box.push(a); a.append('s'); b = box.items; id(b); c = b[0]; id(c)",
    "box.push(a); b = box.items[0]; b.append('s'); id(a)",
    "box.push(a); b = box.give()[0]; b.append('s'); id(a)",
    "box.hold(a); a.append('s'); b = box.items; id(b); c = box.give(); id(c)",
    "box.keep(a); a.append('s'); b = box.h; id(b)",
    "box.hold(xs); put(xs, a); a.append('s'); b = box.give(); id(b); c = b[0]; id(c)",
    "xs = [a]; b = same(xs); b[0].append('s'); id(a)",
    "xs = same([a]); a.append('s'); b = xs[0]; id(b)",
    "d['k'] = a; box.h = d; a.append('s'); b = box.h['k']; id(b)",
    "box.push(xs); box.push(a); put(xs, a); a.append('s'); b = box.items[0]; id(b)",
    "b = [xs]; put(b[0], a); a.append('s'); id(xs); c = xs[0]; id(c)",
)
