"""Names and what they build; nothing in here knows torch."""


class Registry:
    """Maps names to classes or functions. Tensors have a method of the name `get` nowhere."""

    def __init__(self, kind):
        self.kind = kind
        self._entries = {}

    def register(self, name=None):
        def add(target):
            key = name or target.__name__.lower()
            if key in self._entries:
                raise KeyError(f"{self.kind} {key!r} is registered twice")
            self._entries[key] = target
            return target

        return add

    def get(self, name):
        if name not in self._entries:
            known = ", ".join(sorted(self._entries))
            raise KeyError(f"no {self.kind} {name!r}; there are {known}")
        return self._entries[name]

    def build(self, spec, *args, **defaults):
        """``spec`` is a name, or a dict with a name and arguments."""
        if isinstance(spec, str):
            return self.get(spec)(*args, **defaults)
        arguments = {**defaults, **spec}
        return self.get(arguments.pop("name"))(*args, **arguments)


ACTIVATIONS = Registry("activation")
NORMS = Registry("norm")
MODELS = Registry("model")
