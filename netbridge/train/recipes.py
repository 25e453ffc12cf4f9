"""How to train, as data: this project's own recipes and the rows of the papers' tables.

`paper` is the ResNet column of Table 6 in "Understanding Self-attention Mechanism via Dynamical System Perspective" and
the same numbers in Table 10 of "ASR: Attention-alike Structural Re-parameterization". Time on a CPU is
scarce, so `short` and `medium` take from the fast CIFAR recipes (Jordan, 94 % on CIFAR-10 in 3.29 Seconds, 2024): a
one-cycle rate, flips that alternate instead of being drawn, small shifts, weights averaged on the way, small images
first, and bfloat16.
"""

import dataclasses
import difflib
import math
import numbers
from typing import Any

SCHEDULES, FLIPS = ("steps", "triangle", "cosine"), ("none", "random", "alternating")
BORDERS, OPTIMIZERS = ("constant", "reflect"), ("sgd", "adamw")
POLICIES = ("none", "trivial")
SHARES = ("drop_path", "ema", "momentum", "smoothing")  # fields from 0 to below 1
AMOUNTS = (
    "mixup",
    "cutmix",
    "cutout",
    "sam",
    "warmup",
    "clip",
    "min_lr",
    "weight_decay",
    "gamma",
    "shift",
)  # 0 or more
WHOLE_SHARES = ("erasing", "peak")  # fields from 0 to 1
LOST = {"teacher": ""}  # what recipes once had, where it changed nothing: no recipe of today makes a distilled network
KINDS = {int: "a whole number", float: "a number", bool: "True or False", str: "text"}


def are_numbers(values, count: int | None = None) -> bool:
    """Is this a tuple or a list of numbers, of so many where that is said?"""
    return (
        isinstance(values, tuple | list)
        and all(isinstance(x, numbers.Real) and not isinstance(x, bool) for x in values)
        and count in (None, len(values))
    )


@dataclasses.dataclass(frozen=True)
class Recipe:
    """One way to train, as data; `recipe(name, **changes)` makes a variant of a known one.

    name            how logs and files call it
    epochs          how often every training image is seen
    batch           images per step
    optimizer       "sgd" or "adamw"
    lr              the largest learning rate
    momentum        of SGD
    nesterov        SGD with Nesterov's momentum
    weight_decay    factor of the weights that is added to their gradient (SGD) or taken off them (AdamW)
    decay_all       False: no decay of scales, shifts and biases, only of matrices and kernels
    decay_gates     False: no decay of what a controller counts among its `scales`, such as the vector psi of ASR, which
                    is a scale although it is kept as a matrix
    schedule        "steps": times `gamma` at the epochs `drops`; "triangle": from lr / 5 up to lr and down to 0;
                    "cosine": from lr down to 0
    drops, gamma    of the schedule "steps"
    peak            share of the steps at which the triangle is highest
    shift           pixels that an image may be moved each way when it is shown
    border          what then comes in from the edge: "constant" (black) or "reflect" (the image mirrored)
    flip            "none", "random", or "alternating": half of the images are mirrored in even epochs, the other
                    half in odd ones
    crop, aspect    of pictures on the disk: least and greatest share of the area that is cut out; least and greatest
                    width over height of the cut
    smoothing       label smoothing: this share of the target is spread over all classes
    average         lookahead (Zhang et al. 2019): every five steps slow weights move towards the weights, and the
                    weights start again from there; the slow weights are the result
    small           pairs (share of the epochs, factor): up to that share, images are shrunk by that factor
    bfloat16        compute in bfloat16 where the device can
    evaluate_every  epochs between two looks at the test images; the last epoch is always tested
    architectures   what a paper used the recipe for; changes nothing
    mixup           images are mixed with others of the batch, and so are their labels (Zhang et al. 2018); the shares
                    are drawn from Beta(mixup, mixup). 0: not at all
    cutmix          a box of an image is taken from another one (Yun et al. 2019), its area from Beta(cutmix, cutmix).
                    0: not at all; with both, each step takes one of the two
    cutout          side of a square, in pixels, that is set to 0 in each image (DeVries and Taylor 2017)
    drop_path       random depth (Huang et al. 2016): the chance that the last block's step size is 0 while training,
                    for other blocks in proportion to their number; otherwise the step size is 1 / (1 - chance) times
                    its own. Networks of netbridge only
    policy          "trivial": each image goes through one operation of random kind and strength (TrivialAugment);
                    "none": through none
    ema             decay of an exponential mean of the weights over the steps; the mean is the result. 0: none
    sam             radius of sharpness-aware minimisation (Foret et al. 2021): the gradient is taken where the loss is
                    about largest within it, at twice the cost of a step. 0: where the weights are
    warmup          epochs in which the learning rate rises linearly to what the schedule says
    clip            gradients longer than this are shortened to it. 0: none is
    min_lr          the learning rate that the schedule ends at, or never falls below where it goes by steps
    erasing         random erasing (Zhong et al. 2020): the share of the images of which a box is set to 0
    float16         compute in float16, with a loss scaled so that gradients do not vanish, where the device can and
                    `bfloat16` is not asked for or not to be had
    tf32            on CUDA: multiply matrices and convolve with factors rounded to ten binary digits (TF32)
    benchmark       on CUDA: let cuDNN try its algorithms for the fastest; the next start may then take others, which
                    changes roundings

    >>> from netbridge import train
    >>> short = train.recipe("short")
    >>> short.epochs, short.lr, round(short.rate(step=0, steps_per_epoch=390), 3)
    (14, 0.2, 0.04)
    >>> train.recipe("short", lr=0.1, epochs=20).lr
    0.1
    """

    name: str
    epochs: int
    batch: int = 128
    optimizer: str = "sgd"
    lr: float = 0.1
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 1e-4
    decay_all: bool = True
    schedule: str = "steps"
    drops: tuple[int, ...] = ()
    gamma: float = 0.1
    peak: float = 0.25
    shift: int = 4
    border: str = "constant"
    flip: str = "random"
    crop: tuple[float, float] = (0.08, 1.0)
    aspect: tuple[float, float] = (3 / 4, 4 / 3)
    smoothing: float = 0.0
    average: bool = False
    small: tuple[tuple[float, float], ...] = ()
    bfloat16: bool = False
    evaluate_every: int = 1
    architectures: str = "any"
    decay_gates: bool = True
    mixup: float = 0.0
    cutmix: float = 0.0
    cutout: int = 0
    drop_path: float = 0.0
    policy: str = "none"
    ema: float = 0.0
    sam: float = 0.0
    warmup: float = 0.0
    clip: float = 0.0
    min_lr: float = 0.0
    erasing: float = 0.0
    float16: bool = False
    tf32: bool = False
    benchmark: bool = False

    def __post_init__(self):
        self._check_kinds()
        self._check_lists()
        for name in ("epochs", "batch", "evaluate_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1, got {getattr(self, name)}.")
        choices = {"schedule": SCHEDULES, "flip": FLIPS, "border": BORDERS, "optimizer": OPTIMIZERS}
        choices["policy"] = POLICIES
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"`{name}` must be one of {list(allowed)}, got {getattr(self, name)!r}.")
        for name in SHARES:
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 0 and below 1, got {getattr(self, name)!r}.")
        for name in AMOUNTS:
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"`{name}` must be a number from 0 on, got {getattr(self, name)!r}.")
        for name in WHOLE_SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"`{name}` must be from 0 to 1, got {getattr(self, name)!r}.")
        if not 0 < self.lr < math.inf:
            raise ValueError(f"`lr` must be a positive number, got {self.lr!r}.")
        if self.min_lr > self.lr:
            raise ValueError(f"`min_lr` = {self.min_lr} is above `lr` = {self.lr}.")
        if self.ema and self.average:
            raise ValueError(f"`ema` = {self.ema} and `average` = True both average the weights; choose one of them.")
        if not (0 < self.crop[0] <= self.crop[1] <= 1 and 0 < self.aspect[0] <= self.aspect[1]):
            raise ValueError(
                "`crop` must be two shares with 0 < least <= greatest <= 1 and `aspect` two ratios with 0 < least <= "
                f"greatest, got {self.crop} and {self.aspect}."
            )

    def _check_lists(self):
        """Fields of several numbers, whose wrong forms would be found by arithmetic, or by nothing, much later."""
        whole = are_numbers(self.drops) and all(drop == int(drop) >= 0 for drop in self.drops)
        if not whole or sorted(self.drops) != list(self.drops):
            raise ValueError(f"`drops` must be epochs in ascending order, such as (30, 60), got {self.drops!r}.")
        pairs = isinstance(self.small, tuple | list) and all(are_numbers(pair, 2) for pair in self.small)
        shares = [pair[0] for pair in self.small] if pairs else []
        if not pairs or sorted(shares) != shares or not all(0 < x <= 1 for pair in self.small for x in pair):
            raise ValueError(
                "`small` must be pairs (share of the epochs, factor) from above 0 to 1, the shares ascending, such as "
                f"((0.2, 0.5), (0.65, 0.75)); got {self.small!r}."
            )
        for name in ("crop", "aspect"):
            if not are_numbers(getattr(self, name), 2):
                raise ValueError(
                    f"`{name}` must be two numbers, the least and the greatest, got {getattr(self, name)!r}."
                )

    def _check_kinds(self):
        """A value of another kind, such as text for a number, is named here and not by the comparison it breaks."""
        for field in dataclasses.fields(self):
            value: Any = getattr(self, field.name)
            kind: Any = field.type
            wanted = {int: numbers.Integral, float: numbers.Real}.get(kind, kind)
            if kind in KINDS and (not isinstance(value, wanted) or (kind in (int, float) and isinstance(value, bool))):
                raise ValueError(f"`{field.name}` must be {KINDS[kind]}, got {value!r}.")

    def rate(self, step: int, steps_per_epoch: int) -> float:
        """The learning rate of a step counted from the start of training."""
        warm = self.warmup * steps_per_epoch
        return self.rate_without_warmup(step, steps_per_epoch) * (min(1.0, (step + 1) / warm) if warm else 1.0)

    def rate_without_warmup(self, step: int, steps_per_epoch: int) -> float:
        """The learning rate of a step, as it were without a warm-up."""
        if self.schedule == "steps":
            return max(self.lr * self.gamma ** sum(step // steps_per_epoch >= drop for drop in self.drops), self.min_lr)
        rate = self.falling_rate(step, self.epochs * steps_per_epoch)
        return self.min_lr + (1.0 - self.min_lr / self.lr) * rate if self.min_lr else rate

    def falling_rate(self, step: int, total: int) -> float:
        """The learning rate of a step out of `total`, by a schedule that ends at 0."""
        if self.schedule == "cosine":
            return self.lr * 0.5 * (1 + math.cos(math.pi * step / total))
        top = max(self.peak * total, 1.0)
        if step < top:
            return self.lr * (0.2 + 0.8 * step / top)  # a fifth of the rate is a safe start
        return self.lr * max(total - step, 0) / max(total - top, 1.0)

    def size(self, epoch: int, full: int) -> int:
        """The width of the images in this epoch, rounded to a multiple of 4, which two halvings need."""
        for share, scale in self.small:
            if epoch < share * self.epochs:
                return 4 * round(scale * full / 4)
        return full

    def as_json(self) -> dict:
        return dataclasses.asdict(self)


SHORT = Recipe(
    "short",
    epochs=14,
    lr=0.2,
    nesterov=True,
    weight_decay=5e-4,
    decay_all=False,
    schedule="triangle",
    shift=2,
    border="reflect",
    flip="alternating",
    average=True,
    small=((0.2, 0.5), (0.65, 0.75)),
    bfloat16=True,
    evaluate_every=4,
)
# The paper's Table 7 trains its ViT "from scratch" and says nothing more: this is what works in little time.
VIT = Recipe(
    "vit",
    40,
    optimizer="adamw",
    lr=1.5e-3,
    weight_decay=5e-2,
    decay_all=False,
    schedule="triangle",
    peak=0.2,
    shift=2,
    border="reflect",
    flip="alternating",
    small=((0.5, 0.5), (0.8, 0.75)),
    bfloat16=True,
    evaluate_every=4,
    architectures="ViTs of six blocks on CIFAR-10",
)
PAPER = Recipe("paper", epochs=164, drops=(81, 122), architectures="ResNet-83 and -164 on CIFAR-10 and CIFAR-100")

RECIPES = {
    recipe.name: recipe
    for recipe in (
        SHORT,
        dataclasses.replace(SHORT, name="medium", epochs=80, shift=4, evaluate_every=10),
        # the digits are small, few, and not to be mirrored
        dataclasses.replace(
            SHORT, name="digits", epochs=16, batch=64, lr=0.1, shift=1, flip="none", small=(), evaluate_every=8
        ),
        VIT,
        dataclasses.replace(VIT, name="vit-short", epochs=6),
        dataclasses.replace(
            VIT, name="vit-digits", epochs=64, batch=64, lr=3e-3, shift=1, flip="none", small=(), evaluate_every=8
        ),
        PAPER,
        dataclasses.replace(PAPER, name="paper-stl10", batch=16, architectures="ResNets on STL-10"),
        dataclasses.replace(
            PAPER,
            name="paper-vgg",
            drops=(60, 120, 160),
            gamma=0.2,
            weight_decay=5e-4,
            architectures="VGG19, ShuffleNetV2, MobileNet on CIFAR",
        ),
        dataclasses.replace(PAPER, name="paper-repvgg", drops=(130,), architectures="RepVGG on CIFAR"),
        # Table 10 gives ResNet-ACNet cosine annealing and a gamma of 0.333, which cosine annealing has no use for
        dataclasses.replace(
            PAPER, name="paper-acnet", drops=(), schedule="cosine", gamma=0.333, architectures="ResNet-ACNet on CIFAR"
        ),
        # On ImageNet everybody computes in mixed precision, where the papers say nothing of it: layers in bfloat16,
        # weights in float32. `bfloat16=False` takes several times as long.
        Recipe(
            "imagenet",
            100,
            lr=0.1,
            drops=(30, 60, 90),
            bfloat16=True,
            architectures="ResNet-34, -50, -101, ASR paper, Table 11",
        ),
        Recipe(
            "imagenet-256",
            120,
            256,
            lr=0.1,
            drops=(30, 60, 90),
            bfloat16=True,
            architectures="ResNet-34, -50, StepNet paper, Table 6",
        ),
        Recipe(
            "imagenet-vit",
            300,
            256,
            "adamw",
            lr=5e-4,
            weight_decay=5e-2,
            schedule="cosine",
            bfloat16=True,
            architectures="ViT-S, ViT-B, ASR paper, Table 11",
        ),
        Recipe(
            "imagenet-vit-384",
            30,
            64,
            "adamw",
            lr=5e-6,
            weight_decay=1e-8,
            schedule="cosine",
            bfloat16=True,
            architectures="ViT-B at 384, ASR paper, Table 11",
        ),
    )
}


def recipe(name: str, **changes) -> Recipe:
    """A known recipe, with changes.

    name     one of `RECIPES`: "short", "medium", "digits", "vit" of this project, "paper" and others of the
             papers' tables
    changes  fields of `Recipe` to set otherwise, such as epochs=20 or lr=0.05

    Returns the `Recipe`. Raises ValueError for an unknown name or value, TypeError for an unknown field.

    >>> from netbridge import train
    >>> train.recipe("short", epochs=20).epochs
    20
    """
    if name not in RECIPES:
        raise ValueError(f"`recipe` must be one of {list(RECIPES)}, got {name!r}.")
    known = [field.name for field in dataclasses.fields(Recipe)]
    if unknown := sorted(changes.keys() - set(known)):
        near = difflib.get_close_matches(unknown[0], known, n=1)
        hint = f"did you mean `{near[0]}`? " if near else ""
        raise TypeError(f"a recipe has no field `{unknown[0]}`; {hint}Its fields are {', '.join(known)}.")
    return dataclasses.replace(RECIPES[name], **changes)
