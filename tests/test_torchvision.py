"""In: images and folders. Out: that our transforms and data sets give what torchvision's give."""

from __future__ import annotations

import gzip
import importlib.util
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

needed = ("torch", "torchvision", "mindspore", "PIL")
if any(importlib.util.find_spec(name) is None for name in needed):
    pytest.skip("needs torch, torchvision and MindSpore", allow_module_level=True)

from PIL import Image  # noqa: E402

from migrate.parity.torch_model import declare  # noqa: E402

KEPT = declare()  # torchvision's operators, for as long as this is imported
torch = pytest.importorskip("torch")
T = pytest.importorskip("torchvision.transforms")
TF = pytest.importorskip("torchvision.transforms.functional")
TD = pytest.importorskip("torchvision.datasets")
TU = pytest.importorskip("torchvision.utils")

from mindspore import Tensor  # noqa: E402

from migrate.helpers import image_augmentation as augmentation  # noqa: E402
from migrate.helpers import image_datasets, image_grids, image_transforms, images  # noqa: E402

MODES = ("L", "RGB", "RGBA", "1", "F")
SIZES = ((37, 23), (16, 16), (9, 31))


def picture(mode: str, size: tuple[int, int]) -> Image.Image:
    rng = np.random.RandomState(size[0])
    array = rng.randint(0, 256, (size[1], size[0], 4)).astype(np.uint8)
    if mode == "F":
        return Image.fromarray(rng.rand(size[1], size[0]).astype(np.float32))
    return Image.fromarray(array, "RGBA").convert(mode)


def same(mine: Any, theirs: Any) -> None:
    """Equal to the last bit, in kind, shape and dtype."""
    if isinstance(theirs, Image.Image):
        assert isinstance(mine, Image.Image) and mine.mode == theirs.mode
        mine, theirs = np.asarray(mine), np.asarray(theirs)
    else:
        assert isinstance(mine, Tensor)
        mine, theirs = mine.asnumpy(), theirs.numpy()
    assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
    assert np.array_equal(mine, theirs)


def both(make: Callable[[Any], Any], ours: Any) -> tuple[Any, Any]:
    return make(ours), make(T)


def interpolated(module: Any, name: str) -> Any:
    return T.InterpolationMode(name) if module is T else name


COLOURED = ("L", "RGB", "RGBA")
EXACT: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "ToTensor": (lambda m: m.ToTensor(), MODES),
    "PILToTensor": (lambda m: m.PILToTensor(), ("L", "RGB", "RGBA", "F")),
    "Resize int": (lambda m: m.Resize(13), COLOURED),
    "Resize one": (lambda m: m.Resize([13]), COLOURED),
    "Resize pair": (lambda m: m.Resize((13, 40)), (*COLOURED, "F")),
    "Resize max_size": (lambda m: m.Resize(13, max_size=15), COLOURED),
    "Resize bicubic": (lambda m: m.Resize(50, interpolated(m, "bicubic")), COLOURED),
    "Resize nearest": (lambda m: m.Resize(50, interpolated(m, "nearest")), COLOURED),
    "CenterCrop inside": (lambda m: m.CenterCrop(8), MODES),
    "CenterCrop outside": (lambda m: m.CenterCrop((30, 33)), COLOURED),
    "Pad": (lambda m: m.Pad(3), COLOURED),
    "Pad two": (lambda m: m.Pad((1, 2), fill=7), COLOURED),
    "Pad four": (lambda m: m.Pad((1, 2, 3, 4), padding_mode="reflect"), COLOURED),
    "Pad edge": (lambda m: m.Pad([2], padding_mode="edge"), COLOURED),
    "Pad symmetric": (lambda m: m.Pad(2, padding_mode="symmetric"), COLOURED),
    "Grayscale": (lambda m: m.Grayscale(), COLOURED),
    "Grayscale 3": (lambda m: m.Grayscale(3), COLOURED),
    "Compose": (lambda m: m.Compose([m.Resize(20), m.CenterCrop(16), m.ToTensor()]), COLOURED),
}
# Random ones with one possible outcome.
CERTAIN: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "flip": (lambda m: m.RandomHorizontalFlip(1.0), MODES),
    "no flip": (lambda m: m.RandomHorizontalFlip(0.0), MODES),
    "vertical": (lambda m: m.RandomVerticalFlip(p=1.0), MODES),
    "grey": (lambda m: m.RandomGrayscale(1.0), ("L", "RGB")),
    "crop of all": (lambda m: m.RandomCrop((43, 45), padding=(4, 10)), ()),
    "rotation": (lambda m: m.RandomRotation((30, 30)), COLOURED),
    "rotation expand": (lambda m: m.RandomRotation((-7, -7), expand=True, fill=3), COLOURED),
    "brightness": (lambda m: m.ColorJitter(brightness=(1.3, 1.3)), ("L", "RGB")),
    "contrast": (lambda m: m.ColorJitter(contrast=(0.4, 0.4)), ("L", "RGB")),
    "saturation": (lambda m: m.ColorJitter(saturation=(2.0, 2.0)), ("L", "RGB")),
    "hue": (lambda m: m.ColorJitter(hue=(-0.3, -0.3)), ("L", "RGB")),
    "nothing": (lambda m: m.ColorJitter(0, 0, 0, 0), COLOURED),
    "whole": (lambda m: m.RandomResizedCrop(12, scale=(9.0, 9.0)), COLOURED),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", EXACT)
def test_a_transform_gives_the_pixels_of_torchvision(name: str, size: tuple[int, int]) -> None:
    make, modes = EXACT[name]
    mine, theirs = both(make, image_transforms)
    for mode in modes:
        image = picture(mode, size)
        same(mine(image), theirs(image))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", [name for name, (_, modes) in CERTAIN.items() if modes])
def test_a_random_transform_without_choice_gives_them_too(name: str, size: tuple[int, int]) -> None:
    make, modes = CERTAIN[name]
    mine, theirs = both(make, augmentation)
    for mode in modes:
        image = picture(mode, size)
        same(mine(image), theirs(image))


def test_every_byte_becomes_the_same_float() -> None:
    array = np.arange(256, dtype=np.uint8).reshape(16, 16)
    same(images.image_to_tensor(array), TF.to_tensor(array))
    numbers = array.astype(np.float64)[:, :, None]
    same(images.image_to_tensor(numbers), TF.to_tensor(numbers))  # no division: no bytes


GRIDS: list[dict[str, Any]] = [
    {},
    {"nrow": 3, "padding": 1, "pad_value": 0.5},
    {"normalize": True},
    {"normalize": True, "scale_each": True, "nrow": 2},
    {"normalize": True, "value_range": (-1, 1)},
]


@pytest.mark.parametrize("settings", GRIDS, ids=str)
@pytest.mark.parametrize(
    "shape", [(5, 3, 4, 6), (4, 1, 3, 3), (1, 3, 4, 4), (3, 4, 5), (1, 4, 5), (4, 5)]
)
def test_grids_of_images_and_their_files(
    shape: tuple[int, ...], settings: dict[str, Any], tmp_path: Path
) -> None:
    values = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    mine, theirs = Tensor(values), torch.from_numpy(values)
    same(image_grids.image_grid(mine, **settings), TU.make_grid(theirs, **settings))
    image_grids.save_image(mine, tmp_path / "mine.png", **settings)
    TU.save_image(theirs, tmp_path / "theirs.png", **settings)
    assert (tmp_path / "mine.png").read_bytes() == (tmp_path / "theirs.png").read_bytes()
    if len(shape) < 4:
        several = image_grids.image_grid([mine, mine], **settings)
        same(several, TU.make_grid([theirs, theirs], **settings))


def test_a_grid_of_whole_numbers_has_no_file() -> None:
    whole = Tensor(np.ones((2, 3, 4, 4), np.int32))
    same(image_grids.image_grid(whole), TU.make_grid(torch.ones(2, 3, 4, 4).int()))
    with pytest.raises(TypeError, match="float"):
        image_grids.save_image(whole, "never.png")
    with pytest.raises(TypeError, match="list containing"):
        image_grids.image_grid([1])


def test_tensors_are_normalized_converted_and_made_images_again() -> None:
    image = picture("RGB", (9, 7))
    mine, theirs = images.image_to_tensor(image), TF.to_tensor(image)
    mean, std = (0.485, 0.456, 0.406), [0.229, 0.224, 0.225]
    same(image_transforms.Normalize(mean, std)(mine), T.Normalize(mean, std)(theirs))
    same(images.tensor_to_image(mine), TF.to_pil_image(theirs))
    bytes_of = image_transforms.PILToTensor()(image)
    same(image_transforms.ConvertImageDtype()(bytes_of), T.ConvertImageDtype(torch.float)(
        T.PILToTensor()(image)
    ))  # fmt: skip
    same(images.mirrored_image(mine), TF.hflip(theirs))
    same(images.center_cropped(mine, 5), TF.center_crop(theirs, 5))
    same(images.center_cropped(mine, 12), TF.center_crop(theirs, 12))
    padded = augmentation.RandomCrop((15, 17), padding=4)
    same(padded(mine), T.RandomCrop((15, 17), padding=4)(theirs))


@pytest.mark.parametrize("transform", ["Resize(4)", "Grayscale()"])
def test_what_would_be_interpolated_otherwise_is_refused(transform: str) -> None:
    made = eval(f"image_transforms.{transform}")  # a literal of this file
    with pytest.raises(TypeError, match="in front of ToTensor"):
        made(Tensor(np.zeros((3, 8, 8), np.float32)))
    with pytest.raises(TypeError, match="expected"):
        made(np.zeros((8, 8, 3), np.uint8))


def places(crop: Any, count: int) -> np.ndarray[Any, Any]:
    """Where crops of an image whose pixels tell their place begin, and how large they were."""
    y, x = np.mgrid[0:20, 0:30].astype(np.uint8)
    image = Image.fromarray(np.stack([y, x, x], 2))
    found = []
    for _ in range(count):
        array = np.asarray(crop(image)).astype(float)
        found.append([array[..., 0].mean(), array[..., 1].mean(), np.ptp(array[..., 1])])
    return np.array(found)


def both_random(name: str, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    np.random.seed(1)
    torch.manual_seed(1)
    return getattr(augmentation, name)(*args, **kwargs), getattr(T, name)(*args, **kwargs)


@pytest.mark.parametrize("name", ["RandomCrop", "RandomResizedCrop"])
def test_crops_are_distributed_as_in_torchvision(name: str) -> None:
    mine, theirs = (places(one, 1500) for one in both_random(name, (8, 8)))
    error = np.sqrt((mine.var(0) + theirs.var(0)) / 1500) + 1e-9
    assert (np.abs(mine.mean(0) - theirs.mean(0)) < 4 * error).all()
    assert np.allclose(mine.std(0), theirs.std(0), rtol=0.1, atol=1e-6)


def test_erased_parts_are_distributed_as_in_torchvision() -> None:
    mine, theirs = both_random("RandomErasing", p=0.7)
    ones = np.ones((3, 20, 30), np.float32)
    left = np.array([mine(Tensor(ones)).asnumpy().mean((0, 2)) for _ in range(1500)])
    right = np.array([theirs(torch.tensor(ones)).numpy().mean((0, 2)) for _ in range(1500)])
    error = np.sqrt((left.var(0) + right.var(0)) / 1500)
    assert (np.abs(left.mean(0) - right.mean(0)) < 4 * error).all()
    assert (left.min(1) < 1).mean() == pytest.approx((right.min(1) < 1).mean(), abs=0.06)


def idx(array: np.ndarray[Any, Any]) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}i", *array.shape)
    return head + array.astype(np.uint8).tobytes()


def write_mnist(root: Path, name: str) -> None:
    rng = np.random.RandomState(2)
    folder = root / name / "raw"
    folder.mkdir(parents=True)
    for which, count in (("train", 12), ("t10k", 5)):
        pixels, labels = rng.randint(0, 256, (count, 28, 28)), rng.randint(0, 10, count)
        (folder / f"{which}-images-idx3-ubyte").write_bytes(idx(pixels))
        (folder / f"{which}-labels-idx1-ubyte").write_bytes(idx(labels))


def samples_agree(mine: Any, theirs: Any) -> None:
    assert len(mine) == len(theirs) > 0
    for index in range(len(theirs)):
        (image, target), (image_there, target_there) = mine[index], theirs[index]
        same(image, image_there)
        assert target == target_there and type(target) is type(target_there)


@pytest.mark.parametrize("name", ["MNIST", "FashionMNIST", "KMNIST"])
def test_the_files_of_mnist_are_read_as_by_torchvision(name: str, tmp_path: Path) -> None:
    write_mnist(tmp_path, name)
    for train in (True, False):
        mine = getattr(image_datasets, name)(str(tmp_path), train=train)
        theirs = getattr(TD, name)(str(tmp_path), train=train)
        samples_agree(mine, theirs)
        same(mine.data, theirs.data)
        same(mine.targets, theirs.targets)
        assert list(mine.classes) == list(theirs.classes)
        assert mine.class_to_idx == theirs.class_to_idx
    with pytest.raises(RuntimeError, match=r"is not there; put there what http"):
        getattr(image_datasets, name)(str(tmp_path / "other"), download=True)


def test_packed_files_of_mnist_are_read_as_they_are(tmp_path: Path) -> None:
    write_mnist(tmp_path, "MNIST")
    plain = image_datasets.MNIST(str(tmp_path))
    same(plain.data, TD.MNIST(tmp_path).train_data)
    for path in list((tmp_path / "MNIST" / "raw").iterdir()):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    packed = image_datasets.MNIST(str(tmp_path))
    assert np.array_equal(plain.data.asnumpy(), packed.data.asnumpy())


@pytest.mark.parametrize("name", ["CIFAR10", "CIFAR100"])
def test_the_files_of_cifar_are_read_as_by_torchvision(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = getattr(image_datasets, name), getattr(TD, name)
    folder = tmp_path / theirs.base_folder
    folder.mkdir()
    rng = np.random.RandomState(4)
    for batch in (*ours.train_files, *ours.test_files):
        data = rng.randint(0, 256, (3, 3072)).astype(np.uint8)
        content = {"data": data, ours.labels: rng.randint(0, 10, 3).tolist()}
        (folder / batch).write_bytes(pickle.dumps(content))
    names = [f"class {number}" for number in range(10)]
    (folder / ours.meta).write_bytes(pickle.dumps({ours.names: names}))
    # the checksums are those of the real files
    monkeypatch.setattr("torchvision.datasets.cifar.check_integrity", lambda *args: True)
    for train in (True, False):
        mine, expected = ours(str(tmp_path), train), theirs(str(tmp_path), train)
        samples_agree(mine, expected)
        assert np.array_equal(mine.data, expected.data) and mine.targets == expected.targets
        assert mine.classes == expected.classes and mine.class_to_idx == expected.class_to_idx


def test_a_folder_of_images_is_read_as_by_torchvision(tmp_path: Path) -> None:
    for name in ("b/2.png", "b/inner/0.PNG", "a/10.png", "a/9.jpg", "c/x.bmp", "a/note.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        picture("RGBA" if "10" in name else "RGB", (6, 5)).convert("RGB").save(
            path, format={"jpg": "JPEG", "bmp": "BMP"}.get(path.suffix[1:], "PNG")
        )
    mine, theirs = image_datasets.ImageFolder(str(tmp_path)), TD.ImageFolder(str(tmp_path))
    assert mine.samples == theirs.samples and mine.targets == theirs.targets
    assert mine.classes == theirs.classes and mine.class_to_idx == theirs.class_to_idx
    samples_agree(mine, theirs)
    valid = lambda path: path.endswith("0.png")  # noqa: E731
    for made in (image_datasets.ImageFolder, TD.ImageFolder):
        with pytest.raises(FileNotFoundError):
            made(str(tmp_path), is_valid_file=valid)
        assert len(made(str(tmp_path), is_valid_file=valid, allow_empty=True)) == 1


def test_fake_data_has_the_shapes_of_torchvision() -> None:
    mine, theirs = image_datasets.FakeData(3, (3, 8, 9)), TD.FakeData(3, (3, 8, 9))
    assert len(mine) == len(theirs)
    for (image, target), (image_there, target_there) in zip(mine, theirs, strict=False):
        assert image.size == image_there.size and image.mode == image_there.mode
        assert type(target) is type(target_there) and 0 <= target < 10
    assert np.array_equal(np.asarray(mine[1][0]), np.asarray(mine[1][0]))


PROGRAM = """
import torch
import torchvision
import torchvision.transforms as transforms
import torchvision.transforms.functional as TF
from torchvision import datasets
from torchvision.transforms import InterpolationMode


def run(root, image):
    train = transforms.Compose([
        transforms.Resize(30, interpolation=InterpolationMode.BICUBIC),
        transforms.RandomApply([transforms.RandomRotation((20, 20))], p=1.0),
        transforms.CenterCrop((28, 24)),
        transforms.RandomHorizontalFlip(p=1.0),
        transforms.ToTensor(),
        transforms.Normalize((0.1307,), (0.3081,)),
        transforms.Lambda(lambda x: x.reshape(-1)),
    ])
    data = datasets.MNIST(root, train=True, transform=train)
    loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=False)
    found = []
    for images, labels in loader:
        found.append(images.sum(1).numpy())
        found.append((labels == data.targets[:4]).numpy())
    plain = torchvision.datasets.MNIST(root, train=False)
    x, target = plain[1]
    found.append(TF.to_tensor(TF.resize(x, [9, 11])).numpy())
    found.append(TF.normalize(TF.to_tensor(image), [0.5] * 3, [0.2] * 3).numpy())
    for changed in (
        TF.crop(image, 2, 3, 8, 9), TF.center_crop(image, 6), TF.hflip(image), TF.vflip(image),
        TF.pad(image, 2), TF.rotate(image, 30), TF.to_grayscale(image, 3),
        TF.adjust_brightness(image, 1.2), TF.adjust_contrast(image, 0.7),
        TF.adjust_saturation(image, 1.9), TF.adjust_hue(image, 0.2),
        TF.rotate(image, 10, TF.InterpolationMode.BILINEAR, fill=[1, 2, 3]),
        TF.to_pil_image(TF.pil_to_tensor(image)),
    ):
        found.append(TF.convert_image_dtype(TF.pil_to_tensor(changed), torch.float32).numpy())
    return found, target, data.classes, len(plain)
"""


def test_a_converted_script_prepares_the_same_data(tmp_path: Path) -> None:
    from migrate.mapping import table
    from migrate.records.outcomes import Outcome
    from migrate.workspace.project import convert_text

    write_mnist(tmp_path, "MNIST")
    made = convert_text(PROGRAM, table.load(()))
    assert not [e for e in made.entries if e.outcome is Outcome.FLAGGED]
    assert "torch" not in [line.split()[1] for line in made.text.splitlines() if "import " in line]
    image = picture("RGB", (21, 17))
    (theirs, *rest), (mine, *own) = (
        called(text, str(tmp_path), image) for text in (PROGRAM, made.text)
    )
    assert own == rest and len(mine) == len(theirs)
    for left, right in zip(mine, theirs, strict=True):
        assert left.dtype == right.dtype
        np.testing.assert_allclose(left, right, rtol=2e-6, atol=2e-5)


def called(text: str, *args: Any) -> Any:
    space: dict[str, Any] = {}
    exec(compile(text, "program.py", "exec"), space)
    return space["run"](*args)
