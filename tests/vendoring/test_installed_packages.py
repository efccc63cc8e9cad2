"""In: installed packages written in torch. Out: that each module of their conversions imports."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = """
axial_attention conformer deepctr_torch denoising_diffusion_pytorch efficientnet_pytorch
ema_pytorch facenet_pytorch g_mlp_pytorch glom_pytorch lambda_networks linformer lpips
mlp_mixer_pytorch nystrom_attention pretrainedmodels pytorch_fid pytorch_msssim pytorch_tcn
segmentation_models_pytorch siren_pytorch timm torch_einops_utils torchvision unet vit_pytorch
x_transformers
""".split()

# Modules that may fail, and why; the list may only shrink.
FAILING = {
    "denoising_diffusion_pytorch.fid_evaluation": "imports pytorch_fid, which needs torch",
    "denoising_diffusion_pytorch.repaint": "imports the module above",
    "facenet_pytorch.models.utils.tensorflow2pytorch": "needs TensorFlow",
    "facenet_pytorch.test": "imports tests that are not installed",
    "lambda_networks.tfkeras": "needs TensorFlow",
    "pretrainedmodels.models.wideresnet": "needs hickle",
    "pytorch_fid.__main__": "a script: it reads the command line when it is imported",
    "torchvision.io.video": "imports a package that is not public",
}

IMPORTS = """
import importlib, json, os, sys

folder, package = sys.argv[1:]


class NoTorch:
    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top in ("torch", "torchvision", "timm") and top != package:
            raise ImportError(f"{name} is out of reach")


sys.meta_path.insert(0, NoTorch())
sys.path.insert(0, folder)
sys.argv = ["imports"]
found, failed = [], {}
for place, _, files in os.walk(os.path.join(folder, package)):
    for file in files:
        if file.endswith(".py"):
            name = os.path.relpath(os.path.join(place, file), folder)[:-3].replace(os.sep, ".")
            found.append(name.removesuffix(".__init__"))
for name in sorted(found):
    try:
        importlib.import_module(name)
    except BaseException as error:
        failed[name] = f"{type(error).__name__}: {error}"
torch = sorted(name for name in sys.modules if name.split(".")[0] == "torch")
with open(os.path.join(folder, "imports.json"), "w") as file:
    json.dump({"found": len(found), "failed": failed, "torch": torch}, file)
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_imports_without_torch(package: str, tmp_path: Path) -> None:
    spec = importlib.util.find_spec(package)
    if (
        spec is None
        or not spec.submodule_search_locations
        or not importlib.util.find_spec("mindspore")
    ):
        pytest.skip(f"{package} or MindSpore is not installed")
    source, out = next(iter(spec.submodule_search_locations)), tmp_path / package
    subprocess.run(
        [sys.executable, "-m", "migrate", "convert", source, "-o", str(out)],
        capture_output=True,
        check=False,
    )
    script = [sys.executable, "-W", "ignore", "-c", IMPORTS, str(tmp_path), package]
    run = subprocess.run(script, capture_output=True, cwd=tmp_path, text=True, check=False)
    told = tmp_path / "imports.json"
    assert told.is_file(), run.stderr[-2000:]
    seen = json.loads(told.read_text(encoding="utf-8"))
    assert seen["found"] > 1 and not seen["torch"]
    assert {name: why for name, why in seen["failed"].items() if name not in FAILING} == {}
    healed = [n for n in FAILING if n.split(".")[0] == package and n not in seen["failed"]]
    assert not healed, "these import now: take them from the list"
