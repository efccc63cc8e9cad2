"""In: the table and a program. Out: the attributes that only Tensors have."""

from __future__ import annotations

from migrate.program import Program
from migrate.table import Table

# what numpy arrays, paths, images, configurations and files have as well
_NUMPY = (
    "T all any argmax argmin argpartition argsort astype base byteswap choose clip compress conj "
    "conjugate copy ctypes cumprod cumsum data diagonal dot dtype dump dumps fill flags flat "
    "flatten getfield imag item itemset itemsize mT max mean min nbytes ndim newbyteorder nonzero "
    "partition prod ptp put ravel real repeat reshape resize round searchsorted setfield setflags "
    "shape size sort squeeze std strides sum swapaxes take tobytes tofile tolist tostring trace "
    "transpose var view name names type is_sparse grad device layout where add sub mul div eq ne "
    "lt gt le ge index_add abs pow log exp sqrt map apply_ split rename stem expand join numpy "
    "square sin cos tan rotate crop filter convert load save show close read write seek tell "
    "requires_grad is_cuda set_ type_as to cpu cuda float half double int long bool normal_ mode "
    "storage share_memory_ histogram quantile unique values indices rank select narrow is_leaf "
    "sign floor ceil and_ or_ not_ xor matmul inverse det rad2deg deg2rad isin corr cov sum_to_size"
).split()


def tensor_only(table: Table, program: Program) -> frozenset[str]:
    """Attributes that only Tensors have: by elimination, not by spelling."""
    names = {n.rpartition(".")[2] for n in table.torch.names if n.startswith("torch.Tensor.")}
    others: set[str] = set()
    for owner in (str, list, dict, tuple, set, int, float, complex, bytes, slice, range):
        others.update(dir(owner))
    others.update(_NUMPY)
    others.update(
        n.rpartition(".")[2]
        for n in table.torch.names
        if n.startswith(("torch.nn.Module.", "torch.optim."))
    )
    for owned in program.classes.values():
        others.update(owned.methods)
        others.update(owned.stores)
    return frozenset(n for n in names if n not in others and not n.startswith("_"))
