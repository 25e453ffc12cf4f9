"""Tables 1 to 9, 13 and 14 of the ASR paper, by the design of `studies.asr` at the paper's scale."""

import dataclasses
import functools
import shlex

from netbridge.train.recipes import RECIPES, Recipe
from studies.asr import __main__ as asr
from studies.asr import design, paper
from studies.asr.design import Arm
from studies.asr.plan import Plan
from studies.lab import jobs
from studies.lab.networks import USUAL
from studies.plan.cells import ASR, Cell

SEED = 0
RECIPES_OF = {"VGG": "paper-vgg", "ShuffleNetV2": "paper-vgg", "MobileNetV1": "paper-vgg", "RepVGG": "paper-repvgg",
              "ACNet": "paper-acnet"}  # the columns of Table 10; a ResNet has "paper"  # fmt: skip
ON_IMAGENET = {  # network, depth, width and recipe of the rows of Table 2
    "ResNet34": ("resnet", 34, 64, "imagenet"),
    "ResNet50": ("resnet", 50, 64, "imagenet"),
    "ResNet101": ("resnet", 101, 64, "imagenet"),
    "ViT-S": ("vit-s", 12, 384, "imagenet-vit"),
    "ViT-B": ("vit-b", 12, 768, "imagenet-vit"),
}
DEPTHS = {"ResNet56": 56, "ResNet110": 110, "ResNet164": 164}  # of Table 5, basic blocks
HALVES = "CIFAR's widths and strides are not said: the networks of netbridge"
TIMES = "the paper's frames per second are of a machine that it does not name; `studies.asr --part speed` gives ratios"
BEGINS = "goes on from ViT-B at 224 pixels: `studies.train` begins with fresh weights only"
ONE_DEVIATION = "noise here has one deviation for scale and shift"
TOP5 = "results keep the top-1 accuracy alone"
THEIR_ACNET = "layers and widths of ACNet's own code are not said; SE's reduction of 16 leaves 1, 2 and 4 units"
FIRST_VALUE = "the first value of the vector is not said"


@functools.cache
def plan_on(dataset, depth: int = 164) -> Plan:
    """The study's plan at the paper's scale."""
    return Plan(asr.fill_in_options(asr.Arguments(full=True, dataset=dataset, depth=depth)))


def papers_recipe(dataset: str, name: str = "paper") -> Recipe:
    """A column of Table 10, with Appendix C's batches on STL-10."""
    return jobs.recipe_of(name, dataset)


def cell(table: str, row: str, dataset: str, value: float, job=None, name: str = "paper", **more) -> Cell:
    """A cell whose column is a data set."""
    if job is None:
        return Cell(ASR, table, row, USUAL[dataset], f"{value:.2f}", **more)
    wanted = papers_recipe(dataset, name)
    return Cell(ASR, table, row, USUAL[dataset], f"{value:.2f}", job, wanted, command=command_of(job), **more)


@functools.cache
def trained_by_the_study(dataset: str) -> frozenset[str]:
    """The digests of all jobs that `studies.asr --full` trains on a data set."""
    return frozenset(run.job.digest for run in plan_on(dataset).everything())


def command_of(job: jobs.Job) -> str:
    """What trains a network: the study, or `studies.train` where its options can say all of it; else "".

    A backbone with another module than SE, and noise or constant vectors with one, are made from Python alone.
    """
    words = ["python", "-m", "studies.asr", "--full", "--train", "--dataset", job.dataset]
    if job.dataset != "imagenet" and job.digest in trained_by_the_study(job.dataset):
        return shlex.join(words)
    if job.network not in jobs.SHAPES or job.options or job.noise or job.start:
        return ""
    words = ["python", "-m", "studies.train", "--dataset", job.dataset, "--controller", job.label]
    words += ["--seed", str(job.seed), "--depth", str(job.depth), "--recipe", job.recipe.name]
    words += ["--network", job.network] if job.network != "resnet" else []
    words += ["--set", "decay_gates=false"] if not job.recipe.decay_gates else []
    return shlex.join(words)


def arm_of(module: str, **options) -> Arm:
    """ASR with a module; "" is the network without it."""
    return Arm(design.asr(module.lower(), **options)) if module else Arm()


def speeds() -> list[Cell]:
    """Table 1: parameters, which the networks have, and frames per second."""
    found = [
        cell("1", name, dataset, value, plan_on(dataset).job(Arm() if name == "plain" else Arm(name.lower()), SEED))
        for name, pair in paper.PARAMETERS.items()
        for dataset, value in zip(("cifar100", "stl10"), pair, strict=True)
    ]
    found = [dataclasses.replace(one, column=f"{one.column}, parameters (M)") for one in found]
    return found + [
        Cell(ASR, "1", name, USUAL[dataset], f"{value} fps", reason=TIMES)
        for name, pair in paper.SPEED.items()
        for dataset, value in zip(("cifar100", "stl10"), pair, strict=True)
    ]


def on_imagenet() -> list[Cell]:
    """Table 2. ASR of a transformer has tanh, and 0.001 everywhere at first."""
    found = []
    for row, (_, pixels, values) in paper.IMAGENET.items():
        for module, value in zip(paper.ON_IMAGENET, values, strict=True):
            shown, printed = f"{row}{f', ASR({module})' if module else ''}", f"{value:.2f}"
            if row not in ON_IMAGENET:
                found.append(Cell(ASR, "2", shown, f"{pixels} pixels", printed, reason=BEGINS))
                continue
            network, depth, width, name = ON_IMAGENET[row]
            recipe = RECIPES[name]
            transformer = network != "resnet"
            first = {"activation": "tanh", "init": design.FIRST_FACTOR, "inner": design.FIRST_FACTOR}
            arm = arm_of(module, **first) if transformer and module else arm_of(module)
            trained = jobs.recipe_of(name, "imagenet", decay_gates=False if module else None)
            width = 16 if not transformer else width
            job = jobs.Job("imagenet", arm.controller, SEED, trained, depth, width, network=network)
            how = command_of(job)
            found.append(Cell(ASR, "2", shown, f"{pixels} pixels", printed, job, recipe, command=how))
    return found


def backbones() -> list[Cell]:
    """Table 3."""
    found = []
    for name, rows in paper.BACKBONES.items():
        for module, values in rows.items():
            for dataset, value in zip(paper.COLUMNS, values, strict=True):
                plan, shown = plan_on(dataset), f"{name}{f', ASR({module})' if module else ''}"
                if name == "ResNet":
                    found.append(cell("3", f"ResNet-164{shown[6:]}", dataset, value, plan.job(arm_of(module), SEED)))
                else:
                    job = plan.backbone(name, arm_of(module), SEED)
                    found.append(cell("3", shown, dataset, value, job, RECIPES_OF[name], remark=HALVES))
    return found


def beside() -> list[Cell]:
    """Table 4: a live module alone, and with ASR beside it."""
    found = []
    for depth, rows in paper.BESIDE.items():
        for module, columns in rows.items():
            for dataset, pair in zip(paper.COLUMNS, columns, strict=False):
                plan, text = plan_on(dataset, depth), module.lower()
                both = Arm(design.asr(text, beside=text))
                for shown, value, arm in zip((module, f"{module} + ASR"), pair, (Arm(text), both), strict=True):
                    found.append(cell("4", f"ResNet-{depth}, {shown}", dataset, value, plan.job(arm, SEED)))
    return found


def reparameterised() -> list[Cell]:
    """Table 5."""
    found = []
    for network, rows in paper.REPARAMETERISED.items():
        for what, values in rows.items():
            for dataset, value in zip(paper.COLUMNS, values, strict=False):
                plan, arm = plan_on(dataset), arm_of("SE" if "ASR" in what else "")
                shown = f"{network}{f', {what}' if what else ''}"
                if network.startswith("RepVGG"):
                    job = plan.backbone("RepVGG", arm, SEED, options={"variant": network[-2:]})
                    found.append(cell("5", shown, dataset, value, job, "paper-repvgg", remark=HALVES))
                    continue
                basic: dict = {"bottleneck": False} if DEPTHS[network] == 164 else {}
                options = basic | ({"convolution": "asymmetric"} if what else {})
                more = {"depth": DEPTHS[network], "options": options or None}
                job = plan.backbone("ACNet", arm, SEED, **more)
                found.append(cell("5", shown, dataset, value, job, "paper-acnet", remark=THEIR_ACNET))
    return found


def uses() -> list[Cell]:
    """Tables 6 and 14, of which the second repeats the first with top-5 beside it."""
    found, plan = [], plan_on("cifar100")
    for module, values in paper.USES.items():
        for count, value in enumerate(values, 1):
            arm = arm_of(module, uses=count) if count > 1 else arm_of(module)
            row = f"ASR({module}), {count} use{'s' * (count > 1)}"
            found.append(cell("6", row, "cifar100", value, plan.job(arm, SEED)))
            if module in paper.USES_TOP5:
                found.append(cell("14", row, "cifar100", value, plan.job(arm, SEED)))
                top = paper.USES_TOP5[module][count - 1]
                found.append(Cell(ASR, "14", row, "CIFAR-100, top-5", f"{top:.2f}", reason=TOP5))
    return found


def fixed() -> list[Cell]:
    """Table 7: psi that is not learnt, in the design's arms with each module."""
    found, plan = [], plan_on("cifar100")
    for module, rows in paper.FIXED.items():
        for name, value in rows.items():
            arm = design.FIXED[name]
            controller = arm.controller.replace(design.SE, module.lower())
            found.append(cell("7", f"ASR({module}), {name}", "cifar100", value, plan.job(Arm(controller), SEED)))
    return found


def noise() -> list[Cell]:
    """Table 8."""
    found, plan = [], plan_on("cifar100")
    for name, values in paper.NOISE.items():
        for module, value in zip(paper.NOISY, values, strict=True):
            row = f"{name}{f', ASR({module})' if module else ', plain'}"
            if name not in design.NOISES:
                found.append(cell("8", row, "cifar100", value, reason=ONE_DEVIATION))
                continue
            job = plan.job(arm_of(module), SEED, noise=design.NOISES[name])
            found.append(cell("8", row, "cifar100", value, job))
    return found


def bare() -> list[Cell]:
    """Table 9, the row without a module; the others are Table 3's."""
    return [
        cell("9", "vector without a module", dataset, value, plan_on(dataset).job(design.BARE["vector from 0.1"], SEED),
             remark=FIRST_VALUE)
        for dataset, value in zip(paper.COLUMNS, paper.BARE, strict=True)
    ]  # fmt: skip


def starts() -> list[Cell]:
    """Table 13: ResNet-83."""
    found, plan = [], plan_on("cifar100", 83)
    for module, values in paper.STARTS.items():
        for tenth, value in enumerate(values, 1):
            arm = arm_of(module, init=tenth / 10) if tenth > 1 else arm_of(module)
            found.append(cell("13", f"ASR({module}), psi from 0.{tenth}", "cifar100", value, plan.job(arm, SEED)))
    return found


def every_cell() -> list[Cell]:
    """All cells of the paper's tables."""
    parts = (speeds, on_imagenet, backbones, beside, reparameterised, uses, fixed, noise, bare, starts)
    return [one for part in parts for one in part()]
