"""The networks a study looks at, shipped, trained or other people's, and the images it shows them."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import netbridge as nb
from netbridge import data as datasets
from netbridge.data.datasets import MINIATURE
from netbridge.pretrained_networks import Pretrained, zoo_folder
from netbridge.train.journal import header_fields
from studies.lab import definitions
from studies.lab.options import fill_in
from studies.lab.report import terminal

SHAPES: dict[str, dict] = {  # small images need smaller networks; shipped networks are part of every download
    "digits": {"depth": 32, "width": 4},
    "cifar10-vit": {"network": "vit-conv", "depth": 6, "width": 96},
    "digits-vit": {"network": "vit", "depth": 4, "width": 32},
    "cifar10-deep": {"depth": 56},
    "digits-deep": {"depth": 56, "width": 4},
}
MULTIPLE = {"fca": 16}  # FCA shares sixteen frequencies out among the channels: their number must be a multiple
CONTROLLERS = ("constant", "se", "stepnet", "eca", "ie", "asr(se)", "cbam", "fca", "srm", "sem", "iebn")
ZOO = zoo_folder()  # the networks that come with netbridge, one folder per data set
DEEP = 56  # layers of the deep networks, nine blocks a stage
USUAL = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "stl10": "STL-10", "imagenet": "ImageNet"}  # written out
IMAGENET_SIZE, FOLDER_SIZE = 224, 32  # pixels, where no size is given
LAYOUTS = ("archives", "tree", "shards")  # folders in which `studies.miniature` writes the layouts of ImageNet
STAND_IN = "digits"  # its deep networks serve where those of a data set do not come along


@dataclasses.dataclass(eq=False)
class Subject:
    """A network and where it is from.

    net, controller, seed, depth, parameters  the network and what it is; the seed is None where it is not known
    accuracy  in per cent on the whole test set, as its training measured it; None where that is not known
    source    name of the file
    name      what figures and tables call it, see `name_subjects`; `full_name` adds the seed where it is known
    """

    net: nb.Network
    controller: str
    seed: int | None
    depth: int
    parameters: int
    accuracy: float | None
    source: str
    name: str = ""

    @property
    def full_name(self) -> str:
        return self.name if self.seed is None else f"{self.name}, seed {self.seed}"


def read_subject(path: Path, stem: str | None = None, normalisation: dict | None = None) -> Subject:
    """From a checkpoint of this repository, or published weights of a known ResNet.

    stem, normalisation  of published weights, as `nb.load_foreign` takes them: a file of them tells neither
    """
    path = Path(path)
    ours = path.suffix == ".safetensors"
    net = nb.load(path) if ours else nb.load_foreign(path, normalisation, stem)
    about, accuracy = net.about, net.about.get("test_accuracy")
    return Subject(
        net,
        controller=controller_of(net.config),
        seed=about.get("seed"),
        depth=header_fields(net)["depth"],
        parameters=sum(p.numel() for p in net.parameters()),
        accuracy=None if accuracy is None else 100.0 * accuracy,
        source=path.name,
    )


def controller_of(config) -> str:
    """The usual name of the controller that the blocks have; "constant" where none has one."""
    others = [one for one in config["controllers"] if one != "constant"]
    return controller_name(others[0]) if others else "constant"


def controller_name(record) -> str:
    """ "se" -> "SE", {"name": "asr", "module": "se"} -> "ASR(SE)"; a controller of somebody's own keeps its name."""
    usual = {"constant": "constant", "stepnet": "StepNet"}
    if isinstance(record, str):
        ours = nb.controller(record).kind.__module__.startswith("netbridge.")
        return usual.get(record, record.upper() if ours else record)
    options = {key: value for key, value in record.items() if key != "name"}
    inside = [controller_name(options.pop("module"))] if "module" in options else []
    inside += [f"{key}={value}" for key, value in sorted(options.items())]
    return f"{controller_name(record['name'])}({', '.join(inside)})" if inside else controller_name(record["name"])


def name_subjects(subjects: list[Subject]) -> list[Subject]:
    """In the order of `nb.controllers()`, constant first; the depth in the name where there are several."""
    known = [controller_name(name) for name in nb.controllers()]
    several = len({s.depth for s in subjects}) > 1
    for one in subjects:
        one.name = f"{one.controller}, {one.depth}" if several else one.controller

    def order(one):
        head = one.controller.split("(")[0]
        return one.depth, known.index(head) if head in known else len(known), one.name, one.seed or 0

    return sorted(subjects, key=order)


def select(subjects, arguments, dataset: str, remedy: str, fewest: int = 1) -> list[Subject]:
    """The networks that `--controllers`, `--seeds` and, where there is one, `--depth` ask for.

    The study ends with a message that lists what there is where too few networks fit, where none has a controller that
    was asked for, or a seed. A seed may be missing right after `--train`, because its training may have diverged.

    subjects   the networks to choose from
    arguments  the options
    dataset    what the networks were trained on, for the message
    remedy     what to do about missing networks, for the message
    fewest     how many networks the study needs
    """
    depth = getattr(arguments, "depth", None)
    names = [name.casefold() for name in arguments.controllers]
    fitting = [
        one
        for one in subjects
        if depth in (None, one.depth)
        and (not names or one.controller.casefold() in names)
        and (not arguments.seeds or one.seed in arguments.seeds)
    ]
    found = {one.controller.casefold() for one in fitting}
    absent = [name for name in arguments.controllers if name.casefold() not in found]
    if not getattr(arguments, "train", False):
        absent += [f"seed {seed}" for seed in arguments.seeds if seed not in {one.seed for one in fitting}]
    if len(fitting) < fewest or absent:
        options = "`--controllers` and `--seeds`" if depth is None else "`--depth`, `--controllers` and `--seeds`"
        what = f" ({', '.join(absent)})" if absent else ""
        there = ", ".join(sorted({f"{s.controller} (depth {s.depth}, seed {s.seed})" for s in subjects})) or "none"
        raise SystemExit(
            f"too few networks for {dataset} fit {options}{what}; the study needs at "
            f"least {fewest}. There are: {there}. {remedy}"
        )
    return fitting


def groups(subjects) -> dict[str, list[int]]:
    """For every name, where its networks stand in the list."""
    found: dict[str, list[int]] = {}
    for place, one in enumerate(subjects):
        found.setdefault(one.name, []).append(place)
    return found


def shipped_files(folder: str, deep: bool = False) -> list[Path]:
    """The networks in a folder of those that come along, with `deep` the deep ones of its data set, too."""
    names = (folder, f"{folder}-deep") if deep else (folder,)
    return [path for name in names for path in sorted((ZOO / name).glob("*.safetensors"))]


def shipped_resnets(dataset: str) -> list[Pretrained]:
    """What is known of the ResNets of a data set that come along, but for the deep ones.

    A study of every block would take as long for three of those as for all the others.
    """
    every = (one for one in nb.pretrained() if one.dataset == dataset and "/resnet" in one.name)
    return [one for one in every if one.depth < DEEP]


@dataclasses.dataclass(frozen=True)
class Deep:
    """Networks with nine blocks a stage, and the images that they are shown.

    subjects  the networks
    data      what they were trained on, perhaps not what the study is about
    """

    subjects: list[Subject]
    data: datasets.Dataset

    def __str__(self):
        depths = ", ".join(f"ResNet-{depth}" for depth in sorted({one.depth for one in self.subjects}))
        return f"{len(self.subjects)} {depths} of {self.data.name}"


def deep_networks(data) -> Deep | None:
    """Those of a data set, or those of the digits in their place; None where neither come along."""
    for name in (data.name, STAND_IN):
        if paths := shipped_files(f"{name}-deep"):
            images = data if data.name == name else datasets.load(name)
            return Deep(name_subjects([read_subject(path) for path in paths]), images)
    return None


def explain_absence(arguments) -> str:
    """The message where no ResNets trained on a data set come along and none are given; "" where there are some."""
    given = arguments.checkpoint or getattr(arguments, "train", False)
    if given or shipped_files(arguments.dataset, deep=arguments.depth is not None):
        return ""
    return f"no networks trained on {arguments.dataset} come with this copy of the repository."


def checkpoints(places) -> list[Path]:
    """Checkpoints among files and folders, in order."""
    found: list[Path] = []
    for place in map(Path, places):
        if place.is_dir():
            found += sorted(place.glob("*.safetensors"))
        elif place.is_file():
            found.append(place)
        else:
            raise SystemExit(f"`{place}` is neither a checkpoint nor a folder of them.")
    return found


def scale_of(subjects: list[Subject], papers: str) -> str:
    """A sentence about the size of these networks and of their training, beside `papers`, those of the paper."""
    sizes = sorted({one.parameters for one in subjects})
    epochs = sorted({one.net.about["epochs"] for one in subjects if "epochs" in one.net.about})
    trained = f", trained for {span_of(epochs)} epochs" if epochs else ""
    return (
        f"These networks have {span_of([f'{size:,}' for size in sizes])} parameters{trained}; {papers}. What is said "
        "here is said about these."
    )


def span_of(values: list) -> str:
    """The only value, or the first and the last one."""
    return f"{values[0]}" if len(values) == 1 else f"{values[0]} to {values[-1]}"


def load_images(study: str, arguments):
    """The data set of the options `dataset` and `data_root`; where it cannot be had, the study ends with remedies.

    A `dataset` with a slash in it is a folder of pictures, with one subfolder per class.
    """
    check_root(study, arguments)
    try:
        if arguments.dataset == "imagenet":
            return datasets.imagenet(
                imagenet_folder(arguments.data_root), arguments.size or IMAGENET_SIZE, arguments.resize
            )
        if make := definitions.datasets.get(arguments.dataset):
            return make(arguments.data_root)
        if any(sign in arguments.dataset for sign in "/\\"):
            return datasets.folder(arguments.dataset, getattr(arguments, "size", None) or FOLDER_SIZE)
        return datasets.load(arguments.dataset, arguments.data_root)
    except (datasets.DataUnavailable, ValueError) as error:
        raise SystemExit(f"studies.{study}: {error}") from None


def imagenet_folder(root: Path | None) -> Path:
    """The folder of ImageNet: that of the name in the folder of all data sets, or the one that was given itself."""
    place = datasets.default_root() / "imagenet" if root is None else folder_of("imagenet", root)
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
        images = datasets.load(arguments.dataset, arguments.data_root)
        reason = usable(arguments) if usable else ""
        if not reason:
            return images, "", arguments
    except datasets.DataUnavailable:
        reason = f"the images are not here and cannot be had (without `--fallback {arguments.fallback}` it says why)."
    notice = (
        f"NOT {arguments.dataset}: {reason} This run {shows} {arguments.fallback} instead; its numbers are about "
        f"{arguments.fallback} and nothing else."
    )
    print(*terminal.wrapped(notice), "", sep="\n", flush=True)
    arguments = dataclasses.replace(arguments, dataset=arguments.fallback, fallback=None)
    return load_images(study, arguments), notice, arguments


def open_traced(
    study: str, arguments, presets: Mapping, fewest: int, shows="shows networks trained on", usable=explain_absence,
    **smoke,
):  # fmt: skip
    """How every study of finished networks begins: (data set, notice, arguments), as `images_or_fallback` gives them.

    What the files of `--define` hold is known then, and the numbers of images and resamples are filled in.

    presets  those numbers by preset
    fewest   test images that the study needs
    shows, usable  as `images_or_fallback` has them
    smoke    options of a smoke run, beside the digits and few images
    """
    if arguments.smoke:
        arguments = dataclasses.replace(arguments, dataset="digits", images=64, resamples=20, **smoke)
    for path in arguments.define:
        definitions.run_file(path)
    data, notice, arguments = images_or_fallback(study, arguments, shows, usable)
    return data, notice, fill_in(arguments, presets[arguments.preset], len(data.test_images), fewest)


def check_root(study: str, arguments) -> None:
    """A folder that is not there is more likely a mistyped name than a wish to fill it."""
    root = arguments.data_root
    if root is not None and not root.is_dir():
        raise SystemExit(
            f"studies.{study}: `--data-root` = {str(root)!r} is not a folder; make it first, or leave it out."
        )
