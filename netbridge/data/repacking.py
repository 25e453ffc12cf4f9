"""Pictures on the disk written anew, smaller, as WebDataset shards: decoding then holds up no fast processor."""

import io
import json
import tarfile
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from netbridge.data.pictures import Index, Pictures
from netbridge.progress import progress_bar
from odelab.files import replacing

UNFINISHED = ".unfinished"  # what the name of the folder ends in until every shard is there
FACTS = "repacked.json"


def repack(pictures: Pictures, out, short: int = 256, each: int = 1000, quality: int = 90, workers: int = 0) -> Path:
    """Write the pictures of a data set as shards of smaller pictures, which `data.imagenet` reads.

    pictures  what `data.imagenet` returned
    out       the folder of the shards, which must not be there yet. Until all are written its name ends in
              `.unfinished`; the same call goes on with the shards that are missing, and each is whole or not there
    short     a picture whose shorter side is longer than this is resized until it is so long, in pixels (256); others
              keep their bytes
    each      pictures of a shard (1000)
    quality   of the JPEGs, from 1 to 95 (90)
    workers   processes that decode and encode; 0: this one does (0)

    Returns the folder. Order and labels are those of `pictures`; the names of the classes become their numbers, as
    shards hold no others. Boxes for training are drawn in the smaller pictures, so that a network trained on them
    differs in its bits. Raises FileExistsError where `out` is there, ValueError where it was begun from other pictures
    or with other options.

    >>> import tempfile
    >>> from netbridge import data
    >>> folder = tempfile.mkdtemp()
    >>> big = data.imagenet(data.miniature("imagenet", folder, classes=2, each=3) / "tree", size=24, resize=30)
    >>> small = data.imagenet(data.repack(big, f"{folder}/small", short=30, each=4), size=24, resize=30)
    >>> small.train.labels.tolist() == big.train.labels.tolist(), small.train.picture(0).height
    (True, 30)
    """
    for name, value, most in (("short", short, None), ("each", each, None), ("quality", quality, 95)):
        if not isinstance(value, int) or value < 1 or (most is not None and value > most):
            limit = "on" if most is None else f"to {most}"
            raise ValueError(f"`{name}` must be a whole number from 1 {limit}, got {value!r}.")
    place = Path(out).expanduser()
    if place.exists():
        raise FileExistsError(f"{place} is there already; choose another `out`, or remove it.")
    unfinished = place.with_name(place.name + UNFINISHED)
    unfinished.mkdir(parents=True, exist_ok=True)
    check_facts(
        unfinished / FACTS,
        {
            "pictures": pictures.train.digest() + pictures.test.digest(),
            "short": short,
            "each": each,
            "quality": quality,
        },
    )
    shards = [
        (part, number)
        for part, index in (("train", pictures.train), ("val", pictures.test))
        for number in range(-(-len(index) // each))
    ]
    missing = [one for one in shards if not shard_path(unfinished, *one).is_file()]
    writer = Writer(pictures, unfinished, short, each, quality)
    loader = DataLoader(writer, sampler=missing, batch_size=None, num_workers=workers, generator=torch.Generator())
    with progress_bar(f"packing {pictures.name}", len(shards), len(shards) - len(missing)) as advance:
        for _ in loader:
            advance()
    unfinished.rename(place)
    return place


def check_facts(path: Path, facts: dict) -> None:
    """Keep what the shards are made of and how; refuse a folder that was begun otherwise."""
    if not path.is_file():
        with replacing(path) as new:
            new.write_text(json.dumps(facts))
    elif (found := json.loads(path.read_text())) != facts:
        wrong = ", ".join(name for name in facts if found.get(name) != facts[name])
        raise ValueError(f"{path.parent} was begun with another {wrong}; remove it, or choose another `out`.")


def shard_path(folder: Path, part: str, number: int) -> Path:
    return folder / f"pictures-{part}-{number:06d}.tar"


class Writer(Dataset):
    """Writes a shard when it is asked for: an item is (part, number of the shard)."""

    def __init__(self, pictures: Pictures, folder: Path, short: int, each: int, quality: int):
        self.indices = {"train": pictures.train, "val": pictures.test}
        self.folder, self.short, self.each, self.quality = folder, short, each, quality

    def __getitem__(self, item) -> int:
        part, number = item
        index, first = self.indices[part], number * self.each
        chosen = range(first, min(first + self.each, len(index)))
        with replacing(shard_path(self.folder, part, number)) as new, tarfile.open(new, "w") as shard:
            for row in chosen:
                add(shard, f"{row:09d}.jpg", self.content(index, row))
                add(shard, f"{row:09d}.cls", str(int(index.labels[row])).encode())
        return number

    def content(self, index: Index, row: int) -> bytes:
        """A picture's file, at most `short` pixels high or wide."""
        from PIL import Image

        picture = index.picture(row)
        factor = self.short / min(picture.size)
        if factor >= 1:
            return index.read(row)
        size = tuple(np.rint(np.multiply(picture.size, factor)).astype(int).tolist())
        stream = io.BytesIO()
        picture.resize(size, Image.Resampling.BICUBIC).save(stream, "JPEG", quality=self.quality)
        return stream.getvalue()


def add(shard: tarfile.TarFile, name: str, content: bytes) -> None:
    """A file of an archive, without a time, so that the same pictures give the same bytes."""
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    shard.addfile(entry, io.BytesIO(content))
