"""In: an equation and tensors. Out: their Einstein sum, by one matrix product for each pair.

The equation is a constant, so it is read while a graph is compiled; only tensor calls are left.
"""

import mindspore as ms

from migrate.helpers.linear_algebra import matmul
from migrate.helpers.reduction import sum_of


def spread_labels(term, ndim, equation):
    """The labels of one operand as a list; the ellipsis becomes numbers that count from its end."""
    term = term.replace(" ", "")
    if "..." not in term:
        if len(term) != ndim:
            raise ValueError(
                f"einsum: {term!r} in {equation!r} names {len(term)} dimensions, the operand "
                f"has {ndim}"
            )
        return list(term)
    before, after = term.split("...")
    dots = ndim - len(before) - len(after)
    if dots < 0:
        raise ValueError(f"einsum: {term!r} in {equation!r} wants more than {ndim} dimensions")
    return [*before, *range(-dots, 0), *after]


@ms.constexpr
def einsum_labels(equation, ranks):
    """Labels of the operands and of the result, from an equation with one letter for an axis."""
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"einsum: {equation!r} has {len(terms)} operands, {len(ranks)} are given")
    inputs = [spread_labels(t, rank, equation) for t, rank in zip(terms, ranks)]
    flat = [label for labels in inputs for label in labels]
    dots = sorted({label for label in flat if isinstance(label, int)})
    if arrow:
        before, ellipsis, after = right.replace(" ", "").partition("...")
        output = [*before, *(dots if ellipsis else []), *after]
    else:
        letters = {label for label in flat if isinstance(label, str)}
        output = dots + sorted(label for label in letters if flat.count(label) == 1)
    numbers = {label: index for index, label in enumerate(sorted(set(flat), key=str))}
    if any(label not in numbers for label in output) or len(set(output)) != len(output):
        raise ValueError(f"einsum: the result of {equation!r} must name axes of the left, once")
    return (
        tuple(tuple(numbers[label] for label in labels) for labels in inputs),
        tuple(numbers[label] for label in output),
    )


@ms.constexpr
def numbered_labels(lists, count):
    """Labels of the operands and of the result, from lists of numbers."""
    flat = [label for labels in lists[:count] for label in labels]
    if len(lists) - count not in (0, 1) or not all(isinstance(label, int) for label in flat):
        raise ValueError(f"einsum: {lists!r} do not name the axes of {count} operands")
    once = tuple(sorted(label for label in flat if flat.count(label) == 1))
    return lists[:count], lists[count] if len(lists) > count else once


@ms.constexpr
def diagonal_plan(labels):
    """Pairs of axes to join (the diagonal goes last), and the labels that are left."""
    pairs, rest = [], list(labels)
    while len(set(rest)) < len(rest):
        label = next(one for one in rest if rest.count(one) > 1)
        first = rest.index(label)
        second = rest.index(label, first + 1)
        pairs.append((first, second))
        rest = [one for axis, one in enumerate(rest) if axis not in (first, second)] + [label]
    return tuple(pairs), tuple(rest)


@ms.constexpr
def summing_plan(labels, wanted):
    """Axes whose labels nobody wants any more, and the labels that are left."""
    axes = tuple(axis for axis, label in enumerate(labels) if label not in wanted)
    return axes, tuple(label for label in labels if label in wanted)


@ms.constexpr
def pair_plan(first, second, wanted, first_shape, second_shape):
    """How two operands become two matrices of a batch, and what their product is.

    Returns (sums over axes of length one, permutations, batch and matrix shapes, shape and
    labels of the result).
    """
    sizes = {}
    for label, size in [*zip(first, first_shape), *zip(second, second_shape)]:
        if sizes.get(label, 1) != 1 and size not in (1, sizes[label]):
            raise ValueError(f"einsum: one axis has length {size} and {sizes[label]}")
        sizes[label] = max(size, sizes.get(label, 1)) if size else 0
    both = [label for label in first if label in second]
    batch = [label for label in both if label in wanted]
    inner = [label for label in both if label not in wanted]
    rows = [label for label in first if label not in both]
    columns = [label for label in second if label not in both]
    products = [1, 1, 1, 1]
    for index, labels in enumerate((batch, rows, inner, columns)):
        for label in labels:
            products[index] *= sizes[label]
    left, right = batch + rows + inner, batch + inner + columns
    result = batch + rows + columns
    return (
        tuple(sizes[label] for label in first),
        tuple(sizes[label] for label in second),
        tuple(first.index(label) for label in left),
        tuple(second.index(label) for label in right),
        (products[0], products[1], products[2]),
        (products[0], products[2], products[3]),
        tuple(sizes[label] for label in result),
        tuple(result),
    )


@ms.constexpr
def wanted_labels(rest, output):
    """The labels of the operands that are still to come, and of the result."""
    return tuple({label for labels in rest for label in labels} | set(output))


@ms.constexpr
def label_order(labels, output):
    """The permutation that brings the axes of a result into the wanted order."""
    return tuple(labels.index(label) for label in output)


def joined_diagonals(x, labels):
    """Takes the diagonal where a label stands twice; returns the tensor and its labels."""
    pairs, rest = diagonal_plan(labels)
    for first, second in pairs:
        x = x.diagonal(0, first, second)
    return x, rest


def summed_out(x, labels, wanted):
    """Sums over the axes that nobody wants; returns the tensor and its labels."""
    axes, rest = summing_plan(labels, wanted)
    return (sum_of(x, axes, False) if len(axes) > 0 else x), rest


def pair_product(x, y, labels, others, wanted):
    """Multiplies two operands and sums over the labels that nobody wants afterwards."""
    x, labels = summed_out(x, labels, wanted + others)
    y, others = summed_out(y, others, wanted + labels)
    plan = pair_plan(labels, others, wanted, x.shape, y.shape)
    full_x, full_y, order_x, order_y, left, right, shape, result = plan
    x = x.broadcast_to(full_x) if x.shape != full_x else x
    y = y.broadcast_to(full_y) if y.shape != full_y else y
    x = x.permute(order_x).reshape(left)
    y = y.permute(order_y).reshape(right)
    product = x * y if left[2] == 1 else matmul(x, y)
    return product.reshape(shape), result


def contracted(operands, inputs, output):
    """The sum over all labels that are not in ``output``; labels are numbers."""
    x, labels = joined_diagonals(operands[0], inputs[0])
    for index in range(1, len(operands)):
        y, others = joined_diagonals(operands[index], inputs[index])
        wanted = wanted_labels(inputs[index + 1 :], output)
        x, labels = pair_product(x, y, labels, others, wanted)
    x, labels = summed_out(x, labels, output)
    order = label_order(labels, output)
    return x.permute(order) if order != tuple(range(len(order))) else x


def einsum(equation, *operands):
    """torch.einsum(equation, *operands): ellipsis, repeated labels and an implicit result too.

    Operands may be any number of tensors, or one list of them; axes of length one broadcast. In
    place of an equation a list of numbers may follow each operand, and one for the result.
    Raises ValueError when equation and operands do not belong together.
    """
    if isinstance(equation, ms.Tensor):
        given = (equation, *operands)
        tensors = [x for x in given if isinstance(x, ms.Tensor)]
        lists = [tuple(x) for x in given if not isinstance(x, ms.Tensor)]
        inputs, output = numbered_labels(tuple(lists), len(tensors))
        return contracted(tensors, inputs, output)
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    inputs, output = einsum_labels(equation, tuple([x.ndim for x in operands]))
    return contracted(operands, inputs, output)


@ms.constexpr
def named_labels(pattern, ranks):
    """Labels of the operands and of the result, from an einops pattern with names for axes."""
    left, arrow, right = pattern.partition("->")
    terms = [side.replace("...", " ... ").split() for side in left.split(",")]
    if not arrow or len(terms) != len(ranks):
        raise ValueError(
            f"einops.einsum: {pattern!r} does not name {len(ranks)} operands -> result"
        )
    letters = {}
    texts = []
    for words in [*terms, right.replace("...", " ... ").split()]:
        for word in words:
            if word != "...":
                letters.setdefault(word, chr(0x4E00 + len(letters)))
        texts.append("".join(letters.get(word, word) for word in words))
    return ",".join(texts[:-1]) + "->" + texts[-1]


def named_einsum(*tensors_and_pattern):
    """einops.einsum(tensor, ..., pattern): the pattern names axes by words, "b i, i j -> b j"."""
    operands, pattern = tensors_and_pattern[:-1], tensors_and_pattern[-1]
    equation = named_labels(pattern, tuple([x.ndim for x in operands]))
    return einsum(equation, *operands)
