"""In: a torch name that is called or read. Out: the kind of its value, from row or facts."""

from __future__ import annotations

from dataclasses import dataclass, field

from migrate.analysis.types.kinds import (
    ARRAY,
    BOOL,
    DEVICE,
    DTYPE,
    INT,
    MODULE,
    MODULE_STATE,
    NONE,
    NOTHING,
    SIZE,
    STR,
    TENSOR,
    UNKNOWN,
    Atom,
    Kind,
    fixed_tuple,
    from_text,
    kind,
    sequence,
)
from migrate.mapping.table import Table

_PROPERTIES = {
    "shape": SIZE,
    "dtype": DTYPE,
    "device": DEVICE,
    "ndim": INT,
    "is_cuda": BOOL,
    "requires_grad": BOOL,
    "is_leaf": BOOL,
    "is_sparse": BOOL,
    "is_quantized": BOOL,
    "is_meta": BOOL,
    "is_cpu": BOOL,
    "is_mkldnn": BOOL,
    "is_mps": BOOL,
    "is_nested": BOOL,
    "is_sparse_csr": BOOL,
    "is_xpu": BOOL,
    "itemsize": INT,
    "nbytes": INT,
    "names": UNKNOWN,
    "layout": UNKNOWN,
    "name": STR,
    "grad_fn": UNKNOWN,
}
_METHODS = {
    "size": SIZE,
    "dim": INT,
    "ndimension": INT,
    "numel": INT,
    "nelement": INT,
    "element_size": INT,
    "stride": SIZE,
    "tolist": UNKNOWN,
    "item": frozenset((Atom("int"), Atom("float"), Atom("bool"))),
    "numpy": ARRAY,
    "is_contiguous": BOOL,
    "is_floating_point": BOOL,
    "is_complex": BOOL,
    "is_shared": BOOL,
    "lu": sequence("tuple", TENSOR),
    "equal": BOOL,
    "allclose": BOOL,
    "backward": NONE,
    "type": UNKNOWN,
    "register_hook": UNKNOWN,
    "get_device": INT,
    "storage": UNKNOWN,
    "untyped_storage": UNKNOWN,
    "data_ptr": INT,
}
_SEQUENCES = ("chunk", "split", "unbind", "tensor_split", "hsplit", "vsplit", "meshgrid",
              "broadcast_tensors", "nonzero_tuple", "split_with_sizes", "unsafe_chunk")  # fmt: skip
_MODULE_METHODS = {
    "parameters": sequence("iterator", TENSOR),
    "buffers": sequence("iterator", TENSOR),
    "named_parameters": sequence("iterator", fixed_tuple((STR, TENSOR))),
    "named_buffers": sequence("iterator", fixed_tuple((STR, TENSOR))),
    "modules": sequence("iterator", MODULE),
    "children": sequence("iterator", MODULE),
    "named_modules": sequence("iterator", fixed_tuple((STR, MODULE))),
    "named_children": sequence("iterator", fixed_tuple((STR, MODULE))),
    "state_dict": frozenset((Atom("dict", MODULE_STATE, (TENSOR,)),)),
    "get_submodule": MODULE,
    "get_parameter": TENSOR,
    "get_buffer": TENSOR,
    "register_buffer": NONE,
    "register_parameter": NONE,
    "add_module": NONE,
    "register_module": NONE,
    "set_submodule": NONE,
    "set_extra_state": NONE,
    "extra_repr": STR,
    "get_extra_state": NOTHING,  # torch's own raises
    "compile": NONE,
    "zero_grad": NONE,
    "forward": TENSOR,
    "__call__": TENSOR,
}
# methods that give the Module itself
_OWN = frozenset(
    "apply bfloat16 cpu cuda double eval float half ipu mtia requires_grad_ share_memory to"
    " to_empty train type xpu".split()
)
# what restructured training steps ask for; every other name of theirs makes or calls a step
OF_STEPS = {
    "torch2ms.clip_gradients": TENSOR,
    "torch2ms.gradient_of": TENSOR,
    "torch2ms.group_weights": sequence("list", TENSOR),
    "torch2ms.leaf": TENSOR,
    "torch2ms.own_groups": UNKNOWN,
}
_FUNCTIONS = {
    "torch.is_tensor": BOOL,
    "torch.is_floating_point": BOOL,
    "torch.is_complex": BOOL,
    "torch.is_grad_enabled": BOOL,
    "torch.equal": BOOL,
    "torch.allclose": BOOL,
    "torch.numel": INT,
    "torch.device": DEVICE,
    "torch.Size": SIZE,
    "torch.get_default_dtype": DTYPE,
    "torch.promote_types": DTYPE,
    "torch.result_type": DTYPE,
    "torch.Tensor": TENSOR,
    "torch.nn.Parameter": TENSOR,
    "torch.nn.Buffer": TENSOR,
    "torch.autograd.Variable": TENSOR,
    "torch.broadcast_shapes": SIZE,
    "torch.meshgrid": sequence("tuple", TENSOR),
    **OF_STEPS,
    "einops.pack": fixed_tuple((TENSOR, sequence("list", SIZE))),
    "einops.unpack": sequence("list", TENSOR),
    "einops.parse_shape": frozenset((Atom("dict", items=(INT,)),)),
}
# classes whose instances are plain Tensors of the dtype in the name
_LEGACY = frozenset(
    f"{space}.{name}Tensor"
    for space in ("torch", "torch.cuda")
    for name in "Bool Byte Char Double Float Half Int Long Short".split()
)
_RECURRENT = fixed_tuple((TENSOR, TENSOR))
_FORWARDS = {
    "torch.nn.LSTM": fixed_tuple((TENSOR, fixed_tuple((TENSOR, TENSOR)))),
    "torch.nn.GRU": _RECURRENT,
    "torch.nn.RNN": _RECURRENT,
    "torch.nn.LSTMCell": _RECURRENT,
    "torch.nn.MultiheadAttention": _RECURRENT,
}


@dataclass(frozen=True)
class Results:
    """Kinds of the results of torch's functions; memoized."""

    table: Table
    _memo: dict[str, Kind] = field(default_factory=dict)

    def of_property(self, attribute: str) -> Kind:
        """``x.attribute`` of a Tensor."""
        return _PROPERTIES.get(attribute, TENSOR)

    def of_call(self, name: str) -> Kind:
        """The result of calling the torch name (a class: an instance of it)."""
        if name not in self._memo:
            self._memo[name] = self._call(name)
        return self._memo[name]

    def _call(self, name: str) -> Kind:
        space, _, last = name.rpartition(".")
        if name in _FUNCTIONS:
            return _FUNCTIONS[name]
        if name in _LEGACY:
            return TENSOR
        if self.table.kind(name) == "class" or self._is_class_row(name):
            return self._instance(name, space)
        written = [from_text(row.result) for row in self.table.rows(name) if row.result]
        if written:
            return written[0]
        if name.startswith("torch._foreach_"):
            return sequence("list", TENSOR)
        if last in _SEQUENCES:
            return sequence("tuple", TENSOR)
        if space == "torch.nn.Module":
            return MODULE if last in _OWN else _MODULE_METHODS.get(last, UNKNOWN)
        if space == "torch.Tensor" and last in _METHODS:
            return _METHODS[last]
        return self._from_facts(name, space)

    def _is_class_row(self, name: str) -> bool:
        return any(row.forward or row.weights for row in self.table.rows(name))

    def _instance(self, name: str, space: str) -> Kind:
        if space in ("torch.nn", "torch.nn.parallel", "einops.layers.torch", "torchvision.ops"):
            return kind("Module", name)
        if name == "torch.optim.swa_utils.AveragedModel":
            return kind("Module", name)
        if space == "torch.optim":
            return kind("Optimizer", name)
        return kind("torch", name)

    def _from_facts(self, name: str, space: str) -> Kind:
        signatures = self.table.signatures(name)
        rows = self.table.rows(name)
        if not signatures and rows:
            signatures = tuple(s for row in rows for s in row.signatures)
        kinds = {from_text(s.result) for s in signatures if s.result}
        fields = next((s.fields for s in signatures if s.fields), ())
        known = kinds - {UNKNOWN}
        if len(known) == 1 and not fields:
            return next(iter(known))
        if TENSOR in known or (not known and space in ("torch.Tensor", "torch.nn.functional")):
            return TENSOR
        return next(iter(known), UNKNOWN)

    def of_forward(self, name: str, indices: bool = False) -> Kind:
        """The result of calling an instance of a torch Module class ("" is any Module).

        ``indices``: of one that was built to return them, which a variant of its row describes.
        """
        rows = [row for row in self.table.rows(name) if indices or ":" not in row.key]
        written = [from_text(row.forward) for row in rows if row.forward]
        return written[0] if written else _FORWARDS.get(name, TENSOR)
