"""In: lists, tuples and dicts in each other. Out: their leaves, the same containers of others."""

import copy


def tree_rebuilt(tree, parts):
    """A container like ``tree`` that holds ``parts``."""
    if isinstance(tree, dict):
        made = copy.copy(tree)
        made.update(zip(tree.keys(), parts, strict=True))
        return made
    if hasattr(tree, "_fields"):
        return type(tree)(*parts)
    return tuple(parts) if isinstance(tree, tuple) else list(parts)


def tree_map(func, tree, *rests, is_leaf=None):
    """torch.utils._pytree.tree_map over lists, tuples, named tuples and dicts.

    A shape is a tuple here, so its numbers are leaves; a deque is one leaf.
    """
    if not isinstance(tree, (dict, list, tuple)) or (is_leaf is not None and is_leaf(tree)):
        return func(tree, *rests)
    keys = list(tree) if isinstance(tree, dict) else range(len(tree))
    parts = [
        tree_map(func, tree[key], *[rest[key] for rest in rests], is_leaf=is_leaf) for key in keys
    ]
    return tree_rebuilt(tree, parts)


def tree_leaves(tree, is_leaf=None):
    """torch.utils._pytree.tree_leaves: the leaves in torch's order, dicts by their own order."""
    if not isinstance(tree, (dict, list, tuple)) or (is_leaf is not None and is_leaf(tree)):
        return [tree]
    parts = tree.values() if isinstance(tree, dict) else tree
    return [leaf for part in parts for leaf in tree_leaves(part, is_leaf)]


def tree_flatten(tree, is_leaf=None):
    """torch.utils._pytree.tree_flatten: the leaves, and the containers without them."""
    return tree_leaves(tree, is_leaf), tree_map(lambda leaf: None, tree, is_leaf=is_leaf)


def tree_unflatten(leaves, treespec):
    """torch.utils._pytree.tree_unflatten: the containers of ``treespec`` with these leaves."""
    rest, count = list(leaves), len(tree_leaves(treespec))
    if len(rest) != count:
        raise ValueError(f"{len(rest)} leaves do not fill containers of {count}")
    return tree_map(lambda place: rest.pop(0), treespec)
