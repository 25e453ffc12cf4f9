"""Tables 1, 2 and 7 of the first paper: their cells, what is printed in them, and what it takes to fill them again.

Hours are estimates from published speeds, not measured; `python -m studies.plan --time` measures them on a machine.
ResNet-164 for 164 epochs on an RTX 3080 about 1.5 hours; ResNet-50 for 120 epochs of ImageNet at the 2,470 images a
second of an A100 in mixed precision (NVIDIA's DeepLearningExamples), which the recipe `imagenet-256` computes in, 17.3
hours, ResNet-34 about 12.5, attention a fifth more. A ViT of half a million parameters took 54 seconds an epoch of
CIFAR-10 on one core (2026-11-18), and 40 epochs on pictures that grow about two thirds of 40.
"""

import dataclasses

from netbridge.train.recipes import Recipe
from studies import transformer
from studies.lab.jobs import recipe_of

IMAGES = {"cifar10": 50_000, "cifar100": 50_000, "stl10": 5_000, "imagenet": 1_281_167}  # to train on
WIDTHS = (16, 64)  # of the papers' ResNets on CIFAR and on ImageNet: what `studies.train` takes where none is given
FIRST = ("constant", "SE", "StepNet")  # of the rows, those that are worth most


@dataclasses.dataclass(frozen=True)
class Scale:
    """How large a network is and how it is trained: what the networks of one column have in common.

    network  resnet, vit or vit-conv, as `studies.train` takes it
    depth    layers, of a ViT blocks
    width    channels of the first stage, of a ViT features of a token
    recipe   a `netbridge.train.recipes.Recipe`
    hours    of one network without attention, on the card of the table; None where nobody knows
    """

    network: str
    depth: int
    width: int
    recipe: Recipe
    hours: float | None = dataclasses.field(default=None, compare=False)

    @property
    def label(self) -> str:
        return f"{self.name}, {self.recipe.name}"

    @property
    def family(self) -> str:
        """resnet or vit: gains are compared within it."""
        return self.network.split("-")[0]

    @property
    def name(self) -> str:
        """The network in a word or two."""
        if self.network == "resnet":
            return f"ResNet-{self.depth}" + (f" of {self.width} channels" if self.width not in WIDTHS else "")
        stem = ", stem of convolutions" if self.network == "vit-conv" else ""
        return f"ViT of {self.depth} x {self.width}{stem}"


@dataclasses.dataclass(frozen=True)
class Table:
    """One table of the paper.

    number   as the paper counts
    title    what it is about
    columns  pairs (data set, scale)
    rows     controller, as networks are named in reports, and the text that `--controller` takes
    paper    what is printed: (mean, standard deviation) in per cent, by row and column number
    card     where the hours are of
    extra    by how much attention lengthens a training
    remark   what the paper leaves open about it
    """

    number: int
    title: str
    columns: tuple[tuple[str, Scale], ...]
    rows: dict[str, str]
    paper: dict[str, tuple[tuple[float, float], ...]]
    card: str
    extra: float = 1.0
    remark: str = ""

    def hours(self, row: str, scale: Scale) -> float | None:
        """How many hours one network of a row takes; None where nobody knows."""
        return None if scale.hours is None else scale.hours * (1.0 if row == "constant" else self.extra)


# Parameters of ResNet-164 in millions on 10 and 100 classes: Table 1 of this paper, and Table 1 of the ASR paper.
# FCA's head has a bias, and STL-10's ASR figure for IE (1.72) is the one that fits; CIFAR-100's 1.74 rounds 1.743 down.
PARAMETERS = {
    "constant": (1.70, 1.73),
    "se": (1.91, 1.93),
    "cbam": (1.92, 1.94),
    "eca": (1.70, 1.73),
    "srm": (1.74, 1.76),
    "fca": (1.91, 1.93),
    "ie": (1.72, 1.74),
    "iebn": (1.73, 1.75),
    "spa": (3.83, 3.86),
    "dia": (1.92, 1.95),
    "sem": (1.95, 1.97),
    "stepnet": (1.75, 1.77),
}

CLASSIC = ("cifar10", "cifar100", "stl10")


def resnet164(dataset: str) -> Scale:
    """The ResNet-164 of Table 1."""
    return Scale("resnet", 164, 16, recipe_of("paper", dataset), 1.5)


RESNET34 = Scale("resnet", 34, 64, recipe_of("imagenet-256", "imagenet"), 12.5)
RESNET50 = dataclasses.replace(RESNET34, depth=50, hours=17.3)
VIT = Scale(**transformer.shape_of("cifar10"), recipe=recipe_of("vit", "cifar10"), hours=0.4)

TABLES = {
    1: Table(
        1,
        "Accuracy on CIFAR-10, CIFAR-100 and STL-10",
        tuple((dataset, resnet164(dataset)) for dataset in CLASSIC),
        {
            **{"constant": "constant", "SE": "se", "CBAM": "cbam", "ECA": "eca", "SEM": "sem", "SRM": "srm"},
            **{"FCA": "fca", "IEBN": "iebn", "StepNet": "stepnet"},
        },
        {
            "constant": ((93.35, 0.18), (74.30, 0.30), (82.66, 1.05)),
            "SE": ((94.26, 0.14), (75.25, 0.31), (83.96, 0.92)),
            "CBAM": ((93.91, 0.14), (74.68, 0.22), (84.11, 0.49)),
            "ECA": ((94.15, 0.23), (74.41, 0.27), (83.89, 1.21)),
            "SEM": ((94.52, 0.11), (76.49, 0.26), (85.73, 0.16)),
            "SRM": ((94.59, 0.12), (75.49, 0.31), (84.73, 0.12)),
            "FCA": ((94.66, 0.12), (76.52, 0.19), (85.34, 0.25)),
            "IEBN": ((94.70, 0.13), (76.32, 0.14), (85.13, 0.04)),
            "StepNet": ((95.14, 0.24), (77.04, 0.22), (86.08, 0.11)),
        },
        "an RTX 3080",
        remark="The paper names ResNet-164 and five seeds. Of STL-10's recipe nothing is said: it is that of CIFAR, "
        "with the batches of 16 that Zhong et al. (ASR, 2023, Appendix C) have there.",
    ),
    2: Table(
        2,
        "Accuracy on ImageNet",
        (("imagenet", RESNET34), ("imagenet", RESNET50)),
        {
            **{"constant": "constant", "SE": "se", "ECA": "eca", "CBAM": "cbam", "SRM": "srm", "FCA": "fca"},
            **{"SGE": "sge", "StepNet": "stepnet"},
        },
        {
            "constant": ((73.99, 0.04), (76.02, 0.09)),
            "SE": ((74.37, 0.10), (76.62, 0.02)),
            "ECA": ((74.56, 0.08), (77.07, 0.09)),
            "CBAM": ((74.89, 0.11), (76.38, 0.10)),
            "SRM": ((74.79, 0.04), (76.49, 0.03)),
            "FCA": ((75.08, 0.19), (77.22, 0.15)),
            "SGE": ((74.50, 0.03), (77.13, 0.06)),
            "StepNet": ((75.01, 0.09), (77.52, 0.04)),
        },
        "an A100",
        extra=1.2,
        remark="Not said: the scale of random crops, the size for testing, warm-up; the commands take 0.08 to 1, the "
        "middle 224 of 256, and none.",
    ),
    7: Table(
        7,
        "Transformers trained from scratch",
        tuple((dataset, VIT) for dataset in CLASSIC),
        {"constant": "constant", "StepNet": "stepnet"},
        {
            name: tuple(transformer.PAPER[text, dataset] for dataset in CLASSIC)
            for name, text in (("constant", "constant"), ("StepNet", "stepnet"))
        },
        "one core",
        extra=1.1,
        remark="The paper gives its ViT no size, no recipe and no place of the adaptor; these are the ViTs of "
        "`python -m studies.transformer`.",
    ),
}
