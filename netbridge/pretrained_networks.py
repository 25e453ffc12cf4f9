"""The trained networks of this project: where they lie, a list of them, loading one by its name, fetching them.

A file is FOLDER/NAME.safetensors. A folder has the name of a data set, with the recipe behind it where that is not the
data set's usual one. In a checkout they lie beside this module, in `netbridge/zoo`, each beside its training log; what
is installed has them as a package of its own, odelab-zoo. Only `fetch_pretrained` writes.
"""

import dataclasses
import difflib
import hashlib
import http.client
import importlib.util
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import overload

from netbridge.checkpoint import load, read_header
from netbridge.model.network import Network
from odelab.files import replacing
from odelab.results import Result

ZOO = Path(__file__).parent / "zoo"  # of a checkout
PACKAGE = "odelab_zoo"
VARIABLE = "ODELAB_ZOO"
DIGESTS = Path(__file__).with_name("zoo_digests.json")  # of what is installed: the networks of its version


def places() -> dict[str, Path | None]:
    """Where networks are looked for, in this order, each with what it is in words; None for what is not there."""
    found = importlib.util.find_spec(PACKAGE)
    package = Path(next(iter(found.submodule_search_locations))) if found and found.submodule_search_locations else None
    named = os.environ.get(VARIABLE)
    return {
        f"${VARIABLE}": Path(named).expanduser() if named else None,
        "beside netbridge, as in a checkout": ZOO,
        "the package odelab-zoo": package,
        "what `nb.fetch_pretrained` has fetched": cache(),
    }


def cache() -> Path:
    from netbridge.data.datasets import default_root  # `import netbridge` does without its data sets

    return default_root() / "zoo"


def zoo_folder() -> Path:
    """The first place that holds networks; `netbridge/zoo` where none does."""
    return next((place for place in places().values() if place is not None and holds_networks(place)), ZOO)


def holds_networks(place: Path) -> bool:
    return next(place.glob("*/*.safetensors"), None) is not None


def no_networks() -> FileNotFoundError:
    """What is said where no place holds networks: each of them, and what helps."""
    looked = "; ".join(f"{words}: {'not there' if place is None else place}" for words, place in places().items())
    return FileNotFoundError(
        f"no network has come with this package. Looked for, in this order: {looked}. Install odelab-zoo, work in a "
        f"checkout, set ${VARIABLE} to a folder of them, or call nb.fetch_pretrained(address). nb.resnet(...) makes "
        "networks that are not trained, nb.load(file) reads one of your own."
    )


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
    that name; the message lists similar ones. Raises FileNotFoundError where no networks are here; the message names
    each place that was looked at: the folder $ODELAB_ZOO, a checkout, the package odelab-zoo, what was fetched before.

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
    folder = zoo_folder()
    files = {f"{path.parent.name}/{path.stem}": path for path in sorted(folder.glob("*/*.safetensors"))}
    if not files:
        raise no_networks()
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


def fetch_pretrained(address: str, names: str | Iterable[str] | None = None, folder=None) -> Path:
    """Fetch the trained networks of this version from an address, and check each by its SHA-256 digest.

    address  of a folder of them: files lie at ADDRESS/cifar10/resnet20-se-seed0.safetensors and so on; http, https or
             file
    names    the one or those that are wanted, as `nb.pretrained()` lists them; None (the default) for all, 50 MB
    folder   where to; by default the cache, where `nb.pretrained` finds them

    What is there already is not fetched again. Returns the folder. Raises ValueError for a name that this version has
    not, and for a file with another digest, of which nothing is kept; OSError where an address does not answer.

    >>> import pathlib, tempfile, netbridge as nb
    >>> zoo = pathlib.Path(nb.__file__).parent / "zoo"
    >>> folder = nb.fetch_pretrained(zoo.as_uri(), ["cifar10/resnet20-se-seed0"], tempfile.mkdtemp())
    >>> nb.load(folder / "cifar10" / "resnet20-se-seed0.safetensors").about["test_errors"]
    1053
    """
    from netbridge.data.sources import fetch

    known = json.loads(DIGESTS.read_text()) if DIGESTS.is_file() else digests_of(ZOO)
    wanted = list(known) if names is None else [names] if isinstance(names, str) else list(names)
    if missing := [name for name in wanted if name not in known]:
        raise ValueError(f"`names`: {missing[0]!r} is none of the {len(known)} networks of this version.")
    folder = cache() if folder is None else Path(folder).expanduser()
    for name in wanted:
        path = folder / f"{name}.safetensors"
        if path.is_file() and digest_of(path) == known[name]:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        url = f"{address.rstrip('/')}/{name}.safetensors"
        with replacing(path) as part:
            try:
                fetch(url, part)
            except (OSError, http.client.HTTPException) as error:
                raise OSError(f"{url}: {getattr(error, 'reason', None) or error}") from None
            if (found := digest_of(part)) != known[name]:
                raise ValueError(f"{url}: SHA-256 {found}, that of this version is {known[name]}.")
    return folder


def digests_of(folder: Path) -> dict[str, str]:
    """The SHA-256 digest of each network in a folder, by its name."""
    files = sorted(folder.glob("*/*.safetensors"))
    return {f"{path.parent.name}/{path.stem}": digest_of(path) for path in files}


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, hashlib.sha256).hexdigest()
