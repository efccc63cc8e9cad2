# A function of torch that is told out= writes into a tensor that others may hold.
#: call a_view(A(3,4), A(2,4))
#: call another_name(A(3,4), A(3,4))
#: call a_branch(A(3,4), A(3,4))
#: call a_loop(A(3,4))
#: call lent(A(3,4))
#: call kept(A(3,4))
#: call in_an_expression(A(3,4), A(3,4))
#: call an_input(A(3,4))
#: call of_another_dtype(A(3,4))
#: call of_another_shape(A(3,4))
#: call several(A(3,4))
#: call a_list(A(3,4))
#: call behind_an_exception(A(3,4))
#: call bound_anew(A(3,4), A(3,4))
#: call maybe(A(3,4), None)
#: call maybe(A(3,4), A(3,4))
#: call by_place(A(3,4))
#: call by_name(A(3,4))
import torch
import torch.nn.functional as F


def a_view(x, y):
    x = x.clone()
    part = x[1:]
    torch.add(y, 1, out=part)
    return x, part


def another_name(x, y):
    z = torch.zeros(3, 4)
    held = z
    flat = z.view(-1)
    torch.mul(x, y, out=z)
    return held, flat


def a_branch(x, y):
    z = torch.zeros(3, 4)
    held = z if float(x.sum()) > 1e9 else y.clone()
    torch.sub(x, y, out=held)
    return z, held


def a_loop(x):
    total = torch.zeros(4)
    seen = []
    for row in x:
        torch.add(total, row, out=total)
        seen.append(total)
    return torch.stack(seen), total


def write(x, z):
    torch.exp(x, out=z)


def lent(x):
    z = torch.zeros(3, 4)
    write(x, z)
    write(x + 1, z[0:3])
    return z


class Holder:
    def __init__(self):
        self.held = torch.zeros(3, 4)
        self.other = self.held

    def write(self, x):
        torch.sin(x, out=self.held)
        return self.other


def kept(x):
    return Holder().write(x)


def in_an_expression(x, y):
    z = torch.zeros(3, 4)
    return torch.cat([z, torch.add(x, y, out=z), z])


def an_input(x):
    x = x.clone()
    y = x.t()
    torch.abs(x, out=x)
    return y


def of_another_dtype(x):
    z = torch.zeros(3, 4, dtype=torch.float64)
    b = torch.zeros(3, 4)
    torch.cos(x, out=z)
    torch.gt(x, 0, out=b)
    return z, b


def of_another_shape(x):
    z = torch.empty(0)
    r = torch.sum(x, 1, out=z)
    return z, r


def several(x):
    v, i = torch.empty(0), torch.empty(0, dtype=torch.long)
    held = v
    r = torch.max(x, 1, out=(v, i))
    return held, r[0], i


def a_list(x):
    z = [torch.zeros(3, 4)]
    torch.neg(x, out=z[0])
    return z


def behind_an_exception(x):
    z = torch.zeros(3, 4)
    held = z
    try:
        torch.neg(x, out=z)
        raise KeyError
    except KeyError:
        return held


def bound_anew(x, y):
    z = torch.zeros(3, 4)
    z = torch.add(x, y, out=z)
    z = z + 1
    return z


def maybe(x, z):
    z = None if z is None else z.clone()
    held = z
    r = torch.mul(x, 2, out=z)
    return r, held


def by_place(x):
    z = torch.zeros(3, 4)
    r = F.normalize(x, 2.0, 1, 1e-12, z)
    return z, r


def by_name(x):
    x = x.clone()
    y = x.view(-1)
    torch.relu_(input=x)
    return x, y
