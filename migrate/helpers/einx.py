"""In: tensors and einx patterns. Out: what einx's elementwise functions return, by reshape alone.

A pattern is a constant, so it is read while a graph is compiled; only the tensor calls are left.
"""

import mindspore as ms

from migrate.helpers.einops import pattern_groups, solved_lengths, spread_ellipsis


def einx_output(pattern, operands):
    """The groups of the result: what follows "->", else the operand that names every axis."""
    if "->" in pattern:
        return pattern_groups(pattern.split("->")[1], pattern)
    every = {axis for groups in operands for group in groups for axis in group}
    found = []
    for groups in operands:
        if {axis for group in groups for axis in group} == every and groups not in found:
            found.append(groups)
    if len(found) != 1:
        raise ValueError(f"einx: {pattern!r} leaves open which axes the result has; add '-> ...'")
    return found[0]


def einx_lengths(pattern, operands, shapes, lengths):
    """The length of each axis. Operands without brackets go first: the others need them."""
    known = dict(lengths)
    for joined in (False, True):
        for groups, shape in zip(operands, shapes):
            if any(len(group) > 1 for group in groups) == joined:
                known.update(solved_lengths(pattern, groups, shape, known))
    return known


@ms.constexpr
def einx_plan(pattern, shapes, names, sizes):
    """How operands are laid over each other, as tuples of int; raises ValueError.

    Returns (for each operand: shape of single axes, their order, shape with a 1 for each axis
    that it lacks; the shape of the result).
    """
    sides = pattern.partition("->")[0].split(",")
    operands = [pattern_groups(side, pattern) for side in sides]
    if len(operands) != len(shapes):
        raise ValueError(f"einx: {pattern!r} has {len(operands)} operands, not {len(shapes)}")
    result = einx_output(pattern, operands)
    dots = {len(s) - len(g) + 1 for g, s in zip(operands, shapes) if ["…"] in g}
    if len(dots) > 1:
        raise ValueError(f"einx: the ellipsis of {pattern!r} differs between shapes {shapes}")
    count = max([0, *dots])
    operands = [spread_ellipsis(groups, count) for groups in operands]
    result = spread_ellipsis(result, count)
    known = einx_lengths(pattern, operands, shapes, dict(zip(names, sizes)))
    flat = [axis for group in result for axis in group]
    axes = [[axis for group in groups for axis in group] for groups in operands]
    named = {axis for one in axes for axis in one}
    if named != set(flat) or any(len(set(one)) != len(one) for one in [*axes, flat]):
        raise ValueError(f"einx: both sides of {pattern!r} must name the same axes, each once")
    if any(axis.isdecimal() for axis in flat):
        raise ValueError(f"einx: {pattern!r} has a number for an axis; give the axis a name")
    steps = []
    for one in axes:
        order = tuple(one.index(axis) for axis in flat if axis in one)
        opened = tuple(known[axis] if axis in one else 1 for axis in flat)
        steps.append((tuple(known[axis] for axis in one), order, opened))
    final = []
    for group in result:
        final.append(1)
        for axis in group:
            final[-1] *= known[axis]
    return tuple(steps), tuple(final)


def einx_elementwise(operation, pattern, *tensors, **lengths):
    """einx.add, einx.where and their like: ``operation`` on operands laid over each other by name.

    Any shape and dtype that ``operation`` takes; numbers stand for operands without axes. Not
    covered: axes in square brackets and axes written as a number other than 1, which raise.
    """
    shapes = ()
    for tensor in tensors:
        shapes += (tensor.shape if isinstance(tensor, ms.Tensor) else (),)
    names, sizes = tuple(lengths.keys()), tuple(lengths.values())
    steps, final = einx_plan(pattern, shapes, names, sizes)
    aligned = ()
    for tensor, step in zip(tensors, steps):
        split, order, opened = step
        if isinstance(tensor, ms.Tensor) and len(split) > 0:
            tensor = tensor.reshape(split).permute(order).reshape(opened)
        aligned += (tensor,)
    return operation(*aligned).reshape(final)
