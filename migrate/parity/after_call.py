"""In: a Cell that has run, and torch's buffers after it. Out: a measure for each of those."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from migrate.parity.cells import Net, held_at
from migrate.parity.compare import Measure, compare
from migrate.parity.exchange import Array, ArrayStore, Spec
from migrate.parity.layout import apply_layout
from migrate.parity.ms_values import describe
from migrate.parity.tolerance import Strictness


def statistics(
    net: Net, store: ArrayStore, strictness: Strictness, entry: Spec,
    held: Callable[[str], str] = str,
) -> list[Measure]:  # fmt: skip
    """The moving statistics of a Cell after its call, where they have a partner.

    ``held`` says for a tensor's place where its numbers are now: another Cell may have run for it.
    """
    measures = []
    for name, expected in entry["state"].items():
        key = f"{entry['path']}.{name}" if entry["path"] else name
        place = net.places.get(key)
        if place is None:
            continue
        layout = net.layouts[key]
        actual, read = describe(held_at(net, held(place)))
        expected = {**expected, "shape": list(actual["shape"]) if layout else expected["shape"]}

        def reference(spec: Spec, layout: str = layout) -> Array:
            return apply_layout(store.get(spec["key"]), layout)

        found = compare(expected, actual, reference, read, strictness)
        detail = f"{name} after the run: {found.detail}" if found.detail else ""
        measures.append(replace(found, detail=detail))
    return measures
