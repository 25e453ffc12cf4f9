"""What is trained: the arms of the study, the accuracies that the paper prints of them, and the queue of networks.

Whatever is about ResNets is asked twice: at the scale of the shipped networks (32 x 32 pixels, the recipe `short`), and
at a small scale (16 x 16, five epochs of 10,000 images) that half a minute of a core trains, so that there are seeds
enough.

An arm is a network whose attention differs and nothing else; every arm of a part has the same seeds, so that the
controls meet ASR on equal terms. The queue goes by claims: first what decides one at the small scale, the cheapest
first. Seeds are the outer loop everywhere: when training stops early, every arm has as many.
"""

import dataclasses
import functools
import re
from typing import Any, Literal

import torch

import netbridge as nb
from netbridge.model import resnet
from netbridge.train.recipes import Recipe
from studies.lab import definitions, jobs, networks

# ---- The arms ----

PAPERS_REDUCTION, PAPERS_CHANNELS = 16, 64  # of SE; of the states of the first stage of the paper's ResNets
NARROW_REDUCTION = 4  # of SE in other backbones than ResNets, which are about a quarter as wide as the paper's here
PLAIN, HALF, GAMMA, BIAS = "plain", "half", "gamma", "bias"
FAITHFUL, LITERAL, DECAYED = "ASR(SE), paper's units", "ASR(SE)", "ASR(SE), psi decayed"
SE = "se(the paper's units)"  # in a controller's text: SE with the reduction that `reduction_for` names
LAST_SCALE = "the last scale"  # in `Arm.start`: the scale of the last normalisation of every block's branch
LAST_BIAS = "*.excite.2.bias"  # the bias of the second linear map of SE's head


@dataclasses.dataclass(frozen=True)
class Arm:
    """How the networks of an arm differ from plain ones.

    controller  what decides the step size, as text; `SE` in it stands for SE with as many hidden units as the paper's
    start       first values of parameters, see `jobs.Job`; `LAST_SCALE` stands for a pattern of their names
    decay       whether the vectors psi decay, as they do in the literal recipe
    """

    controller: str = "constant"
    start: tuple[tuple[str, float], ...] = ()
    decay: bool = False

    def controller_with(self, reduction: int) -> str:
        """The text of the controller, SE's reduction filled in; 16 is what SE has where none is given."""
        return self.controller.replace(SE, "se" if reduction == PAPERS_REDUCTION else f"se(reduction={reduction})")

    def start_of(self, depth: int) -> tuple[tuple[str, float], ...]:
        """The first values in a ResNet of so many layers, with patterns that match names of its parameters."""
        return tuple((last_scale(depth) if name == LAST_SCALE else name, value) for name, value in self.start)


@functools.cache
def reduction_for(depth: int) -> int:
    """The reduction with which SE on a ResNet of so many layers has the paper's 4, 8 and 16 hidden units.

    The states of the first stage have 64 channels where blocks are bottlenecks, as in the paper's ResNet-83 and -164,
    and 16 where they are basic.
    """
    widening = len(branch_of(depth)(torch.zeros(1, 1, 1, 1)).flatten())
    return PAPERS_REDUCTION * widening * resnet.CIFAR_WIDTHS[0] // PAPERS_CHANNELS


def branch_of(depth: int) -> nb.Branch:
    """A branch of the kind that a ResNet of so many layers has, one channel wide."""
    bottleneck = resnet.architecture(depth, None, None, None)[1]["bottleneck"]
    return nb.Branch(1, 1, 1, bottleneck, post_activation=True).eval()


@functools.cache
def last_scale(depth: int) -> str:
    """A pattern of names: the scales of the last normalisations of all branches of a ResNet of so many layers.

    Those of the others would do nothing: the normalisation that follows divides their scale away.
    """
    branch = branch_of(depth)
    (name,) = (name for name, module in branch.named_modules() if module is branch.last)
    return f"stages.*.branch.{name}.weight"


def asr(module: str, **options) -> str:
    """The text of ASR with a module and options."""
    return f"asr({', '.join([module, *(f'{key}={value}' for key, value in options.items())])})"


CONTROLS = {  # tier 1, in the order of their worth
    PLAIN: Arm(),
    HALF: Arm("constant(0.5)"),
    FAITHFUL: Arm(asr(SE)),
    LITERAL: Arm(asr("se")),
    GAMMA: Arm(start=((LAST_SCALE, 0.5),)),
    BIAS: Arm("bias"),
}
ORIGIN = {  # live SE as it is, and with the biases of its gates at 0 before training
    "SE": Arm("se"),
    "SE, b2 = 0": Arm("se", start=((LAST_BIAS, 0.0),)),
    DECAYED: Arm(asr("se"), decay=True),
}
OTHERS = ("IE", "SRM", "SPA")  # modules of ASR beside SE, in tables where SE's arms alone decide
NOISY = {name: CONTROLS[name] for name in (PLAIN, HALF, FAITHFUL, LITERAL)}
NOISY |= {f"ASR({name})": Arm(asr(name.lower())) for name in ("IE", "SRM")}
NOISES: dict[str, tuple[float, float, float | tuple[float, float]] | None] = {
    "(0.8, 0.8)": (0.8, 0.8, 0.0),
    "none": None,
    "(0.5, 0.5)": (0.5, 0.5, 0.0),
    "random 0.2": (1.0, 0.0, 0.2),
    "(0.8, 0.5)": (0.8, 0.5, 0.0),
    "(0.5, 0.2)": (0.5, 0.2, 0.0),
    "random 0.1": (1.0, 0.0, 0.1),
    "random 0.3": (1.0, 0.0, 0.3),
    "random (0.1, 0.2)": (1.0, 0.0, (0.1, 0.2)),
    "random (0.2, 0.1)": (1.0, 0.0, (0.2, 0.1)),
    "(0.8, 0.8), ResNet-56": (0.8, 0.8, 0.0),
}
DEEPER = {"(0.8, 0.8), ResNet-56": 56}  # layers, where they are not as many as everywhere; without the literal arm
BESIDE = {  # Tables 3 (row ResNet) and 4
    **{f"ASR({name})": Arm(asr(name.lower())) for name in OTHERS},
    **{name.upper(): Arm(name) for name in ("se", "ie", "srm", "spa")},
    **{f"{name.upper()} + ASR({name.upper()})": Arm(asr(name, beside=name)) for name in ("se", "ie", "srm", "spa")},
}
USES = {f"{uses} uses": Arm(asr(SE, uses=uses)) for uses in (2, 3, 4)} | {
    f"constant {0.5**uses:g}": Arm(f"constant({0.5**uses})") for uses in (2, 3, 4)
}
FIXED = {f"psi = {value}": Arm(asr(SE, learnable=False, init=value)) for value in (0.1, 0.3, 0.5)} | {
    f"psi ~ N(0, {value})": Arm(asr(SE, learnable=False, init=0.0, spread=value)) for value in (0.1, 0.3, 0.5)
}
STARTS = {f"psi from {value}": Arm(asr(SE, init=value)) for value in (0.2, 0.3, 0.4, 0.5, 0.6)}
OF_OTHERS = {  # rows of Tables 6, 7 and 13 with other modules than SE, which have no vote
    part: {f"ASR({module}), {name}": Arm(arm.controller.replace(SE, module.lower()))
           for module in modules for name, arm in arms.items() if SE in arm.controller}
    for part, modules, arms in (("uses", OTHERS, USES), ("fixed", ("IE",), FIXED), ("starts", ("IE",), STARTS))
}  # fmt: skip
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
OTHERS_ON_BACKBONES = {f"ASR({name})": Arm(asr(name.lower())) for name in OTHERS}  # on those of Table 3
DRAWN_HEAD = "ASR(SE), drawn head"
ON_TRANSFORMERS = {
    PLAIN: Arm(),
    HALF: Arm("constant(0.5)"),
    LAYER_SCALE: Arm(f"asr(init={FIRST_FACTOR})"),
    FAITHFUL: Arm(asr(SE, activation="tanh", init=FIRST_FACTOR, inner=FIRST_FACTOR)),
    DRAWN_HEAD: Arm(asr(SE, activation="tanh", init=FIRST_FACTOR)),  # hidden units that differ from the beginning
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
DYNAMICS: dict[str, Any] = {"epochs": 8, "lr": 0.1, "schedule": "steps", "drops": (4, 6)}
DYNAMICS |= {"weight_decay": 1e-4, "decay_all": True}
SCALED = CONTROLS | {name: ORIGIN[name] for name in ("SE", "SE, b2 = 0")}  # the arms at the small scale
NOISES_FIRST, RANDOM_FIRST = "(0.8, 0.8)", "random 0.2"  # the noise of the paper's largest gain, and one that is drawn
SMALL = 16  # pixels of the images of the small networks: all of tier 2
SMALL_EPOCHS = 5
SMALL_IMAGES = 10_000  # the first so many training images are theirs
LARGE_SCALE, SMALL_SCALE = "at the large scale", "at the small scale"
SHAPES: dict[str, dict] = {"cifar10": {}, "digits": {"depth": 32, "width": 4}}  # of the shipped networks, by data set
FEW = 3  # seeds of what is not asked of every seed
TWICE = {"beside": BESIDE, "uses": USES, "fixed": FIXED, "starts": STARTS, "bare": BARE}  # asked at both scales
DECIDING_USES = ("2 uses", "3 uses")
SHOWN_BY = {"origin": "controls", "small": "controls"} | dict.fromkeys(("uses", "fixed", "starts", "bare"), "ablation")
PAINTED = 10  # the group of the queue that the networks which repaint pictures stand before
Tier = Literal[1, 2, 3, 4, 5]
TIERS: dict[Tier, tuple[str, ...]] = {
    1: ("controls", "origin"),
    2: ("small", "noise", "dynamics", "finetuned"),
    3: ("backbones",),
    4: ("beside",),
    5: ("uses", "fixed", "starts", "bare"),
}

# What the verdicts are judged by; every rule says which of these were fixed before the data.
FEWEST_SEEDS = 3  # of every arm of a comparison
FEWEST_NETWORKS = 2  # of every module, where trained networks are looked at
PAPERS_EFFECTS = {  # points of accuracy, as the paper prints them of ASR(SE)
    "gain": 1.5,  # Table 3, ResNet-164 on CIFAR-10: above the plain network
    "module": 1.6,  # the same above a vector without a module, of which Table 9 prints the best of its kind
    "random noise": 2.1,  # Table 8: above the plain network, mean of the three deviations that are tried here
    "uses": 0.4,  # Table 6: two and three uses above one, mean of the two
    "fixed": 0.4,  # Table 7: a learnt psi above one that is not learnt, mean of six
    "first value": 0.6,  # Table 13: 0.1 above the other five first values, mean of five
    "beside": 1.5,  # Table 4, ResNet-164 on CIFAR-100: above the module alone, mean of four
    "other methods": 0.8,  # Table 5 on CIFAR-100: above RepVGG and ACNet without ASR, mean of five
    "transformers": 0.7,  # Table 2: above ViT-S and ViT-B without ASR, mean of three
}
PAPERS_NOISE_GAINS = {  # the same of Table 8 under constant noise; ResNet-56 is not in the paper
    "(0.8, 0.8)": 23.4,
    "(0.5, 0.5)": 36.4,
    "(0.8, 0.5)": 25.0,
    "(0.5, 0.2)": 1.4,
    "(0.8, 0.8), ResNet-56": 23.4,
}
NEGLIGIBLE = {claim: effect / 2 for claim, effect in PAPERS_EFFECTS.items()}  # less than that makes no difference
CONSTANT_SHARE = 0.9  # of the gates' variance, from which on they may be called constants
COSTS_LITTLE = 2.0  # points: what loses less stands for the gates
PAPERS_LOSS, PAPERS_REST = 28.0, 15.0  # per cent or points, Section 6 (1): at once, and after fine-tuning
ABOUT = 5.0  # points: how far "approximately 28 %" reaches; the paper's two numbers lie 13 points apart
REMEMBERED = 0.5  # of the variance of mean gates over channels, from which on they are mostly where they began
STILL = 0.1  # of the gates' deviation in an epoch: what moves less has converged
POSITIONS = 0.5  # of the variance, from which on attention is mostly the position's and not the image's
ALIKE = 0.1  # of a loss: differences below that are no difference
# Seeds at the small scale with which rules about a part find the paper's effect in four of five worlds
NEEDED = {"controls": 8, "noise": 7, "uses": 18, "fixed": 10, "starts": 8, "bare": 4, "backbones": 18}

# ---- What the paper prints in its tables: accuracies in per cent ----
#
# A module is that of ASR, or the live one where it is said; "" is the network without any.

COLUMNS = ("stl10", "cifar100", "cifar10")  # of Tables 3, 5 and 9, in this order
MODULES = ("SE", "IE", "SRM", "SPA")  # of Tables 3, 4 and 6; Table 8 has the first three, Tables 7 and 13 the first two
# Images per second of ResNet-164 on CIFAR-100 and on STL-10, and millions of parameters.
TABLE_1 = {
    "plain": ((1944, 255), (1.73, 1.70)),
    "IE": ((1505, 170), (1.74, 1.72)),
    "SRM": ((1387, 162), (1.76, 1.74)),
    "CBAM": ((793, 127), (1.93, 1.90)),
    "SE": ((1469, 173), (1.93, 1.91)),
    "DIA": ((1092, 211), (1.95, 1.92)),
    "SPA": ((1080, 180), (3.86, 3.83)),
}
TABLE_2 = {  # millions of parameters, pixels, and top-1 of the network, with ASR(SE), ASR(ECA), ASR(SRM)
    "ResNet34": (22, 224, (73.31, 74.04, 73.88, 73.96)),
    "ResNet50": (26, 224, (76.13, 76.70, 76.87, 76.55)),
    "ResNet101": (45, 224, (77.06, 77.79, 77.63, 78.18)),
    "ViT-S": (22, 224, (80.02, 80.33, 80.37, 80.51)),
    "ViT-B": (86, 224, (81.42, 82.54, 82.38, 82.24)),
    "ViT-B at 384": (86, 384, (82.97, 83.55, 83.86, 83.71)),
}
TABLE_2_MODULES = ("", "SE", "ECA", "SRM")
TABLE_3 = {  # by backbone and module of ASR, the columns COLUMNS
    "ResNet": {
        "": (82.38, 74.32, 92.97),
        "SE": (83.70, 75.36, 94.47),
        "IE": (85.15, 75.58, 94.39),
        "SRM": (83.76, 75.23, 94.45),
        "SPA": (83.44, 75.12, 94.65),
    },
    "VGG": {
        "": (79.23, 72.48, 93.15),
        "SE": (79.95, 73.37, 93.98),
        "IE": (80.48, 73.41, 93.55),
        "SRM": (80.35, 73.33, 93.60),
        "SPA": (80.23, 73.38, 93.79),
    },
    "ShuffleNetV2": {
        "": (80.34, 71.12, 91.68),
        "SE": (81.46, 71.34, 91.68),
        "IE": (82.83, 71.89, 91.90),
        "SRM": (81.28, 71.79, 91.69),
        "SPA": (82.15, 72.05, 91.71),
    },
    "MobileNetV1": {
        "": (80.35, 66.87, 90.97),
        "SE": (81.18, 68.91, 91.48),
        "IE": (81.38, 69.45, 91.30),
        "SRM": (81.51, 69.04, 91.09),
        "SPA": (81.35, 68.56, 91.36),
    },
}
TABLE_4 = {  # by layers and live module; STL-10 and CIFAR-100, each the module alone and with ASR beside it
    83: {
        "SE": ((84.21, 85.51), (74.62, 75.87)),
        "IE": ((84.03, 85.70), (74.74, 75.57)),
        "SRM": ((82.09, 84.83), (75.38, 75.78)),
        "SPA": ((77.54, 80.88), (74.64, 74.92)),
    },
    164: {
        "SE": ((83.81, 86.41), (75.29, 77.32)),
        "IE": ((84.69, 85.99), (75.78, 76.20)),
        "SRM": ((84.85, 85.20), (75.32, 77.18)),
        "SPA": ((75.33, 79.61), (75.48, 77.25)),
    },
}
TABLE_5 = {  # STL-10 and CIFAR-100, by network and by what is put on it
    "RepVGG-A0": {"RepVGG": (83.48, 68.80), "RepVGG, ASR(SE)": (84.01, 69.38)},
    "RepVGG-B3": {"RepVGG": (87.05, 76.70), "RepVGG, ASR(SE)": (88.29, 77.42)},
    "ResNet56": {"": (82.25, 70.67), "ACNet": (83.11, 71.42), "ACNet, ASR(SE)": (84.79, 71.81)},
    "ResNet110": {"": (82.02, 72.60), "ACNet": (83.54, 73.01), "ACNet, ASR(SE)": (86.13, 73.46)},
    "ResNet164": {"": (81.78, 71.24), "ACNet": (83.91, 71.60), "ACNet, ASR(SE)": (84.65, 73.50)},
}
TABLE_6 = {  # one to four uses on CIFAR-100
    "SE": (75.36, 75.87, 75.72, 75.22),
    "IE": (75.58, 75.71, 75.45, 74.56),
    "SRM": (75.23, 75.45, 75.61, 75.11),
    "SPA": (75.12, 75.43, 75.81, 75.62),
}
TABLE_14_TOP5 = {
    "SE": (93.53, 93.99, 94.15, 93.56),
    "IE": (93.84, 93.81, 94.07, 93.73),
    "SRM": (93.68, 94.06, 94.21, 93.78),
}
TABLE_7 = {  # CIFAR-100; learnt: Table 3
    "SE": dict(zip(FIXED, (75.18, 75.09, 75.07, 74.56, 75.02, 74.93), strict=True)),
    "IE": dict(zip(FIXED, (75.24, 75.11, 75.14, 75.36, 75.17, 75.47), strict=True)),
}
TABLE_8 = {  # CIFAR-100: plain, ASR(SE), ASR(IE), ASR(SRM); a pair of deviations is that of N_a and of N_b
    "none": (74.32, 75.36, 75.58, 75.23),
    "(0.8, 0.8)": (45.42, 68.81, 69.85, 69.57),
    "(0.8, 0.5)": (46.10, 71.13, 72.38, 71.69),
    "(0.5, 0.5)": (35.77, 72.18, 72.69, 71.85),
    "(0.5, 0.2)": (73.10, 74.48, 75.36, 75.02),
    "random 0.1": (73.16, 75.29, 75.00, 75.00),
    "random (0.1, 0.2)": (73.75, 74.91, 74.98, 75.04),
    "random (0.2, 0.1)": (72.63, 75.15, 74.85, 75.22),
    "random 0.2": (72.87, 75.07, 75.47, 75.02),
    "random 0.3": (73.40, 75.33, 74.76, 75.24),
}
TABLE_8_MODULES = ("", "SE", "IE", "SRM")
# A vector without a module; its first value is not said. The other rows of Table 9 are those of Table 3.
TABLE_9 = (83.44, 74.46, 92.84)
TABLE_13 = {  # ResNet-83, CIFAR-100, psi from 0.1, 0.2, ...
    "SE": (74.83, 74.56, 74.15, 74.17, 74.03, 74.15),
    "IE": (74.77, 74.55, 74.73, 74.25, 74.45, 74.24),
}


# ---- The networks of every part, and the order in which they are trained ----

UNDECIDING = {
    DRAWN_HEAD,
    *OTHERS_ON_BACKBONES,
    *(arm for arms in OF_OTHERS.values() for arm in arms),
    *(name for name, noise in NOISES.items() if noise is not None and isinstance(noise[2], tuple)),
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
    def is_beside_the_claims(self) -> bool:
        """Is it a cell of the paper's tables that no rule reads? Such networks have few seeds and are trained last."""
        return self.part != "beside" and not {self.arm, self.column}.isdisjoint(UNDECIDING)

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

    @property
    def data_name(self) -> str:
        """The data set, written out."""
        return networks.USUAL.get(self.arguments.dataset, self.arguments.dataset)

    @property
    def large_scale(self) -> str:
        """The networks of the large scale, in words: how deep, how trained, on what."""
        return f"ResNet-{self.arguments.depth} on {self.data_name}, {self.recipe.epochs} epochs by `{self.recipe.name}`"

    @property
    def small_scale(self) -> str:
        """The networks of the small scale, in words."""
        job = self.small_job(CONTROLS[PLAIN], 0)
        size = "" if job.size is None else f"{job.size} x {job.size} pixels, "
        images = "all" if job.images is None else f"the first {job.images:,}"
        return f"ResNet-{job.depth}, {size}{images} training images, {job.recipe.epochs} epochs"

    def job(self, arm: Arm, seed: int, recipe=None, **more) -> jobs.Job:
        """The training of a network; `more` are fields of `jobs.Job`, a ResNet of the usual depth without them."""
        recipe = self.recipe if recipe is None else recipe
        if "asr(" in arm.controller and not arm.decay:
            recipe = dataclasses.replace(recipe, decay_gates=False)
        options = {"images": self.arguments.images, "depth": self.arguments.depth} | more
        options |= {"start": arm.start_of(options["depth"])}
        controller = arm.controller_with(self.reduction(options))
        return jobs.Job(self.arguments.dataset, controller, seed, recipe, **options)

    def reduction(self, options: dict) -> int:
        """SE's reduction in a network: that of the paper in networks of its size, fewer where they are narrower."""
        if options.get("network", "resnet") == "resnet" and not options.get("options"):
            return reduction_for(options["depth"])
        return PAPERS_REDUCTION if self.arguments.full else NARROW_REDUCTION

    def apart(self, arms: dict[str, Arm]) -> dict[str, Arm]:
        """The arms without the literal module where that is the one with the paper's units."""
        same = reduction_for(self.arguments.depth) == PAPERS_REDUCTION
        return {name: arm for name, arm in arms.items() if not (same and name == LITERAL)}

    def part(self, name: str) -> list[Run]:
        """All networks of a part, seeds in the outer loop."""
        seeds, few, full = self.arguments.seeds, self.arguments.seeds[:FEW], self.arguments.full
        needed = few if full else seeds[: NEEDED.get(name, FEW)]
        if name in ("noise", "backbones", "dynamics", "finetuned"):
            runs = getattr(self, name)(needed)
            return [run for run in runs if run.seed in seeds[:FEW] or not run.is_beside_the_claims]
        arms = {"controls": self.apart(CONTROLS), "origin": ORIGIN, "small": self.apart(SCALED), **TWICE}[name]
        arms = arms | (self.own_beside() if name == "beside" else {})
        others = OF_OTHERS.get(name, {})
        small, column = (needed, SMALL_SCALE) if name in TWICE else (seeds if name == "small" else (), "")
        large = {"controls": seeds, "origin": seeds[:2], "small": ()}.get(name, few)
        if full:
            small = ()  # the paper's scale is the only one
        runs = [Run(name, arm, self.small_job(arms[arm], seed), column) for seed in small for arm in arms]
        runs += [Run(name, arm, self.job(arms[arm], seed)) for seed in large for arm in arms]
        return runs + [Run(name, arm, self.small_job(how, seed), "" if full else column)
                       for seed in seeds[:FEW] for arm, how in others.items()]  # fmt: skip

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
            for arm, how in self.apart(NOISY).items()
            if not (column in DEEPER and (arm == LITERAL or self.arguments.full))
        ]

    @property
    def usual_dynamics(self) -> dict:
        """What the recipes of the dynamics have in common."""
        if not self.arguments.full:
            return DYNAMICS
        epochs = self.arguments.epochs or PAPERS_DYNAMICS["epochs"]
        return DYNAMICS | PAPERS_DYNAMICS | {"epochs": epochs}

    def dynamics(self, seeds) -> list[Run]:
        """Every seed of what the verdict is about, and one of what only the figure shows."""
        runs = []
        for name, (controller, changes) in SCHEDULES.items():
            recipe = dataclasses.replace(
                self.recipe, **self.usual_dynamics | changes, average=False, small=(), evaluate_every=1
            )
            depth = 56 if name.endswith("ResNet-56") else self.arguments.depth
            for seed in seeds if name in AT_THE_DROP else seeds[:1]:
                job = self.small_job(Arm(controller), seed, recipe, depth=depth)
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
        return [
            Run("finetuned", networks.controller_name(name), job)
            for name, job in wanted
            if (networks.ZOO / dataset / f"{job.stem}.safetensors").is_file()
        ]

    def backbones(self, seeds) -> list[Run]:
        """Transformers have a recipe of their own, and twice the epochs; with --full the paper's sizes and recipes."""
        arguments, runs = self.arguments, []
        own: dict[str, Arm] = {}
        for name in definitions.controllers(arguments.define):
            own |= self.own_asr(name)
        for name in BACKBONES:
            arms = (ON_TRANSFORMERS if name == TRANSFORMER else ON_BACKBONES) | own
            arms = arms | (OTHERS_ON_BACKBONES if name in TABLE_3 else {})
            runs += [
                Run("backbones", arm, self.backbone(name, arms[arm], seed), name) for seed in seeds for arm in arms
            ]
        return runs

    def backbone(self, name: str, arm: Arm, seed: int, **more) -> jobs.Job:
        """The training of a backbone of the design with an arm; `more` are fields of `jobs.Job` that differ."""
        transformer, full = name == TRANSFORMER, self.arguments.full
        depth = 6 if transformer else 20
        if full:
            network, options, papers = PAPERS_BACKBONES[name]
            recipe = jobs.recipe_of(papers, self.arguments.dataset, epochs=self.arguments.epochs)
            depth = PAPERS_ACNET if name == "ACNet" else depth
        else:
            network, options = BACKBONES[name]
            usual = self.arguments.recipe, self.arguments.dataset
            recipe = jobs.recipe_of(*usual, network="vit") if transformer else self.recipe
            epochs = min(2 * SMALL_EPOCHS if transformer else SMALL_EPOCHS, self.recipe.epochs)
            recipe = dataclasses.replace(recipe, epochs=epochs, small=())
        shape = {"network": network, "options": options or None, "depth": depth}
        shape |= {"width": 64} if transformer else {}
        return self.small_job(arm, seed, recipe, **shape | more)

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
            first and part == "small" and run.arm in CONTROLS and run.arm != LITERAL,  # ASR and its controls, bounds
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
        late = not first and part not in (*TIERS[1], "small")  # seeds that only a small effect needs
        late |= run.is_beside_the_claims
        return len(groups) if late else groups.index(True), position
