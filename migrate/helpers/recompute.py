"""In: functions and their arguments. Out: torch.utils.checkpoint without the recomputation."""


def checkpoint(
    function,
    *args,
    use_reentrant=None,
    context_fn=None,
    determinism_check="default",
    debug=False,
    early_stop=True,
    preserve_rng_state=True,
    **kwargs,
):
    """torch.utils.checkpoint.checkpoint: calls the function; the same numbers and gradients.

    Activations are kept instead of computed again; ``Cell.recompute()`` saves their memory.
    """
    return function(*args, **kwargs)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """torch.utils.checkpoint.checkpoint_sequential: calls them one after another."""
    for function in functions:
        input = function(input)
    return input
