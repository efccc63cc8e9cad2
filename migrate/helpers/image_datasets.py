"""In: folders as torchvision.datasets lays them out. Out: the same samples in the same order.

Nothing is downloaded; where files are missing, the error says which, and where they come from.
"""

import gzip
import os
import pickle

import numpy as np
from mindspore import Tensor
from PIL import Image

from migrate.helpers.data import Dataset

IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


class VisionDataset(Dataset):
    """Reproduces torchvision.datasets.VisionDataset: a folder, and what changes its samples."""

    def __init__(self, root, transform=None, target_transform=None):
        self.root = os.path.expanduser(root) if isinstance(root, str) else root
        self.transform, self.target_transform = transform, target_transform

    def changed(self, image, target):
        """A sample after the transforms."""
        image = image if self.transform is None else self.transform(image)
        return image, target if self.target_transform is None else self.target_transform(target)


def file_in(folder, name, origin):
    """The path of a file of a data set, as it is or packed by gzip."""
    for path in (os.path.join(folder, name), os.path.join(folder, name + ".gz")):
        if os.path.isfile(path):
            return path
    raise RuntimeError(f"{os.path.join(folder, name)} is not there; put there what {origin} has")


def array_in_idx(path):
    """The array of bytes in a file of the format of MNIST."""
    with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:
        data = file.read()
    if data[2] != 8:
        raise RuntimeError(f"{path}: only bytes are read, not type {data[2]}")
    sizes = np.frombuffer(data, ">i4", data[3], 4)
    return np.frombuffer(data, np.uint8, int(np.prod(sizes)), 4 + 4 * data[3]).reshape(sizes)


class MNIST(VisionDataset):
    """Reproduces torchvision.datasets.MNIST from the files in ``root``/MNIST/raw."""

    origin = "https://ossci-datasets.s3.amazonaws.com/mnist/"
    names = (
        "0 - zero",
        "1 - one",
        "2 - two",
        "3 - three",
        "4 - four",
        "5 - five",
        "6 - six",
        "7 - seven",
        "8 - eight",
        "9 - nine",
    )

    def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
        super().__init__(root, transform, target_transform)
        self.train = train
        which = "train" if train else "t10k"
        images = file_in(self.raw_folder, f"{which}-images-idx3-ubyte", self.origin)
        labels = file_in(self.raw_folder, f"{which}-labels-idx1-ubyte", self.origin)
        self.data = Tensor(array_in_idx(images))
        self.targets = Tensor(array_in_idx(labels).astype(np.int64))
        self.classes = list(self.names)

    @property
    def raw_folder(self):
        """Where the files lie."""
        return os.path.join(self.root, type(self).__name__, "raw")

    @property
    def class_to_idx(self):
        """The number of each class by its name."""
        return {name: number for number, name in enumerate(self.classes)}

    def __getitem__(self, index):
        image = Image.fromarray(np.asarray(self.data[index]))
        return self.changed(image, int(self.targets[index]))

    def __len__(self):
        return len(self.data)


class FashionMNIST(MNIST):
    """Reproduces torchvision.datasets.FashionMNIST from the files in ``root``/FashionMNIST/raw."""

    origin = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
    names = (
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    )


class KMNIST(MNIST):
    """Reproduces torchvision.datasets.KMNIST from the files in ``root``/KMNIST/raw."""

    origin = "http://codh.rois.ac.jp/kmnist/dataset/kmnist/"
    names = ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo")


class CIFAR10(VisionDataset):
    """Reproduces torchvision.datasets.CIFAR10 from ``root``/cifar-10-batches-py."""

    origin = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
    folder, meta, names, labels = "cifar-10-batches-py", "batches.meta", "label_names", "labels"
    train_files = tuple(f"data_batch_{number}" for number in range(1, 6))
    test_files = ("test_batch",)

    def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
        super().__init__(root, transform, target_transform)
        self.train = train
        batches = [self._read(name) for name in (self.train_files if train else self.test_files)]
        data = np.vstack([batch["data"] for batch in batches])
        self.data = data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        self.targets = [label for batch in batches for label in batch[self.labels]]
        self.classes = self._read(self.meta)[self.names]
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}

    def _read(self, name):
        path = file_in(os.path.join(self.root, self.folder), name, self.origin)
        with open(path, "rb") as file:
            return pickle.load(file, encoding="latin1")

    def __getitem__(self, index):
        return self.changed(Image.fromarray(self.data[index]), self.targets[index])

    def __len__(self):
        return len(self.data)


class CIFAR100(CIFAR10):
    """Reproduces torchvision.datasets.CIFAR100 from ``root``/cifar-100-python."""

    origin = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
    folder, meta, names, labels = "cifar-100-python", "meta", "fine_label_names", "fine_labels"
    train_files, test_files = ("train",), ("test",)


def image_in_file(path):
    """The image in a file, in RGB."""
    with open(path, "rb") as file:
        return Image.open(file).convert("RGB")


def files_of_class(folder, is_valid):
    """The valid files under the folder of a class, in the order of torchvision."""
    walked = sorted(os.walk(folder, followlinks=True))
    paths = [os.path.join(place, name) for place, _, names in walked for name in sorted(names)]
    return [path for path in paths if is_valid(path)]


class DatasetFolder(VisionDataset):
    """Reproduces torchvision.datasets.DatasetFolder: a folder for each class, in their order."""

    def __init__(
        self,
        root,
        loader,
        extensions=None,
        transform=None,
        target_transform=None,
        is_valid_file=None,
        allow_empty=False,
    ):
        super().__init__(root, transform, target_transform)
        if (extensions is None) == (is_valid_file is None):
            raise ValueError("give either extensions or is_valid_file")
        endings = (extensions,) if isinstance(extensions, str) else extensions or ()
        self.loader, self.extensions = loader, extensions
        self.classes = sorted(entry.name for entry in os.scandir(self.root) if entry.is_dir())
        if not self.classes:
            raise FileNotFoundError(f"{self.root} has no folder of a class")
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        is_valid = is_valid_file or (lambda path: path.lower().endswith(tuple(endings)))
        found = [files_of_class(os.path.join(self.root, name), is_valid) for name in self.classes]
        empty = [name for name, paths in zip(self.classes, found) if not paths]
        if empty and not allow_empty:
            raise FileNotFoundError(f"{self.root} has no valid file for {', '.join(empty)}")
        self.samples = [(path, number) for number, paths in enumerate(found) for path in paths]
        self.targets = [number for _, number in self.samples]

    def __getitem__(self, index):
        path, target = self.samples[index]
        return self.changed(self.loader(path), target)

    def __len__(self):
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """Reproduces torchvision.datasets.ImageFolder: images in a folder for each class."""

    def __init__(
        self,
        root,
        transform=None,
        target_transform=None,
        loader=None,
        is_valid_file=None,
        allow_empty=False,
    ):
        loader = image_in_file if loader is None else loader
        endings = IMAGE_ENDINGS if is_valid_file is None else None
        super().__init__(
            root, loader, endings, transform, target_transform, is_valid_file, allow_empty
        )
        self.imgs = self.samples


class FakeData(VisionDataset):
    """Reproduces torchvision.datasets.FakeData with other random images and labels."""

    def __init__(
        self,
        size=1000,
        image_size=(3, 224, 224),
        num_classes=10,
        transform=None,
        target_transform=None,
        random_offset=0,
    ):
        super().__init__(None, transform, target_transform)
        self.size, self.image_size, self.num_classes = size, tuple(image_size), num_classes
        self.random_offset = random_offset

    def __getitem__(self, index):
        if index >= len(self):
            raise IndexError(f"{type(self).__name__} index out of range")
        drawn = np.random.RandomState(index + self.random_offset)
        numbers = (drawn.standard_normal(self.image_size) * 255).astype(np.int64)
        pixels = numbers.astype(np.uint8).transpose(1, 2, 0)
        image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
        return self.changed(image, int(drawn.randint(self.num_classes)))

    def __len__(self):
        return self.size
