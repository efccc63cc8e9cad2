"""In: the name of a torch function, method or layer. Out: whether its result may share storage.

The names are those whose schema in native_functions.yaml declares an alias, those that gave back
the storage of an input for some sample of PyTorch's own database of operators, and those that take
an input as it is when nothing is to be done. Every other torch function makes a new tensor.
"""

from __future__ import annotations

import ast

from migrate.analysis.types.kinds import HANDING_ON, Atom

_VIEWS = frozenset(
    """
adjoint alias as_strided broadcast_to chunk coalesce conj contiguous detach diagonal dsplit expand
expand_as flatten hsplit imag indices lift_fresh matrix_H moveaxis movedim narrow permute
pin_memory positive ravel real reshape reshape_as resolve_conj resolve_neg select slice split
split_with_sizes squeeze swapaxes swapdims t tensor_split to transpose unbind unflatten unfold
unsqueeze unsafe_chunk unsafe_split values view view_as view_as_complex view_as_real vsplit
H T mH mT data atleast_1d atleast_2d atleast_3d broadcast_tensors cartesian_prod conj_physical
meshgrid alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout sum_to_size
einsum combinations type type_as float double half bfloat16 int long short char byte bool cfloat
cdouble cpu cuda xpu npu to_dense as_tensor asarray from_numpy numpy requires_grad_ detach_
diagonal_view identity checkpoint annotate rearrange as_subclass untyped_storage storage
squeeze_ unsqueeze_ transpose_ t_ swapaxes_ swapdims_ nested_tensor pack_padded_sequence
parameters named_parameters buffers named_buffers modules named_modules children named_children
state_dict get_parameter get_buffer get_submodule cast
""".split()
)
# of these the first argument alone: the others are numbers, even where nothing tells
FIRST_ALONE = frozenset(
    """
alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout unflatten unfold
flatten narrow select squeeze unsqueeze transpose swapaxes swapdims movedim moveaxis chunk
""".split()
)
# what these give are views of parts of the first argument that have no element in common
DIVIDING = frozenset(
    """
chunk split split_with_sizes tensor_split unbind hsplit vsplit dsplit unsafe_chunk unsafe_split
""".split()
)
_LAYERS = HANDING_ON | {"Sequential", "ModuleList", "Module"}
# of these only the object is asked, never its values
METADATA = frozenset(
    """
shape dtype device ndim size dim numel requires_grad is_cuda is_floating_point element_size stride
is_contiguous nelement itemsize names layout ndimension data_ptr is_complex get_device nbytes
is_leaf grad_fn
""".split()
)
# Python's own functions that give back nothing of what they are given
ASKING = frozenset(
    "isinstance len range print int float bool str repr hasattr id type callable sum abs round "
    "issubclass any all ord chr hash format divmod pow".split()
)
# classes of Python's whose objects hold what they are made of, and whether that is its elements
HOLDING = {
    f"{module}.{name}": elements
    for module, names, elements in (
        ("collections", "deque UserDict UserList ChainMap defaultdict", True),
        ("collections", "namedtuple", False),
        ("types", "SimpleNamespace", False),
        ("argparse", "Namespace", False),
    )
    for name in names.split()
}
# whether what a function of einops gives may be a view: packing and sums make new tensors
EINOPS = {"einops.rearrange": True, "einops.repeat": True, "einops.reduce": True,
          "einops.unpack": True, "einops.pack": False, "einops.einsum": False}  # fmt: skip
# functions of numpy that gave memory of their own for all samples that were tried, `copy=False`
# and `out=` apart
_NUMPY_NEW = frozenset(
    """
append arange argpartition argsort argwhere array average column_stack concatenate convolve copy
corrcoef cov cross delete diagflat digitize dstack empty_like extract eye flatnonzero full full_like
geomspace gradient hstack in1d inner insert isin kron linspace logspace meshgrid nonzero ones_like
pad partition repeat resize roll row_stack searchsorted setdiff1d sinc sort tensordot tile trapz tri
tril triu union1d unique unwrap vander vdot vstack where zeros_like
""".split()
)
NOT_WRITING = frozenset(("requires_grad_", "share_memory_", "retain_grad_"))


def shares(name: str) -> bool:
    """Whether what a torch name gives when called may share storage with its arguments."""
    owner, _, last = name.rpartition(".")
    if owner.startswith("torch.nn") and last[:1].isupper():
        return last in _LAYERS
    return last in _VIEWS


def is_apart(name: str, call: ast.Call) -> bool:
    """Whether what a call gives is new though its name may share: an einsum of several operands,
    which is a product (of one it may be a view), or an array of what was moved or copied before."""
    operands = call.args[1:]
    if len(operands) == 1 and isinstance(operands[0], (ast.List, ast.Tuple)):
        operands = operands[0].elts  # all of them in one list, as torch had it first
    operands = [a for a in operands if not isinstance(a, (ast.List, ast.Tuple, ast.Starred))]
    product = name == "torch.einsum" and len(operands) > 1
    return product or (name == "torch.Tensor.numpy" and is_moved(call))


def is_moved(node: ast.AST) -> bool:
    """Return whether ``x.cpu().numpy()`` takes x from another device, or copies it before.

    ``float`` and ``contiguous`` do not count: where nothing has to change they give x itself.
    """
    moved = ("cpu", "to", "clone")
    return any(isinstance(n, ast.Attribute) and n.attr in moved for n in ast.walk(node))


def makes_array(name: str, call: ast.Call) -> bool:
    """Whether a call is one of numpy's that gives an array of its own."""
    library, _, function = name.rpartition(".")
    told = {keyword.arg for keyword in call.keywords}
    return library == "numpy" and function in _NUMPY_NEW and told.isdisjoint(("out", "copy", None))


def is_view_name(attribute: str) -> bool:
    """Whether an attribute of a Tensor is a view of it."""
    return attribute in ("T", "mT", "H", "mH", "data", "real", "imag")


def is_written(method: str) -> bool:
    """Whether a Tensor method changes its receiver, by its name."""
    return (
        method.endswith("_")
        and not method.startswith("_")
        and (not method.endswith("__") and method not in NOT_WRITING)
    )


def layer_shares(atom: Atom) -> bool:
    """Whether a layer of torch may hand on its input; a Sequential, when all its layers may."""
    if not atom.name.startswith("torch.nn."):
        return True
    inner = [a for kind in atom.items for a in kind]
    if atom.name == "torch.nn.Sequential" and inner:
        return all(a.kind == "Module" and layer_shares(a) for a in inner)
    return shares(atom.name)
