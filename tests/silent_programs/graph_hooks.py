# Hooks beside forward called by its name, and hooks that go before those registered earlier.
#: model ByName() <- A(2,4)
#: model Inner() <- A(2,4)
#: model Before() <- A(2,4)
#: model Several() <- A(2,4)
#: model Removed() <- A(2,4)
import torch.nn as nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def times(self, module, inputs, output):
        return output * 3

    def plus(self, module, inputs, output):
        return output + 1


class ByName(Base):
    def __init__(self):
        super().__init__()
        self.fc.register_forward_hook(self.times)

    def forward(self, x):
        return self.fc(x) + self.fc.forward(x)


class Own(Base):
    def __init__(self):
        super().__init__()
        self.register_forward_hook(self.times)

    def forward(self, x):
        return self.fc(x)


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Own()

    def forward(self, x):
        return self.inner(x) + self.inner.forward(x)


class Before(Base):
    def __init__(self):
        super().__init__()
        self.fc.register_forward_hook(self.times)
        self.fc.register_forward_hook(self.plus, prepend=True)

    def forward(self, x):
        return self.fc(x)


class Several(Base):
    def __init__(self):
        super().__init__()
        self.fc.register_forward_hook(self.times)
        self.fc.register_forward_hook(self.plus)

    def forward(self, x):
        return self.fc(x)


class Removed(Base):
    def __init__(self):
        super().__init__()
        handle = self.fc.register_forward_hook(self.times)
        handle.remove()

    def forward(self, x):
        return self.fc(x)
