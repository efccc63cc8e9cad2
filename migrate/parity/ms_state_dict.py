"""In: a built net and a .ckpt file. Out: the file that the net saves once it has loaded it."""

from __future__ import annotations

import mindspore as ms
import numpy as np

from migrate.parity.cells import Net, held_at, put
from migrate.parity.channel import Payload
from migrate.parity.ms_training import parameters_of
from migrate.parity.ms_values import array


def reload(net: Net, request: Payload) -> Payload:
    """Clear the weights, load ``file`` as users do, save the net to ``to``.

    What the net held before comes back in any case. ``{"left": names the file does not give,
    "unused": names the net does not take}``
    """
    start = {place: array(held_at(net, place)).copy() for place in parameters_of(net)}
    try:
        for place, numbers in start.items():
            put(net, place, np.zeros_like(numbers))
        entries = ms.load_checkpoint(request["file"])
        left, unused = ms.load_param_into_net(net.root, entries)
        ms.save_checkpoint(net.root, request["to"])
    finally:
        for place, numbers in start.items():
            put(net, place, numbers)
    return {"left": list(left), "unused": list(unused)}
