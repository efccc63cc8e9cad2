"""In: what torch's dispatcher is told of operators. Out: nothing, as MindSpore has none."""


class OperatorRegistrations:
    """torch.library.Library of operators that have a counterpart here: none is registered.

    Shapes without numbers (``Meta``) and forms for autocast have no use in MindSpore. An
    implementation under any other key would replace the operator, and raises.
    """

    def __init__(self, kind, dispatch_key=""):
        if kind not in ("IMPL", "FRAGMENT", "DEF"):
            raise ValueError(f"Library: there is no kind {kind!r}")
        self.dispatch_key = dispatch_key

    def impl(self, fn, dispatch_key=""):
        key = dispatch_key or self.dispatch_key
        if key != "Meta" and not key.startswith("Autocast"):
            raise NotImplementedError(
                f"Library.impl: {fn.__name__} is an implementation for {key or 'all devices'};"
                " call it where the operator is called"
            )


def functional_datapipe(name, enable_df_api_tracing=False):
    """torch.utils.data.functional_datapipe: only torch's own data pipes look for that name."""

    def registered(cls):
        return cls

    return registered
