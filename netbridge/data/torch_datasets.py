"""A data set from two of torch's, such as torchvision's, whole in memory."""

import numpy as np
import torch

from netbridge.data.datasets import Dataset, dataset
from netbridge.data.pictures import to_rgb
from netbridge.progress import progress_bar

AS_THEY_ARE = ("L", "LA", "RGB", "RGBA")  # modes of Pillow images whose numbers are pixels, eight bits a channel


def from_torch(name: str, train, test, names=None) -> Dataset:
    """A data set from torch datasets whose items are (image, label).

    name   how logs and files shall call it
    train  what to train on: has len() and items (image, label). An image is a Pillow image; an array of uint8 (height,
           width) or (height, width, channels); a tensor (channels, height, width) of uint8, or of numbers from 0 to 1,
           as torchvision's ToTensor makes it. All must have one size
    test   what to test on, of the same kind
    names  the names of the classes; default: what `train.classes` says, else the labels' numbers

    Returns a `Dataset`. Pixels are kept as bytes: leave random cropping, mirroring and normalising to the recipe, and
    out of the dataset's own transforms. Raises TypeError or ValueError where an item is of another kind or size.

    >>> import torch
    >>> from netbridge import data
    >>> images, labels = torch.rand(12, 3, 16, 16), torch.arange(12) % 2
    >>> parts = [torch.utils.data.TensorDataset(images[part], labels[part]) for part in (slice(0, 8), slice(8, 12))]
    >>> mine = data.from_torch("mine", *parts, names=("no", "yes"))
    >>> tuple(mine.train_images.shape), mine.test_labels.tolist()
    ((8, 3, 16, 16), [0, 1, 0, 1])
    """
    arrays: dict[str, torch.Tensor] = {}
    for part, source in (("train", train), ("test", test)):
        if not (hasattr(source, "__len__") and hasattr(source, "__getitem__")) or not len(source):
            raise TypeError(f"`{part}` must have a length and items (image, label), got {type(source).__name__}.")
        images, labels = [], []
        with progress_bar(f"reading {name}", len(source)) as advance:
            for number in range(len(source)):
                try:
                    image, label = source[number]
                except (TypeError, ValueError):
                    raise TypeError(f"`{part}`: item {number} is no pair (image, label).") from None
                images.append(pixels_of(image, f"`{part}`: item {number}"))
                labels.append(class_of(label, f"`{part}`: item {number}"))
                if images[-1].shape != images[0].shape:
                    raise ValueError(
                        f"`{part}`: item {number} is {tuple(images[-1].shape)} and item 0 {tuple(images[0].shape)}; "
                        "resize them to one size first."
                    )
                advance()
        arrays |= {f"{part}_images": torch.stack(images), f"{part}_labels": torch.tensor(labels)}
    if names is None:
        count = int(max(arrays["train_labels"].max(), arrays["test_labels"].max())) + 1
        names = getattr(train, "classes", None) or [str(number) for number in range(count)]
    return dataset(name, arrays, names)


def pixels_of(image, where: str) -> torch.Tensor:
    """uint8 (channels, height, width)."""
    first = isinstance(image, torch.Tensor)  # tensors have their channels in front, arrays and Pillow images behind
    mode = getattr(image, "mode", None)
    if isinstance(mode, str) and mode not in AS_THEY_ARE:  # a palette's numbers are no pixels
        try:
            image = to_rgb(image)
        except ValueError as error:
            raise TypeError(f"{where}: {error}.") from None
    values = image if first else torch.from_numpy(np.array(image))
    if values.is_floating_point():
        if not first or values.ndim != 3 or not 0 <= float(values.min()) <= float(values.max()) <= 1:
            raise TypeError(
                f"{where}: numbers must be a tensor (channels, height, width) from 0 to 1; leave out normalisation."
            )
        return (255 * values).round().to(torch.uint8)
    if values.dtype != torch.uint8 or values.ndim not in (2, 3):
        raise TypeError(f"{where}: an image must be a Pillow image, uint8, or numbers from 0 to 1.")
    if values.ndim == 2:
        return values[None]
    return values if first else values.permute(2, 0, 1).contiguous()


def class_of(label, where: str) -> int:
    """The number of a class, from whatever holds one whole number."""
    value = np.asarray(label)
    if value.size != 1 or value.item() != int(value.item()):
        raise TypeError(f"{where}: a label must be the number of a class, got {label!r}.")
    return int(value.item())
