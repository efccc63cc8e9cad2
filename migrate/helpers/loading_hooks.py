"""In: a Cell and a hook for the loading of its state. Out: the hook, if the names are torch's."""

RENAMED_TENSORS = ("gamma", "beta", "moving_mean", "moving_variance", "embedding_table")


def register_load_state_dict_pre_hook(module, hook, with_module=True):
    """torch.nn.Module.register_load_state_dict_pre_hook, and the private one that it calls.

    Loading raises where the Cell, or one in it, names a tensor otherwise than torch: the hook
    would not find what it looks for.
    """

    def before(cell, *state):
        check_tensor_names(cell)
        hook(*((cell,) if with_module else ()), *state)

    return module.register_load_state_dict_pre_hook(before)


def register_load_state_dict_post_hook(module, hook):
    """torch.nn.Module.register_load_state_dict_post_hook, with the same restriction."""

    def behind(cell, incompatible_keys):
        check_tensor_names(cell)
        return hook(cell, incompatible_keys)

    return module.register_load_state_dict_post_hook(behind)


def check_tensor_names(cell):
    """Raise NotImplementedError if a Cell, or one in it, has names that torch does not have."""
    for path, one in cell.cells_and_names():
        for name in one._params:
            if name in RENAMED_TENSORS:
                place = f"{path}.{name}".lstrip(".")
                raise NotImplementedError(f"torch2ms CKP111: a hook cannot know the key {place}")
