"""Train residual networks with any step-size controller, on CIFAR or the digits (about 5 min for a ResNet-20)."""

import dataclasses
import json
import re
import time
from pathlib import Path

import torch
import tyro

import netbridge as nb
from netbridge import data
from netbridge.train import distributed, recipes
from netbridge.train import loop as train
from studies.lab import results as _record

SHIPPED = Path(nb.__file__).parent / "zoo"
SHAPES = {"digits": {"depth": 32, "width": 4}}  # small images ask for less, and every network costs a download
MULTIPLE = {"fca": 16}  # of this many channels: FCA shares sixteen frequencies out among them
CONTROLLERS = ("constant", "se", "stepnet", "eca", "ie", "asr(se)", "cbam", "fca", "srm")
QUEUE = (  # in the order in which they are wanted
    *((name, 0) for name in CONTROLLERS[:4]),
    *((name, 1) for name in CONTROLLERS[:3]),
    *((name, 0) for name in CONTROLLERS[4:]),
    *((name, 1) for name in CONTROLLERS[3:]),
)


@dataclasses.dataclass
class Arguments:
    """Train one network, or a queue of them; killed and started again, either goes on from its last epoch."""

    controller: str = "constant"
    """A controller's name, asr(se), or JSON such as {"name": "stepnet", "inputs": "now"}."""
    seed: int = 0
    depth: int = 20
    width: int = 16
    """Channels of the first stage; each further stage has twice as many."""
    recipe: str = "short"
    """One of netbridge.recipes.RECIPES; on the digits `short` means `digits`."""
    dataset: str = "cifar10"
    data_root: Path | None = None
    """Folder of the data sets; the shared cache if not given."""
    out: Path = Path("results/train")
    """Folder of the networks and their logs."""
    queue: str | None = None
    """`shipped`: train all networks that come with the repository, in order, where they are missing."""
    epochs: int | None = None
    """Another number of epochs than the recipe's."""
    lr: float | None = None
    batch: int | None = None
    precision: str = "auto"
    """auto: what the recipe says; or float32."""
    device: str | None = None
    threads: int | None = None
    compile: bool = False
    curve: bool = True
    """Draw the learning curve beside the network."""
    smoke: bool = False
    """A run of seconds that only shows that everything works."""


def main(arguments: Arguments):
    if arguments.smoke:
        arguments = dataclasses.replace(arguments, dataset="digits", depth=8, epochs=1)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    nb.tune_allocator()
    with distributed.join():
        try:
            images = data.load(arguments.dataset, arguments.data_root)
        except data.DataUnavailable as error:
            raise SystemExit(f"python -m studies.train: {error}") from None
        if arguments.queue is None:
            record = _record.Record("train", arguments, arguments.out)
            path = arguments.out / f"{stem(arguments)}.safetensors"
            one(arguments, images, path)
            if distributed.rank() == 0:
                report(record, path)
        else:
            shipped(arguments, images)


def shipped(arguments: Arguments, images):
    """Several of these may run at once: each takes the next network nobody else is at."""
    import filelock

    if arguments.queue != "shipped":
        raise SystemExit(f"--queue knows `shipped`, got {arguments.queue!r}.")
    folder = SHIPPED / arguments.dataset
    folder.mkdir(parents=True, exist_ok=True)
    locks = data.default_root() / "queue" / arguments.dataset
    locks.mkdir(parents=True, exist_ok=True)
    for name, seed in QUEUE:
        chosen = {"controller": name, "seed": seed, "curve": False, **SHAPES.get(arguments.dataset, {})}
        this = dataclasses.replace(arguments, **chosen)
        if this.width % MULTIPLE.get(name, 1):
            continue
        path = folder / f"{stem(this)}.safetensors"
        if path.is_file():
            continue
        try:
            with filelock.FileLock(locks / f"{path.stem}.lock", timeout=0):
                if not path.is_file():
                    one(this, images, path)
        except filelock.Timeout:
            continue


def one(arguments: Arguments, images, path: Path):
    if path.is_file():
        print(f"{path} is trained already: {100 * nb.load(path).about['test_accuracy']:.2f} %.")
        return
    recipe = chosen_recipe(arguments)
    torch.manual_seed(arguments.seed)
    widths = None if arguments.width == 16 else [arguments.width * factor for factor in (1, 2, 4)]
    net = nb.resnet(arguments.depth, len(images.names), controller=named(arguments.controller), widths=widths)
    about = {"controller": arguments.controller, "depth": arguments.depth}
    began = time.perf_counter()
    net = train.train(net, images, recipe, arguments.seed, path, about, arguments.device, compiled=arguments.compile)
    if distributed.rank() == 0:
        if arguments.curve:
            from studies.lab.curve import draw

            draw(path.with_suffix(".jsonl"))
        print(
            f"{path}: {100 * net.about['test_accuracy']:.2f} % on the test set, "
            f"{time.perf_counter() - began:.0f} s in this session.",
            flush=True,
        )


def report(record: _record.Record, path: Path):
    """What the network's header says, and the files beside it."""
    about = nb.load(path).about
    results = (
        "controller",
        "depth",
        "seed",
        "dataset",
        "epochs",
        "test_accuracy",
        "test_errors",
        "test_loss",
        "seconds",
    )
    record.table("trained", [{"network": path.stem} | {key: about[key] for key in results}])
    curve = (path.with_suffix(".jsonl"), *(path.with_suffix(kind) for kind in (".png", ".svg")))
    record.files += [path, *(file for file in curve if file.is_file())]
    record.close()


def chosen_recipe(arguments: Arguments) -> recipes.Recipe:
    name = "digits" if (arguments.recipe, arguments.dataset) == ("short", "digits") else arguments.recipe
    changes = {key: getattr(arguments, key) for key in ("epochs", "lr", "batch") if getattr(arguments, key) is not None}
    if arguments.precision not in ("auto", "float32"):
        raise SystemExit(f"--precision must be auto or float32, got {arguments.precision!r}.")
    if arguments.precision == "float32":
        changes["bfloat16"] = False
    return recipes.recipe(name, **changes)


def named(text: str):
    """A specification from se, asr(se) or JSON."""
    if text.startswith("{"):
        return json.loads(text)
    if match := re.fullmatch(r"asr\((\w+)\)", text):
        return nb.asr(match[1])
    return text


def stem(arguments: Arguments) -> str:
    """A file name: asr(se) becomes asr-se; a width is named where it is not the papers'."""
    plain = re.sub(r"\W+", "-", arguments.controller).strip("-")
    width = "" if arguments.width == 16 else f"-width{arguments.width}"
    return f"resnet{arguments.depth}{width}-{plain}-seed{arguments.seed}"


if __name__ == "__main__":
    main(tyro.cli(Arguments, prog="python -m studies.train", description=__doc__))
