"""In: a layer of some class. Out: its Parameter that torch calls weight, bias or running_*."""


def other_names(name):
    """What MindSpore's layers call the Parameter that torch calls ``name``."""
    if name == "weight":
        return ("gamma", "embedding_table")
    return {"bias": ("beta",), "running_mean": ("moving_mean",)}.get(name, ("moving_variance",))


def layer_part(cell, name):
    """``cell.weight`` as in torch, of any layer: some Cells call it gamma or embedding_table."""
    for own in other_names(name):
        if hasattr(cell, own) and not hasattr(cell, name):
            return getattr(cell, own)
    return getattr(cell, name)


def give_part(cell, name, value):
    """``cell.weight = value`` as in torch, of any layer: it computes with that from then on."""
    held = getattr(cell, "_params", {})
    names = [own for own in other_names(name) if own in held and name not in held]
    setattr(cell, (*names, name)[0], value)
