"""Lists, tuples, dicts and registered classes in each other: their leaves, and others like them."""

import copy

from migrate.helpers.keeping import is_pynative

TREE_NODES = {}


def register_tree(
    cls,
    flatten_fn,
    unflatten_fn,
    *,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
):
    """torch.utils._pytree.register_pytree_node: instances of exactly this class have parts."""
    TREE_NODES[cls] = (flatten_fn, unflatten_fn)


def registered_node(tree):
    """How a registered class is taken apart and put together; None for all others.

    Graph mode knows containers of Python only.
    """
    return TREE_NODES.get(type(tree)) if is_pynative() else None


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
    """torch.utils._pytree.tree_map over lists, tuples, named tuples, dicts, registered classes.

    A shape is a tuple here, so its numbers are leaves; a deque is one leaf.
    """
    if is_leaf is not None and is_leaf(tree):
        return func(tree, *rests)
    node = registered_node(tree)
    if node is not None:
        parts, context = node[0](tree)
        others = [node[0](rest)[0] for rest in rests]
        made = [
            tree_map(func, part, *[other[place] for other in others], is_leaf=is_leaf)
            for place, part in enumerate(parts)
        ]
        return node[1](made, context)
    if not isinstance(tree, (dict, list, tuple)):
        return func(tree, *rests)
    keys = list(tree) if isinstance(tree, dict) else range(len(tree))
    parts = [
        tree_map(func, tree[key], *[rest[key] for rest in rests], is_leaf=is_leaf) for key in keys
    ]
    return tree_rebuilt(tree, parts)


def tree_leaves(tree, is_leaf=None):
    """torch.utils._pytree.tree_leaves: the leaves in torch's order, dicts by their own order."""
    if is_leaf is not None and is_leaf(tree):
        return [tree]
    node = registered_node(tree)
    if node is not None:
        parts = node[0](tree)[0]
    elif isinstance(tree, dict):
        parts = tree.values()
    elif isinstance(tree, (list, tuple)):
        parts = tree
    else:
        return [tree]
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


def dict_flatten(d):
    """torch.utils._pytree._dict_flatten: the values of a dict, and its keys."""
    return list(d.values()), list(d.keys())


def dict_unflatten(values, context):
    """torch.utils._pytree._dict_unflatten: the dict of these keys."""
    return dict(zip(context, values, strict=True))
