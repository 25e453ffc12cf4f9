"""The design of the study: its arms, the networks of every part, and the order in which they are trained.

Whatever is about ResNets is asked twice: at the scale of the shipped networks (32 x 32 pixels, the recipe `short`), and
at a small scale (16 x 16, five epochs of 10,000 images) that half a minute of a core trains, so that there are seeds
enough. The queue goes by claims: first what decides one at the small scale, the cheapest first.

An arm is a network whose attention differs and nothing else; every arm of a part has the same seeds, so that the
controls meet ASR on equal terms. Seeds are the outer loop everywhere: when training stops early, every arm has as many.
"""

import dataclasses
import re
from typing import Any, Literal

import netbridge as nb
from netbridge.train.recipes import Recipe
from studies.lab import definitions, jobs, networks

PLAIN, HALF, GAMMA, BIAS = "plain", "half", "gamma", "bias"
FAITHFUL, LITERAL, DECAYED = "ASR(SE, r=4)", "ASR(SE)", "ASR(SE), psi decayed"
LAST_SCALE = "stages.*.branch.bn2.weight"  # the scale of the last normalisation of a basic block's branch
LAST_BIAS = "*.excite.2.bias"  # the bias of the second linear map of SE's head


@dataclasses.dataclass(frozen=True)
class Arm:
    """How the networks of an arm differ from plain ones.

    controller  what decides the step size, as text
    start       first values of parameters, see `jobs.Job`
    decay       whether the vectors psi decay, as they do in the literal recipe
    """

    controller: str = "constant"
    start: tuple[tuple[str, float], ...] = ()
    decay: bool = False


def asr(module: str, **options) -> str:
    """The text of ASR with a module and options."""
    return f"asr({', '.join([module, *(f'{key}={value}' for key, value in options.items())])})"


FOUR = "se(reduction=4)"
CONTROLS = {  # tier 1, in the order of their worth
    PLAIN: Arm(),
    HALF: Arm("constant(0.5)"),
    FAITHFUL: Arm(asr(FOUR)),
    LITERAL: Arm(asr("se")),
    GAMMA: Arm(start=((LAST_SCALE, 0.5),)),
    BIAS: Arm("bias"),
}
ORIGIN = {  # live SE as it is, and with the biases of its gates at 0 before training
    "SE": Arm("se"),
    "SE, b2 = 0": Arm("se", start=((LAST_BIAS, 0.0),)),
    DECAYED: Arm(asr("se"), decay=True),
}
NOISY = {name: CONTROLS[name] for name in (PLAIN, HALF, FAITHFUL, LITERAL)}
NOISES: dict[str, tuple[float, float, float] | None] = {
    "(0.8, 0.8)": (0.8, 0.8, 0.0),
    "none": None,
    "(0.5, 0.5)": (0.5, 0.5, 0.0),
    "random 0.2": (1.0, 0.0, 0.2),
    "(0.8, 0.5)": (0.8, 0.5, 0.0),
    "(0.5, 0.2)": (0.5, 0.2, 0.0),
    "random 0.1": (1.0, 0.0, 0.1),
    "random 0.3": (1.0, 0.0, 0.3),
    "(0.8, 0.8), ResNet-56": (0.8, 0.8, 0.0),
}
DEEPER = {"(0.8, 0.8), ResNet-56": 56}  # layers, where they are not as many as everywhere; without the literal arm
BESIDE = {  # Tables 3 (row ResNet) and 4
    **{f"ASR({name.upper()})": Arm(asr(name)) for name in ("ie", "srm", "spa")},
    **{name.upper(): Arm(name) for name in ("se", "ie", "srm", "spa")},
    **{f"{name.upper()} + ASR({name.upper()})": Arm(asr(name, beside=name)) for name in ("se", "ie", "srm", "spa")},
}
USES = {f"{uses} uses": Arm(asr(FOUR, uses=uses)) for uses in (2, 3, 4)} | {
    f"constant {0.5**uses:g}": Arm(f"constant({0.5**uses})") for uses in (2, 3, 4)
}
FIXED = {f"psi = {value}": Arm(asr(FOUR, learnable=False, init=value)) for value in (0.1, 0.3, 0.5)} | {
    f"psi ~ N(0, {value})": Arm(asr(FOUR, learnable=False, init=0.0, spread=value)) for value in (0.1, 0.3, 0.5)
}
STARTS = {f"psi from {value}": Arm(asr(FOUR, init=value)) for value in (0.2, 0.3, 0.4, 0.5, 0.6)}
TRANSFORMER = "ViT"
LAYER_SCALE, FIRST_FACTOR = "LayerScale", 1e-3  # of transformers, also the paper's first value of psi and of the head
BACKBONES: dict[str, tuple[str, dict]] = {  # the function of netbridge that builds it, and its arguments
    "RepVGG": ("repvgg", {"blocks": (3, 4, 3), "widths": (16, 32, 64)}),
    "ACNet": ("resnet", {"convolution": "asymmetric"}),
    TRANSFORMER: ("vit", {}),
    "VGG": ("vgg", {"blocks": (1, 1, 2, 2), "width": 16}),
    "MobileNetV1": ("mobilenet", {"version": 1, "width": 0.25}),
    "ShuffleNetV2": ("shufflenet", {"width": 0.5, "blocks": (3, 3, 3), "widths": (48, 96, 192, 256)}),
    "MobileNetV2": ("mobilenet", {"width": 0.25}),
}
SRP = ("RepVGG", "ACNet")  # what Table 5 puts ASR on
PAPERS_BACKBONES: dict[str, tuple[str, dict, str]] = {  # with --full: the paper's sizes, and the recipe of each
    "RepVGG": ("repvgg", {"variant": "A0"}, "paper-repvgg"),
    "ACNet": ("resnet", {"convolution": "asymmetric"}, "paper-acnet"),
    TRANSFORMER: ("vit", {}, "vit"),
    "VGG": ("vgg", {"depth": 19}, "paper-vgg"),
    "MobileNetV1": ("mobilenet", {"version": 1}, "paper-vgg"),
    "ShuffleNetV2": ("shufflenet", {"width": 1.0}, "paper-vgg"),
    "MobileNetV2": ("mobilenet", {"width": 1.0}, "paper-vgg"),
}
PAPERS_ACNET = 56  # layers of the smallest ResNet-ACNet of Table 5
ON_BACKBONES = {name: CONTROLS[name] for name in (PLAIN, HALF, FAITHFUL)}
ON_TRANSFORMERS = {
    PLAIN: Arm(),
    HALF: Arm("constant(0.5)"),
    LAYER_SCALE: Arm(f"asr(init={FIRST_FACTOR})"),
    FAITHFUL: Arm(asr(FOUR, activation="tanh", init=FIRST_FACTOR, inner=FIRST_FACTOR)),
}
BARE = {"vector from 0.1": Arm("asr()"), "vector from 1": Arm("asr(init=1.0)")}
SCHEDULES: dict[str, tuple[str, dict]] = {
    "SE, steps": ("se", {}),
    "SE, constant rate": ("se", {"drops": ()}),
    "SE, cosine": ("se", {"drops": (), "schedule": "cosine"}),
    **{f"SE, decay {decay:g}": ("se", {"weight_decay": decay}) for decay in (2e-4, 3e-4, 4e-4)},
    "IE, steps": ("ie", {}),
    "SRM, steps": ("srm", {}),
    "SE, steps, ResNet-56": ("se", {}),
}
AT_THE_DROP = ("SE, steps", "IE, steps", "SRM, steps")  # what the claim about the first decay is decided by
AT_A_CONSTANT_RATE = "SE, constant rate"  # and what it is compared with
LIVE = ("se", "eca", "ie", "srm", "fca")  # modules with one number per image and channel, of which networks are shipped
FINETUNING = Recipe(
    "finetune", 1, lr=0.01, weight_decay=5e-4, decay_all=False, shift=2, border="reflect", bfloat16=True
)
PAPERS_DYNAMICS: dict[str, Any] = {"epochs": 164, "drops": (81, 122)}
DYNAMICS: dict[str, Any] = {
    "epochs": 8,
    "lr": 0.1,
    "schedule": "steps",
    "drops": (4, 6),
    "weight_decay": 1e-4,
    "decay_all": True,
}
SCALED = CONTROLS | {name: ORIGIN[name] for name in ("SE", "SE, b2 = 0")}  # the arms at the small scale
NOISES_FIRST, RANDOM_FIRST = "(0.8, 0.8)", "random 0.2"  # the noise of the paper's largest gain, and one that is drawn
SMALL = 16  # pixels of the images of the small networks: all of tier 2
SMALL_EPOCHS = 5
SMALL_IMAGES = 10_000  # the first so many training images are theirs
LARGE_SCALE, SMALL_SCALE = "at the shipped networks' scale", "at the small scale"
SHAPES: dict[str, dict] = {"cifar10": {}, "digits": {"depth": 32, "width": 4}}  # of the shipped networks, by data set
FEW = 3  # seeds of what is not asked of every seed
TWICE = {"beside": BESIDE, "uses": USES, "fixed": FIXED, "starts": STARTS, "bare": BARE}  # asked at both scales
DECIDING_USES = ("2 uses", "3 uses")
PAINTED = 10  # the group of the queue that the networks which repaint pictures stand before
Tier = Literal[1, 2, 3, 4, 5]
TIERS: dict[Tier, tuple[str, ...]] = {
    1: ("controls", "origin"),
    2: ("small", "noise", "dynamics", "finetuned"),
    3: ("backbones",),
    4: ("beside",),
    5: ("uses", "fixed", "starts", "bare"),
}


@dataclasses.dataclass(frozen=True)
class Run:
    """One network of a part of the study.

    part      such as "controls" or "noise"
    arm       its row
    job       everything that determines the network
    column    what else its cell is about, such as the noise; ""
    observed  whether the gates are looked at after every epoch
    """

    part: str
    arm: str
    job: jobs.Job
    column: str = ""
    observed: bool = False

    @property
    def seed(self) -> int:
        return self.job.seed

    @property
    def stem(self) -> str:
        """A file name that can be read, made unique by the digest; the same network of two parts has one name."""
        words = re.sub(r"[^\w.]+", "-", self.job.label).strip("-")
        kind = "-observed" if self.observed else "-finetuned" if self.part == "finetuned" else ""
        return f"{self.job.dataset}-{self.job.kind}-{words}{kind}-seed{self.seed}-{self.job.digest}"


class Plan:
    """The networks of every part, and the order of training.

    arguments  the study's options: dataset, depth, recipe, epochs, seeds, tiers, rows and full are read
    parts      the parts that are wanted; None for all
    """

    def __init__(self, arguments, parts=None):
        self.arguments, self.parts = arguments, parts
        self.recipe = jobs.recipe_of(arguments.recipe, arguments.dataset, epochs=arguments.epochs)

    def job(self, arm: Arm, seed: int, recipe=None, **more) -> jobs.Job:
        recipe = self.recipe if recipe is None else recipe
        if "asr(" in arm.controller and not arm.decay:
            recipe = dataclasses.replace(recipe, decay_gates=False)
        arguments = self.arguments
        options = {"images": arguments.images} | more
        options |= {"start": arm.start, "depth": options.get("depth", arguments.depth)}
        return jobs.Job(arguments.dataset, arm.controller, seed, recipe, **options)

    def part(self, name: str) -> list[Run]:
        """All networks of a part, seeds in the outer loop."""
        seeds, few = self.arguments.seeds, self.arguments.seeds[:FEW]
        if self.arguments.full and name == "small":
            return []  # the paper's scale is the only one
        if name == "noise":
            return self.noise(few)
        if name in ("dynamics", "finetuned", "backbones"):
            return getattr(self, name)(few)
        if name == "small":
            return [Run(name, arm, self.small_job(SCALED[arm], seed)) for seed in seeds for arm in SCALED]
        if name in TWICE:
            table = TWICE[name] | (self.own_beside() if name == "beside" else {})
            arms = [(arm, how, seed) for seed in few for arm, how in table.items()]
            small = [Run(name, arm, self.small_job(how, seed), SMALL_SCALE) for arm, how, seed in arms]
            return ([] if self.arguments.full else small) + [
                Run(name, arm, self.job(how, seed)) for arm, how, seed in arms
            ]
        table, seeds = {"controls": (CONTROLS, seeds), "origin": (ORIGIN, seeds[:2])}[name]
        return [Run(name, arm, self.job(table[arm], seed)) for seed in seeds for arm in table]

    def own_beside(self) -> dict[str, Arm]:
        """The controllers of the files of `--define`: alone and, where ASR can feed them a vector, as ASR and both."""
        arms: dict[str, Arm] = {}
        for name in definitions.controllers(self.arguments.define):
            arms |= self.own_asr(name) | {name: Arm(name)}
            if self.own_asr(name):
                arms[f"{name} + ASR({name})"] = Arm(str(nb.asr(name, beside=name)))
        return arms

    def own_asr(self, name: str) -> dict[str, Arm]:
        """ASR with a controller of the user's own, under its name; nothing where that is no module of channels."""
        try:
            return {f"ASR({name})": Arm(str(nb.asr(name)))}
        except ValueError:
            return {}

    def small_job(self, arm: Arm, seed: int, recipe=None, **more) -> jobs.Job:
        """At 16 x 16 pixels, on few images: about a minute of one core. With --full the paper's scale."""
        if self.arguments.full:
            return self.job(arm, seed, recipe, **more)
        if recipe is None:
            recipe = dataclasses.replace(self.recipe, epochs=min(SMALL_EPOCHS, self.recipe.epochs), small=())
        digits, asked = self.arguments.dataset == "digits", self.arguments.images
        more |= {} if digits else {"size": SMALL, "images": min(SMALL_IMAGES, asked or SMALL_IMAGES)}
        return self.job(arm, seed, recipe, **more)

    def noise(self, seeds) -> list[Run]:
        depth = self.arguments.depth
        return [
            Run("noise", arm, self.small_job(how, seed, noise=noise, depth=DEEPER.get(column, depth)), column)
            for column, noise in NOISES.items()
            for seed in seeds
            for arm, how in NOISY.items()
            if not (column in DEEPER and (arm == LITERAL or self.arguments.full))
        ]

    def dynamics(self, seeds) -> list[Run]:
        """One seed each: a movement is compared with others of the same network."""
        runs = []
        for name, (controller, changes) in SCHEDULES.items():
            usual = DYNAMICS | (PAPERS_DYNAMICS if self.arguments.full else {})
            recipe = dataclasses.replace(self.recipe, **usual | changes, average=False, small=(), evaluate_every=1)
            depth = 56 if name.endswith("ResNet-56") else self.arguments.depth
            job = self.small_job(Arm(controller), seeds[0], recipe, depth=depth)
            runs.append(Run("dynamics", name, job, observed=True))
        return runs

    def finetuned(self, seeds) -> list[Run]:
        """Shipped networks whose gates are replaced by their means and whose other weights then go on for an epoch."""
        dataset = self.arguments.dataset
        wanted = [
            (name, jobs.Job(dataset, name, seed, FINETUNING, **SHAPES.get(dataset, {})))
            for seed in (0, 1)
            for name in LIVE
        ]
        there = [(name, job) for name, job in wanted if (networks.ZOO / dataset / f"{job.stem}.safetensors").is_file()]
        return [Run("finetuned", networks.controller_name(name), job) for name, job in there]

    def backbones(self, seeds) -> list[Run]:
        """Transformers have a recipe of their own, and twice the epochs; with --full the paper's sizes and recipes."""
        arguments, runs = self.arguments, []
        own: dict[str, Arm] = {}
        for name in definitions.controllers(arguments.define):
            own |= self.own_asr(name)
        for name, (network, options) in BACKBONES.items():
            transformer = name == TRANSFORMER
            arms = (ON_TRANSFORMERS if transformer else ON_BACKBONES) | own
            depth = 6 if transformer else 20
            if arguments.full:
                network, options, papers = PAPERS_BACKBONES[name]
                recipe = jobs.recipe_of(papers, arguments.dataset, epochs=arguments.epochs)
                depth = PAPERS_ACNET if name == "ACNet" else depth
            else:
                recipe = (
                    jobs.recipe_of(arguments.recipe, arguments.dataset, network="vit") if transformer else self.recipe
                )
                epochs = min(2 * SMALL_EPOCHS if transformer else SMALL_EPOCHS, self.recipe.epochs)
                recipe = dataclasses.replace(recipe, epochs=epochs, small=())
            shape = {"network": network, "options": options or None, "depth": depth}
            shape |= {"width": 64} if transformer else {}
            runs += [
                Run("backbones", arm, self.small_job(arms[arm], seed, recipe, **shape), name)
                for seed in seeds
                for arm in arms
            ]
        return runs

    def everything(self) -> list[Run]:
        """Every network of the tiers and parts that are asked for."""
        names = [name for tier in self.arguments.tier for name in TIERS[tier]]
        return [run for name in names if self.parts is None or name in self.parts for run in self.part(name)]

    def runs(self) -> list[Run]:
        """Those of them whose rows are asked for."""
        only = self.arguments.only
        return [run for run in self.everything() if not only or run.arm in only]

    def queue(self) -> list[Run]:
        """In the order of training: what decides most for least time comes first, seeds in the outer loop."""
        ordered: dict[str, Run] = {}
        for run in sorted(self.runs(), key=self.turn):
            ordered.setdefault(run.stem, run)  # a network of two parts stands where it is wanted first
        return list(ordered.values())

    def turn(self, run: Run) -> tuple[int, int]:
        """Where a network stands in the queue: its group, and within that its seed."""
        seeds = self.arguments.seeds
        position = seeds.index(run.seed) if run.seed in seeds else run.seed
        first, small, part = position < FEW, run.column == SMALL_SCALE, run.part
        deciding = run.arm in (PLAIN, HALF, FAITHFUL)
        groups = [
            first
            and run.arm != LITERAL
            and part == "small"
            and run.arm in CONTROLS,  # ASR against its controls, bounds
            deciding and run.column == NOISES_FIRST,  # constant noise
            part == "finetuned" and run.seed == 0,  # the rest that fine-tuning leaves
            part == "dynamics" and run.arm in (*AT_THE_DROP, AT_A_CONSTANT_RATE),  # the first decay
            run.column == SRP[0],  # ASR on top of a re-parameterised network
            deciding and run.column == RANDOM_FIRST,  # random noise
            small and run.arm in DECIDING_USES,  # several uses
            run.column == TRANSFORMER,  # vision transformers and LayerScale
            small and part == "beside",  # beside a live module
            small and part == "fixed",  # psi that is not learnt
            first and part == "small",  # behind PAINTED: the literal arm, and where the constants come from
            run.column in (*SRP, "VGG"),
            part == "dynamics",
            small and part in TWICE,
            deciding and part == "noise",
            part == "finetuned",
            part in ("noise", "backbones"),
            first and part == "controls",
            part == "small",
            part in TIERS[1],
            part in TIERS[4],
            True,
        ]
        return groups.index(True), position
