"""In: nothing. Out: which parts of torch the facts cover, and how far."""

from __future__ import annotations

FULL = (
    "torch",
    "torch.nn",
    "torch.nn.functional",
    "torch.nn.init",
    "torch.nn.utils",
    "torch.nn.utils.rnn",
    "torch.nn.utils.parametrizations",
    "torch.nn.utils.parametrize",
    "torch.nn.attention",
    "torch.nn.parallel",
    "torch.linalg",
    "torch.special",
    "torch.fft",
    "torch.optim",
    "torch.optim.lr_scheduler",
    "torch.optim.swa_utils",
    "torch.distributions",
    "torch.utils.data",
    "torch.utils.data.distributed",
    "torch.utils.checkpoint",
    "torch.autograd",
    "torch.autograd.function",
    "torch.autograd.functional",
    "torch.cuda",
    "torch.cuda.amp",
    "torch.amp",
    "torch.jit",
    "torch.backends",
    "torch.backends.cudnn",
    "torch.backends.cuda",
    "torch.backends.mps",
    "torch.random",
    "torch.hub",
    "torch.func",
    "torch.utils.model_zoo",
    "torch.utils.hooks",
    "torch.nn.modules.utils",
    "torch.nn.attention.flex_attention",
    "torch.serialization",
    "torch.accelerator",
)
NAMES_ONLY = (
    "torch.distributed",
    "torch.multiprocessing",
    "torch.compiler",
    "torch.fx",
    "torch.onnx",
    "torch.profiler",
    "torch.quantization",
    "torch.sparse",
    "torch.mps",
    "torch.version",
    "torch.types",
    "torch.distributed.tensor",
    "torch.distributed.fsdp",
    "torch.export",
    "torch.futures",
    "torch.library",
    "torch.masked",
    "torch.nested",
    "torch.testing",
    "torch.xpu",
)
# Names that start with an underscore and yet are written in model code.
PRIVATE = {
    "torch.nn.init": (
        "_calculate_fan_in_and_fan_out",
        "_calculate_correct_fan",
        "_no_grad_trunc_normal_",
    ),
    "torch.optim.lr_scheduler": ("_LRScheduler",),
    "torch": ("__version__", "_assert", "_check"),
    "torch.nn.modules.utils": ("_single", "_pair", "_triple", "_quadruple", "_ntuple"),
    "torch.backends.cudnn": (
        "allow_tf32",
        "benchmark",
        "benchmark_limit",
        "deterministic",
        "enabled",
    ),
    "torch.jit": (
        "is_scripting",
        "is_tracing",
        "_overload",
        "_overload_method",
        "_script_if_tracing",
    ),
}
# The classes of the torch namespace itself whose members are listed; the rest is for compilers.
WITH_MEMBERS = ("Tensor", "Generator", "Size", "device", "dtype", "finfo", "iinfo")
# Tensor methods whose Python binding is written by hand and differs from the yaml file.
BY_HAND = ("to",)
SPACES = {
    "torch": "",
    "torch.nn.functional": "nn",
    "torch.linalg": "linalg",
    "torch.special": "special",
    "torch.fft": "fft",
}
