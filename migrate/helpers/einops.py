"""In: tensors and einops patterns. Out: what einops returns, by reshape, transpose and reduction.

A pattern is a constant, so it is read while a graph is compiled; only the tensor calls are left.
"""

import mindspore as ms
from mindspore import nn, ops


def pattern_groups(side, pattern):
    """One side of a pattern as a list of groups of axis names: "b (h w)" -> [[b], [h, w]].

    The ellipsis is "…", and "(…)" where it stands in brackets.
    """
    groups, inside = [], None
    spaced = side.replace("...", " … ").replace("(", " ( ").replace(")", " ) ")
    for word in spaced.split():
        if word == "(" and inside is None:
            inside = []
        elif word == ")" and inside is not None:
            groups.append(inside)
            inside = None
        elif word in ("(", ")"):
            raise ValueError(f"einops: brackets do not match in {pattern!r}")
        elif word != "…" and not word.isdecimal() and not word.isidentifier():
            raise ValueError(f"einops: {word!r} in {pattern!r} is not the name of an axis")
        elif inside is None:
            groups.append([] if word == "1" else [word])
        elif word != "1":
            inside.append("(…)" if word == "…" else word)
    if inside is not None:
        raise ValueError(f"einops: brackets do not match in {pattern!r}")
    return groups


def numbered_axes(groups, prefix, lengths):
    """Gives axes written as a number ("2") a name of their own and records their length."""
    named = []
    for group in groups:
        row = []
        for axis in group:
            if axis.isdecimal():
                name = f"{prefix}{len(lengths)}_{axis}"
                lengths[name] = int(axis)
                row.append(name)
            else:
                row.append(axis)
        named.append(row)
    return named


def spread_ellipsis(groups, count):
    """Replaces the ellipsis by ``count`` axes of its own; alone it becomes that many groups."""
    axes = [f"…{index}" for index in range(count)]
    found = []
    for group in groups:
        if group == ["…"]:
            found += [[axis] for axis in axes]
        else:
            found.append([n for name in group for n in (axes if name == "(…)" else [name])])
    return found


def check_pattern(operation, pattern, left, right, lengths):
    """Raises ValueError where the two sides do not belong together."""
    flat_left = [axis for group in left for axis in group]
    flat_right = [axis.strip("()") for group in right for axis in group]
    for flat in (flat_left, flat_right):
        twice = sorted({axis for axis in flat if flat.count(axis) > 1})
        if twice:
            raise ValueError(f"einops: {', '.join(twice)} stands twice on a side of {pattern!r}")
    if "(…)" in flat_left:
        raise ValueError(f"einops: an ellipsis in brackets on the left of {pattern!r}")
    new = [axis for axis in flat_right if axis not in flat_left]
    lost = [axis for axis in flat_left if axis not in flat_right]
    if "…" in new or (operation != "repeat" and new):
        raise ValueError(f"einops: {', '.join(new)} only on the right of {pattern!r}")
    if operation != "reduce" and lost:
        raise ValueError(f"einops: {', '.join(lost)} only on the left of {pattern!r}")
    missing = [axis for axis in new if axis not in lengths]
    if missing:
        raise ValueError(f"einops: give the length of {', '.join(missing)} in {pattern!r}")
    unknown = [axis for axis in lengths if axis not in flat_left + flat_right]
    if unknown:
        raise ValueError(f"einops: {', '.join(unknown)} does not occur in {pattern!r}")


def solved_lengths(pattern, left, shape, lengths):
    """Lengths of all axes on the left, from the shape and the given ones."""
    if len(left) != len(shape):
        raise ValueError(
            f"einops: {pattern!r} wants {len(left)} dimensions, the tensor has shape {shape}"
        )
    known = dict(lengths)
    for group, size in zip(left, shape):
        open_axes = [axis for axis in group if axis not in known]
        product = 1
        for axis in group:
            product *= known.get(axis, 1)
        if len(open_axes) > 1:
            raise ValueError(
                f"einops: give the length of all but one of {', '.join(open_axes)} in {pattern!r}"
            )
        if (size % product if product else size) if open_axes else size != product:
            raise ValueError(
                f"einops: a dimension of length {size} does not fit ({' '.join(group)}) in "
                f"{pattern!r} with {known}"
            )
        if open_axes:
            known[open_axes[0]] = size // product if product else 0
    return known


@ms.constexpr
def einops_plan(operation, pattern, shape, names, sizes):
    """The steps of an einops call, as tuples of int, which einops_run carries out.

    Returns (split shape, axes to reduce, order of the kept axes, shape with a 1 for each new
    axis, shape with the new axes at full length, final shape). Raises ValueError.
    """
    if pattern.count("->") != 1:
        raise ValueError(f"einops: {pattern!r} needs one '->'")
    lengths = dict(zip(names, sizes))
    sides = [pattern_groups(side, pattern) for side in pattern.split("->")]
    left = numbered_axes(sides[0], "left", lengths)
    right = numbered_axes(sides[1], "right", lengths)
    check_pattern(operation, pattern, left, right, lengths)
    dots = len(shape) - len(left) + 1 if ["…"] in left else 0
    if dots < 0:
        raise ValueError(f"einops: {pattern!r} wants more dimensions than shape {shape} has")
    left, right = spread_ellipsis(left, dots), spread_ellipsis(right, dots)
    known = solved_lengths(pattern, left, shape, lengths)
    flat_left = [axis for group in left for axis in group]
    flat_right = [axis for group in right for axis in group]
    kept = [axis for axis in flat_left if axis in flat_right]
    final = []
    for group in right:
        final.append(1)
        for axis in group:
            final[-1] *= known[axis]
    return (
        tuple(known[axis] for axis in flat_left),
        tuple(i for i, axis in enumerate(flat_left) if axis not in flat_right),
        tuple(kept.index(axis) for axis in flat_right if axis in kept),
        tuple(known[axis] if axis in kept else 1 for axis in flat_right),
        tuple(known[axis] for axis in flat_right),
        tuple(final),
    )


def einops_run(tensor, plan, reduction):
    """Carries out the steps of einops_plan."""
    split, reduced, order, opened, full, final = plan
    if split != tensor.shape:
        tensor = tensor.reshape(split)
    if len(reduced) > 0:
        tensor = reduce_axes(tensor, reduction, reduced)
    if order != tuple(range(len(order))):
        tensor = tensor.permute(order)
    if full != opened:
        tensor = tensor.reshape(opened).broadcast_to(full)
    if tensor.shape != final:
        tensor = tensor.reshape(final)
    return tensor


def reduce_axes(tensor, reduction, axes):
    """Reduces over several axes by name, or by a function of (tensor, axes)."""
    if reduction == "mean":
        return tensor.mean(axes)
    if reduction == "sum":
        return tensor.sum(axes)
    if reduction == "max":
        return ops.amax(tensor, axes)
    if reduction == "min":
        return ops.amin(tensor, axes)
    if reduction in ("any", "all"):
        return tensor.any(axes) if reduction == "any" else tensor.all(axes)
    if isinstance(reduction, str):
        if reduction != "prod":
            raise ValueError(f"einops: {reduction!r} is not one of mean, sum, max, min, prod")
        for axis in axes[::-1]:
            tensor = tensor.prod(axis)
        return tensor
    return reduction(tensor, axes)


def rearrange(tensor, pattern, **axes_lengths):
    """einops.rearrange: any shape, any dtype; a list of tensors is stacked first."""
    if isinstance(tensor, (list, tuple)):
        tensor = ops.stack(tensor)
    names, sizes = tuple(axes_lengths.keys()), tuple(axes_lengths.values())
    return einops_run(tensor, einops_plan("rearrange", pattern, tensor.shape, names, sizes), "none")


def reduce(tensor, pattern, reduction, **axes_lengths):
    """einops.reduce by "mean", "sum", "max", "min", "prod", "any", "all" or a function."""
    if isinstance(tensor, (list, tuple)):
        tensor = ops.stack(tensor)
    names, sizes = tuple(axes_lengths.keys()), tuple(axes_lengths.values())
    plan = einops_plan("reduce", pattern, tensor.shape, names, sizes)
    return einops_run(tensor, plan, reduction)


def repeat(tensor, pattern, **axes_lengths):
    """einops.repeat: axes that stand on the right only are new."""
    if isinstance(tensor, (list, tuple)):
        tensor = ops.stack(tensor)
    names, sizes = tuple(axes_lengths.keys()), tuple(axes_lengths.values())
    return einops_run(tensor, einops_plan("repeat", pattern, tensor.shape, names, sizes), "none")


class Rearrange(nn.Cell):
    """einops.layers.torch.Rearrange."""

    def __init__(self, pattern, **axes_lengths):
        super().__init__()
        self.pattern = pattern
        self.axes_lengths = axes_lengths
        self.names, self.sizes = tuple(axes_lengths.keys()), tuple(axes_lengths.values())

    def construct(self, input):
        plan = einops_plan("rearrange", self.pattern, input.shape, self.names, self.sizes)
        return einops_run(input, plan, "none")


class Reduce(nn.Cell):
    """einops.layers.torch.Reduce."""

    def __init__(self, pattern, reduction, **axes_lengths):
        super().__init__()
        self.pattern, self.reduction = pattern, reduction
        self.axes_lengths = axes_lengths
        self.names, self.sizes = tuple(axes_lengths.keys()), tuple(axes_lengths.values())

    def construct(self, input):
        plan = einops_plan("reduce", self.pattern, input.shape, self.names, self.sizes)
        return einops_run(input, plan, self.reduction)
