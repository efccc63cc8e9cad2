"""In: nothing. Out: the folder where downloaded files are kept."""

import os


def hub_home():
    """Reproduces torch.hub._get_torch_home exactly: TORCH_HOME, else torch in the user's cache."""
    cache = os.path.join(os.getenv("XDG_CACHE_HOME", "~/.cache"), "torch")
    return os.path.expanduser(os.getenv("TORCH_HOME", cache))
