# Parts of buffers are written in forward, behind checks, in methods, with pointers.
#: model Moco() <- A(2,3)
#: model Early() <- A(2,3)
#: model Raising() <- A(2,3)
#: model Memory() <- A(2,3), I(4,2)
#: model Ring() <- A(2,3)
#: model Kv() <- A(2,3)
#: model Helper() <- A(2,3)
#: model Filled() <- A(2,3)
#: model Aliased() <- A(2,3)
import torch
import torch.nn as nn
import torch.nn.functional as F


class Base(nn.Module):
    def __init__(self, size=4, dim=3):
        super().__init__()
        self.size = size
        self.fc = nn.Linear(3, dim)
        self.register_buffer("bank", torch.arange(1.0, 1 + dim * size).view(dim, size))
        self.register_buffer("at", torch.zeros(1, dtype=torch.long))


class Moco(Base):
    @torch.no_grad()
    def enqueue(self, keys):
        count = keys.shape[0]
        start = int(self.at)
        assert self.size % count == 0, "sizes"
        self.bank[:, start:start + count] = keys.t()
        start = (start + count) % self.size
        self.at[0] = start

    def forward(self, x):
        q = F.normalize(self.fc(x), dim=1)
        out = torch.einsum("nc,ck->nk", [q, self.bank.clone().detach()])
        self.enqueue(q)
        return out


class Early(Base):
    def note(self, keys):
        if not self.training:
            return
        self.bank[:, 0] = keys.detach().mean(0)

    def forward(self, x):
        q = self.fc(x)
        self.note(q)
        return q @ self.bank


class Raising(Base):
    def note(self, keys):
        if keys.shape[1] != 3:
            raise ValueError("width")
        with torch.no_grad():
            self.bank[0] += keys.mean()

    def forward(self, x):
        q = self.fc(x)
        out = q @ self.bank.clone()
        self.note(q)
        return out


class Memory(Base):
    def forward(self, x, i):
        q = self.fc(x)
        with torch.no_grad():
            self.bank[:, i] = self.bank[:, i] * 0.5 + q.t() * 0.5
        return q @ self.bank


class Ring(Base):
    def forward(self, x):
        q = self.fc(x)
        with torch.no_grad():
            p = self.at.item()
            self.bank[:, p] = q[0]
            self.at[0] = (p + 1) % self.size
        return q @ self.bank.clone()


class Kv(Base):
    def update(self, k):
        assert k.dim() == 2
        n = k.shape[0]
        self.bank[:, 1:1 + n] = k.detach().t()
        return self.bank[:, :1 + n].clone()

    def forward(self, x):
        q = self.fc(x)
        return q @ self.update(q)


def put(bank, keys):
    assert keys.shape[0] < 5
    bank[:, 0] = keys.detach()[0]


class Helper(Base):
    def forward(self, x):
        q = self.fc(x)
        put(self.bank, q)
        return q @ self.bank.clone()


class Filled(Base):
    def note(self, q):
        assert q.dim() == 2
        self.bank[0].fill_(2.0)
        self.bank[:, 1].mul_(3.0)

    def forward(self, x):
        q = self.fc(x)
        self.note(q)
        return q @ self.bank.clone()


class Aliased(Base):
    def note(self, q):
        assert q.dim() == 2
        bank = self.bank
        bank[:, 0] = q.detach()[0]

    def forward(self, x):
        q = self.fc(x)
        self.note(q)
        return q @ self.bank.clone()
