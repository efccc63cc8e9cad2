from tools import scale


def add_one(t):
    t += 1
    return t


def first(t):
    t[0] = 5


def through(t):
    scale(t, 2)
    return t


def each(ts):
    for t in ts:
        t.mul_(2)


class Box:
    def zero(self, t):
        t[:, 0] = 0
