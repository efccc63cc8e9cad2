"""In: a library that a project imports. Out: methods of its objects that Tensors have as well."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from migrate.mapping.signatures import parse_signature
from migrate.mapping.table import Signature

# Only names that Tensors have too count, and only what can be called: ndarray.size() fails.
# "-> None": who uses the result means something else.
_PYTHON = """
index(value, start=0, stop=0)
split(sep: str=None, maxsplit: int=-1)
sort(*, key=None, reverse=False) -> None
values()
add(elem) -> None
indices(len: int)
"""
_NUMPY = """
all(axis=None, out=None, keepdims=False, *, where=True)
any(axis=None, out=None, keepdims=False, *, where=True)
argmax(axis=None, out=None, *, keepdims=False)
argmin(axis=None, out=None, *, keepdims=False)
argsort(axis=-1, kind: str=None, order=None, *, stable=None)
clip(min=None, max=None, out=None, **kwargs)
conj()
cumprod(axis=None, dtype=None, out=None)
cumsum(axis=None, dtype=None, out=None)
diagonal(offset=0, axis1=0, axis2=1)
dot(b, out=None)
flatten(order: str='C')
item(*args)
max(axis=None, out=None, keepdims=False, initial=None, where=True)
mean(axis=None, dtype=None, out=None, keepdims=False, *, where=True)
min(axis=None, out=None, keepdims=False, initial=None, where=True)
nonzero()
prod(axis=None, dtype=None, out=None, keepdims=False, initial=1, where=True)
put(indices, values, mode: str='raise') -> None
ravel(order: str='C')
repeat(repeats, axis=None)
reshape(*shape, order: str='C', copy=None)
resize(*new_shape, refcheck=True) -> None
round(decimals=0, out=None)
sort(axis=-1, kind: str=None, order=None, *, stable=None) -> None
squeeze(axis=None)
std(axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, mean=None)
sum(axis=None, dtype=None, out=None, keepdims=False, initial=0, where=True)
swapaxes(axis1, axis2)
take(indices, axis=None, out=None, mode: str='raise')
tolist()
trace(offset=0, axis1=0, axis2=1, dtype=None, out=None)
transpose(*axes)
var(axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=True, mean=None)
view(dtype: dtype=None, type: dtype=None)
"""
# Frames, series and sparse matrices: which arguments they take is another matter for each.
_FRAMES = (
    "abs add all any argmax argmin argsort bool ceil clip conj copy corr cos count cov cummax "
    "cummin cumprod cumsum diagonal diff div divide dot eq equal exp expm1 floor ge gt index item "
    "le log log1p lt max maximum mean median min minimum mod mode mul multiply ne nonzero power "
    "pow prod quantile rank ravel remainder repeat reshape resize round sign sin sort sqrt square "
    "squeeze std sub subtract sum take tan tanh trace transpose trunc unique values var view "
    "where xs"
)
_IMAGES = """
resize(size, resample=None, box=None, reducing_gap=None)
split()
transpose(method)
copy()
point(lut, mode=None)
"""
_STANDARD: Mapping[str, str] = {
    "array": "index(value, start=0, stop=0)\ntolist()",
    "collections": "index(value, start=0, stop=0)\nsubtract(iterable=None, **kwds) -> None",
    "decimal": "exp(context=None)\nlog10(context=None)\nlogical_and(other, context=None)\n"
    "logical_or(other, context=None)\nlogical_xor(other, context=None)\n"
    "max(other, context=None)\nmin(other, context=None)\nsqrt(context=None)",
    "logging": "log(level, msg, *args, **kwargs)",
    "multiprocessing": "put(obj, block=True, timeout=None) -> None",
    "queue": "put(item, block=True, timeout=None) -> None",
    "re": "split(string: str, maxsplit: int=0)\nsub(repl, string, count=0)\nexpand(template: str)",
}
# no method of theirs has an argument of one of these names
_TORCH_WORDS = frozenset({"dim", "dim0", "dim1", "keepdim", "other", "input", "memory_format",
                          "non_blocking", "unbiased", "descending", "largest"})  # fmt: skip
_ARRAYS = frozenset({"numpy", "cupy", "jax", "numba", "cv2", "h5py", "zarr", "imageio", "librosa",
                     "soundfile", "skimage", "matplotlib", "gym", "gymnasium"})  # fmt: skip
_SAY_DIM = frozenset({"xarray", "tinygrad", "oneflow", "jittor", "paddle", "mindspore"})
# no function of theirs returns an array, a frame or an image
_PLAIN = frozenset(
    "absl addict argcomplete attr attrs click colorama colorlog dotenv easydict einops fairscale "
    "fire ftfy hydra iopath loguru ml_collections mypy_extensions omegaconf opt_einsum packaging "
    "pkg_resources prettytable psutil pydantic pytest regex requests rich safetensors "
    "setuptools simplejson six tabulate tensorboard tensorboardX termcolor toml tomli tqdm typer "
    "typing_extensions ujson wandb yacs yaml".split()
)
# none of their functions returns a Tensor or Module that is passed to it
WITHOUT_TORCH = _ARRAYS | _PLAIN | frozenset(
    "IPython PIL av bs4 datasets decord gensim joblib lmdb lxml matplotlib nltk networkx "
    "open3d openpyxl optuna pandas plotly polars pyarrow pycocotools scipy seaborn shapely "
    "sentencepiece sklearn soundfile spacy statsmodels sympy tensorflow tokenizers trimesh "
    "xgboost".split()
)  # fmt: skip


def _signatures(text: str) -> Mapping[str, tuple[Signature, ...]]:
    found = (line.strip() for line in text.splitlines())
    return {line.partition("(")[0]: (parse_signature(line),) for line in found if line}


@cache
def python() -> Mapping[str, tuple[Signature, ...]]:
    """Methods of strings, lists, dicts and sets."""
    return _signatures(_PYTHON)


@cache
def numpy() -> Mapping[str, tuple[Signature, ...]]:
    """Methods of arrays."""
    return _signatures(_NUMPY)


@cache
def of_library(root: str, standard: bool) -> Mapping[str, tuple[Signature, ...]]:
    """Methods of what the library can bring; nothing is known of most, so they bring anything."""
    if root in _PLAIN:
        return {}
    if standard:
        return _signatures(_STANDARD.get(root, ""))
    if root == "torchvision":
        return _signatures(_IMAGES)
    if root in _ARRAYS:
        return numpy()
    words = "dim=None, keepdim=None, " if root in _SAY_DIM else ""
    anything = parse_signature(f"f(*args, {words}**kwargs)")
    frames = dict.fromkeys(_FRAMES.split(), (anything,))
    return {**frames, **{n: s + frames.get(n, ()) for n, s in numpy().items()},
            **_signatures(_IMAGES)}  # fmt: skip


def takes(signature: Signature, keyword: str) -> bool:
    """Whether a signature that takes anything may mean an argument of this name."""
    return signature.param(keyword) is not None or keyword not in _TORCH_WORDS
