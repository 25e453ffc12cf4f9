"""Train networks with any step-size controller, on CIFAR, the digits or ImageNet (about 5 min for a ResNet-20).

Last result: a ResNet-20 with constant step sizes reaches 89.4 % on CIFAR-10 with the recipe `short` and 92.2 % with
`medium`; `python -c "import netbridge as nb; print(nb.pretrained())"` lists the shipped networks, trained with this
command.
"""

import contextlib
import dataclasses
import importlib
import json
import tempfile
from pathlib import Path

import torch

import netbridge as nb
from netbridge import code_digests
from netbridge.train import distributed, epochs, scoring
from odelab.files import replacing
from studies.lab import definitions, jobs
from studies.lab.command import plain_errors, require_at_least, start
from studies.lab.figures import learning_curve
from studies.lab.networks import CONTROLLERS, MULTIPLE, SHAPES, ZOO, load_images
from studies.lab.results import Results
from studies.lab.stiffness import follower

STUDY = "train"
TRACED = 512  # test images whose stiffness is followed through training
QUEUE = (  # the shipped networks in the order in which they are wanted
    *((name, 0) for name in CONTROLLERS[:4]),
    *((name, 1) for name in CONTROLLERS[:3]),
    *((name, 0) for name in CONTROLLERS[4:]),
    *((name, 1) for name in CONTROLLERS[3:]),
)
DEEP = {  # networks with nine blocks a stage, eight of them counted, seed by seed
    "cifar10": tuple((name, seed) for seed in range(4) for name in ("constant", "se(reduction=4)", "eca", "stepnet")),
    "digits": tuple((name, seed) for seed in (0, 1) for name in ("constant", "se", "stepnet")),
}
DEEP_EPOCHS = {"cifar10": 6}  # where others than the recipe's
TABLES = {"table1": 1, "table2": 2, "table7": 7}  # queues of networks that `studies.table` looks for
MEASURED = {"table4": "step_control", "tricks": "tricks"}  # queues of studies that keep measurements, not networks
QUEUES = ("shipped", "deep", *TABLES, *MEASURED)
PAPER_SEEDS = 5
VITS = tuple((name, seed) for seed in (0, 1) for name in ("constant", "stepnet", "se"))  # the same of transformers
ABOUT = ("controller", "depth", "seed", "dataset", "epochs", "test_accuracy", "test_errors", "test_loss", "seconds")


@dataclasses.dataclass
class Arguments:
    """Train one network, or a queue of them; killed and started again, either goes on from its last epoch."""

    controller: str = "constant"
    """A controller's name, asr(se), or JSON such as {"name": "stepnet", "inputs": "now"}."""
    seed: int = 0
    """The first weights and the order of the images are drawn from it."""
    network: str = "resnet"
    """resnet; vit: a transformer on patches of 4 pixels; vit-conv: the same behind a stem of two convolutions; vit-s,
    vit-b: ImageNet's ViT-S/16 and ViT-B/16, for --recipe imagenet-vit; or the name of a network that a file of --define
    holds."""
    depth: int | None = None
    """Number of layers of a ResNet, 20 if not given; of blocks of a transformer, 6, of vit-s and vit-b 12."""
    width: int | None = None
    """Channels of the first stage, 16 if not given, each further stage has twice as many; features of a token, 96,
    of vit-s 384, of vit-b 768."""
    recipe: str = "short"
    """One of netbridge.recipes.RECIPES; `short` means `digits` on the digits, `vit-short` or `vit-digits` for a ViT."""
    dataset: str = "cifar10"
    """What to train on: cifar10, cifar100, stl10, digits, imagenet (any folder in one of ImageNet's layouts), a folder
    of pictures with one subfolder per class (a path with a slash), or a name from a file of --define."""
    data_root: Path | None = None
    """The folder of the data sets, or that of ImageNet itself; the shared cache if not given."""
    size: int | None = None
    """Pictures: height and width of what the network is shown, in pixels; ImageNet 224, a folder 32."""
    resize: int = 256
    """ImageNet: for testing, a picture's shorter side is resized to this before its middle is cut out."""
    workers: int = 0
    """ImageNet: processes that decode pictures; changes no bit of the result."""
    out: Path = Path("results/train")
    """The folder of the networks, their logs and their records."""
    define: tuple[Path, ...] = ()
    """Python files that define controllers, networks (NETWORKS) or data sets (DATASETS) of your own."""
    queue: str | None = None
    """`shipped`: train every network that comes with the repository, in order, where `--out` does not have it; `deep`:
    the ResNet-56 that do; `table1`, `table2`, `table7`: the networks of these tables of the paper, five seeds each, in
    order of worth; `table4`, `tricks`: those of the studies `step_control` and `tricks` at the paper's scale."""
    ship: bool = False
    """With `--queue shipped` or `deep`: train nothing, and put the finished networks of --out that the installed
    package does not have into it, the deep ones in half precision."""
    epochs: int | None = None
    """Another number of epochs than the recipe's."""
    lr: float | None = None
    """Another learning rate than the recipe's."""
    batch: int | None = None
    """Another batch size than the recipe's."""
    set: tuple[str, ...] = ()
    """Other fields of the recipe, such as mixup=1.0 ema=0.999; netbridge.train.Recipe has them all."""
    parts: int | None = None
    """Parts of a batch that are normalised each on its own; processes take turns with them, so that any number up to
    this computes the same. As many as there are processes if not given."""
    checkpoint_minutes: float | None = None
    """Write the state down within an epoch, too, when so many minutes have passed."""
    heartbeat: float | None = None
    """Print epoch, step and loss every so many seconds: 60 lets the log of a cluster show that a run is alive."""
    extend: bool = False
    """Train a network that is finished after fewer epochs on; its rates go on where those of so many epochs are."""
    trace_every: int | None = None
    """After every so many epochs NSI and TNS of 512 test images join the log."""
    precision: str = "auto"
    """auto: what the recipe says; or float32."""
    device: str | None = None
    """cpu, cuda, mps; the fastest there is by default."""
    threads: int | None = None
    """Threads of the processor to use; all by default. On a busy machine 1 is often the fastest."""
    compile: bool = False
    """Compile the network with torch.compile first."""
    curve: bool = True
    """Draw the learning curve beside the network."""
    smoke: bool = False
    """A run of seconds that only shows that everything works."""


def main(arguments: Arguments):
    if arguments.smoke:
        arguments = dataclasses.replace(arguments, dataset="digits", depth=8, epochs=1)
    if arguments.queue not in (None, *QUEUES) or (arguments.ship and arguments.queue not in ("shipped", "deep")):
        raise SystemExit(
            f"studies.train: `--queue` knows {', '.join(QUEUES)}, got {arguments.queue!r}; `--ship` needs shipped or "
            "deep."
        )
    require_at_least(0, arguments, "seed", "workers")
    require_at_least(1, arguments, "depth", "width", "size", "resize", "trace_every", "parts", "threads")
    for path in arguments.define:
        definitions.run_file(path)
    check_network(arguments)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    with plain_errors(STUDY):
        recipe = jobs.recipe_of(
            *(arguments.recipe, arguments.dataset, arguments.precision, arguments.network),
            **{key: getattr(arguments, key) for key in ("epochs", "lr", "batch")} | changed_fields(arguments.set),
        )
        depth, width = jobs.SHAPES.get(arguments.network, jobs.SHAPES["resnet"])
        job = jobs.Job(
            *(arguments.dataset, arguments.controller, arguments.seed, recipe),
            depth=arguments.depth or depth,
            width=arguments.width or width,
            network=arguments.network,
        )
        jobs.spec_of_text(job.controller)
    if arguments.queue in MEASURED:
        study, given = hand_over(MEASURED[arguments.queue], arguments)
        return study.main(given)
    with distributed.join():
        if arguments.queue in TABLES:
            from studies import table  # it is built upon this module

            return train_table(table.TABLES[TABLES[arguments.queue]], arguments)
        images = load_images(STUDY, arguments)
        if arguments.queue:
            name, wanted = jobs_of_queue(arguments, job)
            folder = arguments.out / name
            if arguments.ship:
                return ship_all(wanted, images, folder, ZOO / name, half=arguments.queue == "deep")
            if jobs.train_all(wanted, images, folder, STUDY, arguments.device, arguments.compile):
                raise SystemExit(1)
            return None
        results = Results(STUDY, arguments, f"{job.stem}.record.json")
        path = arguments.out / f"{job.stem}.safetensors"
        try:
            passed = "workers", "parts", "checkpoint_minutes", "heartbeat", "extend"
            given = {key: getattr(arguments, key) for key in passed}
            if arguments.trace_every:
                given["on_epoch"] = follower(images, TRACED, arguments.trace_every)
            net = jobs.train(job, images, path, STUDY, arguments.device, compiled=arguments.compile, **given)
        except epochs.Diverged as error:
            raise SystemExit(f"studies.train: {error} Here that is --lr, --precision float32, --out.") from None
        if distributed.rank() == 0:
            report(results, net, path, arguments.curve)


def check_network(arguments: Arguments) -> None:
    known = (*jobs.SHAPES, *definitions.networks)
    if arguments.network not in known:
        raise SystemExit(f"studies.train: `--network` knows {', '.join(known)}, got {arguments.network!r}.")
    asked = arguments.queue or arguments.depth or arguments.width or arguments.controller != "constant"
    if arguments.network in definitions.networks and asked:
        raise SystemExit(
            "studies.train: a network of your own has no place for `--controller`, `--depth`, `--width` or `--queue`; "
            "its function decides, with nb.insert for instance."
        )


def changed_fields(texts: tuple[str, ...]) -> dict:
    """Fields of a recipe from FIELD=VALUE, the value as JSON or as text: mixup=1.0, policy=trivial, drops=[30,60]."""
    found = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign:
            raise ValueError(f"`--set` takes FIELD=VALUE, such as mixup=1.0, got {text!r}.")
        with contextlib.suppress(json.JSONDecodeError):
            value = json.loads(value)
        found[name] = tuple(value) if isinstance(value, list) else value
    return found


def jobs_of_queue(arguments: Arguments, like: jobs.Job) -> tuple[str, list[jobs.Job]]:
    """The folder's name and the jobs, like this one, of the networks that come with the repository, in order."""
    name, queue = arguments.dataset, QUEUE
    if arguments.queue == "deep":
        if name not in DEEP:
            raise SystemExit(f"studies.{STUDY}: `--queue deep` knows the data sets {', '.join(DEEP)}, got {name!r}.")
        name, queue = f"{name}-deep", DEEP[name]
        epochs = arguments.epochs or DEEP_EPOCHS.get(arguments.dataset, like.recipe.epochs)
        like = dataclasses.replace(like, recipe=dataclasses.replace(like.recipe, epochs=epochs))
    elif arguments.network != "resnet":
        name, queue = f"{name}-vit", VITS
    wanted = (
        dataclasses.replace(like, controller=controller, seed=seed, **SHAPES.get(name, {}))
        for controller, seed in queue
    )
    return name, [job for job in wanted if job.width % MULTIPLE.get(job.label, 1) == 0]


def ship_all(wanted: list[jobs.Job], images, folder: Path, zoo: Path, half: bool) -> None:
    """Ship what is finished in `folder` and not in `zoo` yet, and print a line of each job; the study ends if none is.

    wanted  the jobs of the queue
    images  what the networks were trained on
    folder  of the trained networks, each of which is compared with its job
    zoo     folder of the shipped ones
    half    whether they are shipped in half precision
    """
    there = []
    for job in wanted:
        trained, shipped = (place / f"{job.stem}.safetensors" for place in (folder, zoo))
        if shipped.is_file():
            print(f"{job.stem}: is shipped already.", flush=True)
        elif not trained.is_file():
            print(f"{job.stem}: not trained in {folder}.", flush=True)
            continue
        else:
            jobs.train(job, images, trained, STUDY)  # is finished: this compares it with the job, and trains nothing
            net = ship(trained, shipped, images, half)
            print(f"{job.stem}: {describe_scores(net.about)}", flush=True)
        there.append(job)
    if not there:
        raise SystemExit(f"studies.{STUDY}: `--ship` trains nothing, and nothing is trained in {folder}: train first.")


def ship(trained: Path, shipped: Path, images, half: bool) -> nb.Network:
    """Put a trained network and its log where shipped ones are; what it scores is measured of the weights as stored.

    trained  the file of the network that a training has finished, its log beside it; both stay as they are
    shipped  the file to write; the log goes beside it
    images   what the network was trained on; its test images are all looked at
    half     whether to store its large weights in half precision, as `nb.save` does

    Returns the network as it was stored. Of one in half precision `about["measured_by"]` is the digest of the code that
    measured its scores, and where rounding has changed them `about["trained"]` holds those of the training.
    """
    shipped.parent.mkdir(parents=True, exist_ok=True)
    net = nb.load(trained)
    if half:
        with tempfile.TemporaryDirectory() as folder:
            stored = nb.load(nb.save(net, Path(folder) / shipped.name, half=True))
        scores = scoring.evaluate(stored, images)
        before = {name: net.about[name] for name in scores}
        stored.about |= scores | {"measured_by": code_digests.measured_by()}
        stored.about |= {"trained": before} if scores != before else {}
        net = stored
    with replacing(shipped.with_suffix(".jsonl")) as unfinished:
        unfinished.write_bytes(trained.with_suffix(".jsonl").read_bytes())
    nb.save(net, shipped, half=half)  # last: a network that is there has its log; rounding twice is rounding once
    return net


def describe_scores(about: dict) -> str:
    """What a network that was shipped scores, and what it scored when it was trained where that is something else."""
    words = f"shipped, {about['test_errors']} errors on the test set"
    before = about.get("trained", about)["test_errors"]
    return f"{words}, {before} as it was trained." if before != about["test_errors"] else f"{words}."


def train_table(table, arguments: Arguments, seeds: int = PAPER_SEEDS) -> None:
    """Train what is missing of one of the paper's tables, seed by seed, on those of its data sets that can be had."""
    from studies import table as tables  # it is built upon this module

    images = {}
    for dataset in dict.fromkeys(dataset for dataset, _ in table.columns):
        try:
            images[dataset] = load_images(STUDY, dataclasses.replace(arguments, dataset=dataset))
        except SystemExit as error:
            print(f"Left out: {dataset}. {error}\n", flush=True)
    every = tables.cells_of(table, [], seeds)
    diverged = []
    for seed in range(seeds):
        for dataset, scale in table.columns:
            if dataset in images:
                column = [cell for cell in every if (cell.dataset, cell.scale) == (dataset, scale)]
                wanted = [cell.job(seed) for cell, number in tables.in_order(column) if number == seed]
                folder = arguments.out / f"{dataset}-{scale.recipe.name}"
                diverged += jobs.train_all(wanted, images[dataset], folder, STUDY, arguments.device, arguments.compile)
    if diverged:
        raise SystemExit(1)


def hand_over(name: str, arguments: Arguments) -> tuple:
    """The study whose networks a queue holds, and its options: at the paper's scale, on the same machine."""
    study = importlib.import_module(f"studies.{name}")
    given = {name: getattr(arguments, name) for name in ("device", "threads", "data_root")}
    return study, study.Arguments(train=True, full=True, **given)


def report(results: Results, net, path: Path, curve: bool):
    """Prints what the header of the trained network says, and records the files beside it."""
    print(f"{path}: {100 * net.about['test_accuracy']:.2f} % on the test set.", flush=True)
    row = {"network": path.stem} | {key: net.about[key] for key in ABOUT if key in net.about}
    results.save_table(f"{path.stem}.trained", [row], "Trained")
    log = path.with_suffix(".jsonl")
    results.files += [path, log, *(learning_curve(log) if curve else ())]
    results.write_record()


if __name__ == "__main__":
    nb.tune_allocator()
    start(main, Arguments, STUDY, __doc__)
