"""The data set a study asks for, or another one in its place, with a notice that says so."""

import dataclasses
from pathlib import Path

from netbridge import data
from netbridge.data.datasets import MINIATURE
from studies.lab import definitions
from studies.lab.report import terminal

USUAL = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "stl10": "STL-10", "imagenet": "ImageNet"}  # written out
IMAGENET_SIZE, FOLDER_SIZE = 224, 32  # pixels, where no size is given
LAYOUTS = ("archives", "tree", "shards")  # folders in which `studies.miniature` writes the layouts of ImageNet


def load_images(study: str, arguments):
    """The data set of the options `dataset` and `data_root`; where it cannot be had, the study ends with remedies.

    A `dataset` with a slash in it is a folder of pictures, with one subfolder per class.
    """
    check_root(study, arguments)
    try:
        if arguments.dataset == "imagenet":
            return data.imagenet(
                imagenet_folder(arguments.data_root), arguments.size or IMAGENET_SIZE, arguments.resize
            )
        if make := definitions.datasets.get(arguments.dataset):
            return make(arguments.data_root)
        if any(sign in arguments.dataset for sign in "/\\"):
            return data.folder(arguments.dataset, getattr(arguments, "size", None) or FOLDER_SIZE)
        return data.load(arguments.dataset, arguments.data_root)
    except (data.DataUnavailable, ValueError) as error:
        raise SystemExit(f"studies.{study}: {error}") from None


def imagenet_folder(root: Path | None) -> Path:
    """The folder of ImageNet: that of the name in the folder of all data sets, or the one that was given itself."""
    place = data.default_root() / "imagenet" if root is None else folder_of("imagenet", root)
    return next((place / layout for layout in LAYOUTS if (place / layout).is_dir()), place)


def folder_of(name: str, root: Path) -> Path:
    """Where a data set lies: `--data-root` is the folder of all data sets, or that of this one itself."""
    return root / name if (root / name).is_dir() else root


def images_or_fallback(study: str, arguments, shows: str, usable=None):
    """(data set, a notice where it is not the one asked for, the arguments of that run); the notice is printed.

    Where made-up pictures lie in a data set's place the arguments say so: no network trained on them passes for one of
    the real data.

    arguments  has `dataset`, `data_root` and `fallback`, the data set to take instead or None
    shows      what the run does with the other data set, for the notice
    usable     a function of the arguments that gives a reason why a data set that is there will not do, or ""
    """
    if arguments.fallback is None:
        images = load_images(study, arguments)
        if images.name != f"{arguments.dataset}{MINIATURE}":
            return images, "", arguments
        notice = f"NOT {arguments.dataset}: made-up pictures in its format. No number is about {arguments.dataset}."
        print(*terminal.wrapped(notice), "", sep="\n", flush=True)
        return images, notice, dataclasses.replace(arguments, dataset=images.name)
    check_root(study, arguments)
    try:
        images = data.load(arguments.dataset, arguments.data_root)
        reason = usable(arguments) if usable else ""
        if not reason:
            return images, "", arguments
    except data.DataUnavailable:
        reason = f"the images are not here and cannot be had (without `--fallback {arguments.fallback}` it says why)."
    notice = (
        f"NOT {arguments.dataset}: {reason} This run {shows} {arguments.fallback} instead; its numbers are about "
        f"{arguments.fallback} and nothing else."
    )
    print(*terminal.wrapped(notice), "", sep="\n", flush=True)
    arguments = dataclasses.replace(arguments, dataset=arguments.fallback, fallback=None)
    return load_images(study, arguments), notice, arguments


def check_root(study: str, arguments) -> None:
    """A folder that is not there is more likely a mistyped name than a wish to fill it."""
    root = arguments.data_root
    if root is not None and not root.is_dir():
        raise SystemExit(
            f"studies.{study}: `--data-root` = {str(root)!r} is not a folder; make it first, or leave it out."
        )
