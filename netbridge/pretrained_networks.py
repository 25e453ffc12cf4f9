"""The networks that come with this package: a list of them, and loading one by its name.

The files lie in `netbridge/zoo/FOLDER/NAME.safetensors`, each beside its training log (.jsonl). A folder has the name
of a data set, with the recipe behind it where that is not the data set's usual one. Nothing here writes.
"""

import dataclasses
import difflib
from pathlib import Path
from typing import overload

from netbridge.checkpoint import load, read_header
from netbridge.model.network import Network
from odelab.results import Result

ZOO = Path(__file__).parent / "zoo"


@dataclasses.dataclass(frozen=True)
class Pretrained:
    """What the file of a shipped network says of it, without its weights having been read.

    name           what `nb.pretrained` loads it by
    dataset        name of the data set it was trained on, as `netbridge.data.load` takes it
    controller     name of the step-size controller
    depth, width   layers with weights; channels of the first stage
    seed           what its weights and the order of its images were drawn from
    recipe         name of the training recipe, see `netbridge.train.recipes`
    epochs         how often it saw the training images
    test_accuracy  share of the test images that it classifies correctly, between 0 and 1
    """

    name: str
    dataset: str
    controller: str
    depth: int
    width: int
    seed: int
    recipe: str
    epochs: int
    test_accuracy: float


class Catalogue(Result, tuple[Pretrained, ...], kinds={"accuracies": "netbridge.figures:draw_accuracies"}):
    """The shipped networks in the order of their names, printed as a table."""

    def table(self):
        """A row per network."""
        return {field.name: [getattr(one, field.name) for one in self] for field in dataclasses.fields(Pretrained)}

    def __repr__(self) -> str:
        rows = [[field.name for field in dataclasses.fields(Pretrained)]]
        rows[0][-1] = "accuracy"
        for one in self:
            *values, accuracy = dataclasses.astuple(one)
            rows.append([*map(str, values), f"{100 * accuracy:.2f} %"])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
        return "\n".join(lines)


@overload
def pretrained(name: None = None) -> Catalogue: ...
@overload
def pretrained(name: str) -> Network: ...
def pretrained(name: str | None = None) -> Network | Catalogue:
    """A trained network that comes with this package, or the list of them all.

    name    the network's name in that list, such as "cifar10/resnet20-se-seed0"; None (the default) for the list

    Returns the network in evaluation mode, as `nb.load` does: `net.about` says how it was trained and what it scored,
    `net.normalise` prepares images for it. Without a name: a tuple of `Pretrained` records (name, dataset, controller,
    depth, width, seed, recipe, epochs, test_accuracy), which prints as a table. Raises ValueError where no network has
    that name; the message lists similar ones. Raises FileNotFoundError where the package has come without networks.

    >>> import netbridge as nb
    >>> nb.pretrained()
    name                                    dataset  controller  depth  width  seed  recipe  epochs  accuracy
    cifar10/resnet20-asr-se-seed0           cifar10  asr(se)     20     16     0     short   14      89.52 %
    ...
    >>> [one.name for one in nb.pretrained() if one.controller == "eca" and "cifar10/" in one.name]
    ['cifar10/resnet20-eca-seed0', 'cifar10/resnet20-eca-seed1']
    >>> net = nb.pretrained("cifar10/resnet20-se-seed0")
    >>> net.about["test_errors"], net.config["blocks"]
    (1053, [3, 3, 3])
    """
    files = {f"{path.parent.name}/{path.stem}": path for path in sorted(ZOO.glob("*/*.safetensors"))}
    if not files:
        raise FileNotFoundError(
            f"no network has come with this package: {ZOO} holds none. A complete checkout holds them; nb.resnet(...) "
            "makes networks that are not trained, nb.load(file) reads one of your own."
        )
    if name is None:
        return Catalogue(describe(name, path) for name, path in files.items())
    if name in files:
        return load(files[name])
    near = difflib.get_close_matches(str(name), files, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "`nb.pretrained()` lists all names."
    raise ValueError(f"`name` = {name!r} is no shipped network; {hint}")


def describe(name: str, path: Path) -> Pretrained:
    header = read_header(path)
    about = header["about"]
    known = {field.name: about[field.name] for field in dataclasses.fields(Pretrained) if field.name in about}
    return Pretrained(**known | {"name": name, "width": header["config"]["widths"][0]})
