"""The design of the study: its arms, and the tables that the parts are made of; `plan` makes networks of them.

Whatever is about ResNets is asked twice: at the scale of the shipped networks (32 x 32 pixels, the recipe `short`), and
at a small scale (16 x 16, five epochs of 10,000 images) that half a minute of a core trains, so that there are seeds
enough.

An arm is a network whose attention differs and nothing else; every arm of a part has the same seeds, so that the
controls meet ASR on equal terms.
"""

import dataclasses
from typing import Any, Literal

import torch

import netbridge as nb
from netbridge.model import resnet
from netbridge.train.recipes import Recipe

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
USES = {f"{uses} uses": Arm(asr(SE, uses=uses)) for uses in (2, 3, 4)} | {
    f"constant {0.5**uses:g}": Arm(f"constant({0.5**uses})") for uses in (2, 3, 4)
}
FIXED = {f"psi = {value}": Arm(asr(SE, learnable=False, init=value)) for value in (0.1, 0.3, 0.5)} | {
    f"psi ~ N(0, {value})": Arm(asr(SE, learnable=False, init=0.0, spread=value)) for value in (0.1, 0.3, 0.5)
}
STARTS = {f"psi from {value}": Arm(asr(SE, init=value)) for value in (0.2, 0.3, 0.4, 0.5, 0.6)}
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
    FAITHFUL: Arm(asr(SE, activation="tanh", init=FIRST_FACTOR, inner=FIRST_FACTOR)),
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
LARGE_SCALE, SMALL_SCALE = "at the large scale", "at the small scale"
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

# What the verdicts are judged by; `studies.asr.findings` says of every rule which of these were fixed before the data.
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
NEEDED = {  # seeds at the small scale with which rules about a part find the paper's effect in four of five worlds
    "controls": 8,
    "noise": 7,
    "uses": 18,
    "fixed": 10,
    "starts": 8,
    "bare": 4,
    "backbones": 18,
}
