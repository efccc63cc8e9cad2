"""In: dtypes and conditions. Out: torch's number limits, checks and decorators."""

import contextlib

import mindspore as ms

from migrate.helpers.keeping import is_pynative


def script(obj=None, *args, **kwargs):
    """torch.jit.script, ignore, export and unused as decorators: the function stays as it is."""
    return obj if callable(obj) else script


def assert_true(condition, message=None):
    """torch._assert: raises AssertionError with the message where the condition does not hold."""
    assert condition, message


def assert_async(val, assert_msg=None):
    """torch._assert_async: raises AssertionError in PyNative; graph mode looks at no numbers."""
    if is_pynative():
        assert val, assert_msg


def check_with(error_type, cond, message=None):
    """torch._check_with: raises ``error_type`` with the text of ``message()``."""
    if is_pynative() and not cond:
        text = "Expected cond to be True, but got False." if message is None else message()
        raise error_type(text)
    assert cond


def check_tensor_all_with(error_type, cond, message=None):
    """torch._check_tensor_all_with: all elements hold; graph mode looks at no numbers."""
    if is_pynative():
        check_with(error_type, bool(cond.all()), message)


def full_precision(device_type, enabled=True):
    """Raises where torch.autocast would lower the precision on a CPU: here it stays float32."""
    lowers = enabled and str(device_type).partition(":")[0] == "cpu"
    if lowers and ms.get_context("device_target") == "CPU":
        raise NotImplementedError("torch2ms LOP105 torch.autocast computes in bfloat16 here")


def without_autocast(device_type, dtype=None, enabled=True, cache_enabled=None):
    """torch.autocast as a value, where it would change nothing on a CPU."""
    full_precision(device_type, enabled)
    return contextlib.nullcontext()


def without_cuda_autocast(enabled=True, dtype=ms.float16, cache_enabled=True):
    """torch.cuda.amp.autocast as a value: it changes nothing on a CPU."""
    return contextlib.nullcontext()


class kernel_choice:
    """torch.nn.attention.sdpa_kernel as a value: MindSpore chooses its kernels itself."""

    def __init__(self, *backends, **options):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


FLOAT_LIMITS = {
    "Float16": (65504.0, 9.765625e-04, 6.103515625e-05),
    "BFloat16": (3.3895313892515355e38, 7.8125e-03, 1.1754943508222875e-38),
    "Float32": (3.4028234663852886e38, 1.1920928955078125e-07, 1.1754943508222875e-38),
    "Float64": (1.7976931348623157e308, 2.220446049250313e-16, 2.2250738585072014e-308),
}
INT_BITS = {
    "Int8": 7, "Int16": 15, "Int32": 31, "Int64": 63,
    "UInt8": 8, "UInt16": 16, "UInt32": 32, "UInt64": 64,
}  # fmt: skip


@ms.jit_class
class finfo:
    """torch.finfo: max, min, eps, tiny, smallest_normal and bits of a floating point dtype."""

    def __init__(self, type=None):
        name = str(ms.float32 if type is None else type)
        self.max, self.eps, self.tiny = FLOAT_LIMITS[name]
        self.min, self.smallest_normal = -self.max, self.tiny
        self.bits = int(name.lstrip("BFloat"))


@ms.jit_class
class iinfo:
    """torch.iinfo: max, min and bits of a whole number dtype."""

    def __init__(self, type):
        name = str(type)
        self.max = 2 ** INT_BITS[name] - 1
        self.min = 0 if name[0] == "U" else -(2 ** INT_BITS[name])
        self.bits = INT_BITS[name] + (0 if name[0] == "U" else 1)


def device_type(device):
    """``device.type``, where the device of a Tensor, which is None here, may have been passed."""
    return "cpu" if device is None else device.type


class Device:
    """torch.device as a name: its ``type`` and ``index``. It places nothing."""

    def __init__(self, type, index=None):
        name, _, number = str(type).partition(":")
        self.type = name
        self.index = int(number) if number else index

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self):
        return f"device({str(self)!r})"

    def __eq__(self, other):
        return isinstance(other, Device) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))
