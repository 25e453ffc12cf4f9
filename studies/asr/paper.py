"""What the paper prints, cell by cell, for the tables of the report and for `studies.plan`: its own scale, beside ours.

Accuracies are in per cent. A module is that of ASR, or the live one where it is said; "" is the network without any.
"""

from studies.asr.design import BIAS, FAITHFUL, LITERAL, PLAIN
from studies.lab.networks import USUAL

COLUMNS = ("stl10", "cifar100", "cifar10")  # of Tables 3, 5 and 9, in this order
MODULES = ("SE", "IE", "SRM", "SPA")  # of Tables 3, 4 and 6; Table 8 has the first three, Tables 7 and 13 the first two
SPEED = {  # Table 1: images per second of ResNet-164 on CIFAR-100 and on STL-10
    "plain": (1944, 255),
    "IE": (1505, 170),
    "SRM": (1387, 162),
    "CBAM": (793, 127),
    "SE": (1469, 173),
    "DIA": (1092, 211),
    "SPA": (1080, 180),
}
PARAMETERS = {  # Table 1: millions of them, on CIFAR-100 and on STL-10
    "plain": (1.73, 1.70),
    "IE": (1.74, 1.72),
    "SRM": (1.76, 1.74),
    "CBAM": (1.93, 1.90),
    "SE": (1.93, 1.91),
    "DIA": (1.95, 1.92),
    "SPA": (3.86, 3.83),
}
IMAGENET = {  # Table 2: millions of parameters, pixels, and top-1 of the network, with ASR(SE), ASR(ECA), ASR(SRM)
    "ResNet34": (22, 224, (73.31, 74.04, 73.88, 73.96)),
    "ResNet50": (26, 224, (76.13, 76.70, 76.87, 76.55)),
    "ResNet101": (45, 224, (77.06, 77.79, 77.63, 78.18)),
    "ViT-S": (22, 224, (80.02, 80.33, 80.37, 80.51)),
    "ViT-B": (86, 224, (81.42, 82.54, 82.38, 82.24)),
    "ViT-B at 384": (86, 384, (82.97, 83.55, 83.86, 83.71)),
}
ON_IMAGENET = ("", "SE", "ECA", "SRM")  # the modules of Table 2, in this order
BACKBONES = {  # Table 3: by module, the columns COLUMNS
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
BESIDE = {  # Table 4: by layers and live module; STL-10 and CIFAR-100, each the module alone and with ASR beside it
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
REPARAMETERISED = {  # Table 5: STL-10 and CIFAR-100, by network and by what is put on it
    "RepVGG-A0": {"RepVGG": (83.48, 68.80), "RepVGG, ASR(SE)": (84.01, 69.38)},
    "RepVGG-B3": {"RepVGG": (87.05, 76.70), "RepVGG, ASR(SE)": (88.29, 77.42)},
    "ResNet56": {"": (82.25, 70.67), "ACNet": (83.11, 71.42), "ACNet, ASR(SE)": (84.79, 71.81)},
    "ResNet110": {"": (82.02, 72.60), "ACNet": (83.54, 73.01), "ACNet, ASR(SE)": (86.13, 73.46)},
    "ResNet164": {"": (81.78, 71.24), "ACNet": (83.91, 71.60), "ACNet, ASR(SE)": (84.65, 73.50)},
}
USES = {  # Tables 6 and 14: one to four uses on CIFAR-100
    "SE": (75.36, 75.87, 75.72, 75.22),
    "IE": (75.58, 75.71, 75.45, 74.56),
    "SRM": (75.23, 75.45, 75.61, 75.11),
    "SPA": (75.12, 75.43, 75.81, 75.62),
}
USES_TOP5 = {  # Table 14
    "SE": (93.53, 93.99, 94.15, 93.56),
    "IE": (93.84, 93.81, 94.07, 93.73),
    "SRM": (93.68, 94.06, 94.21, 93.78),
}
FIXED = {  # Table 7, CIFAR-100; learnt: Table 3
    "SE": {
        "psi = 0.1": 75.18,
        "psi = 0.3": 75.09,
        "psi = 0.5": 75.07,
        "psi ~ N(0, 0.1)": 74.56,
        "psi ~ N(0, 0.3)": 75.02,
        "psi ~ N(0, 0.5)": 74.93,
    },
    "IE": {
        "psi = 0.1": 75.24,
        "psi = 0.3": 75.11,
        "psi = 0.5": 75.14,
        "psi ~ N(0, 0.1)": 75.36,
        "psi ~ N(0, 0.3)": 75.17,
        "psi ~ N(0, 0.5)": 75.47,
    },
}
NOISE = {  # Table 8, CIFAR-100: plain, ASR(SE), ASR(IE), ASR(SRM); a pair of deviations is that of N_a and of N_b
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
NOISY = ("", "SE", "IE", "SRM")  # the modules of Table 8, in this order
BARE = (83.44, 74.46, 92.84)  # Table 9: a vector without a module; its first value is not said. The rest is Table 3's
STARTS = {  # Table 13: ResNet-83, CIFAR-100, psi from 0.1, 0.2, ...
    "SE": (74.83, 74.56, 74.15, 74.17, 74.03, 74.15),
    "IE": (74.77, 74.55, 74.73, 74.25, 74.45, 74.24),
}
OTHERS = {  # what stands beside backbones of the study that neither Table 3 nor Table 5 has
    "ViT": "ImageNet: +0.31 to +1.12",
    "MobileNetV2": "not in the paper",
}
DATA = {  # the data sets that the table of a part is about
    "controls": COLUMNS,
    "small": COLUMNS,
    "bare": COLUMNS,
    "beside": COLUMNS[:2],
    "uses": COLUMNS[1:2],
    "fixed": COLUMNS[1:2],
    "starts": COLUMNS[1:2],
}


def column_of(part: str, dataset: str) -> str:
    """The data set whose printed accuracies stand beside a part.

    That of the networks where the paper's table has it; else CIFAR-10 for what every data set has in the paper and
    CIFAR-100 for the rest.
    """
    return dataset if dataset in DATA[part] else DATA[part][-1]


def heading(part: str, dataset: str) -> str:
    """What a column of printed accuracies is called."""
    depth = 83 if part == "starts" else 164
    return f"paper, ResNet-{depth}, {USUAL[column_of(part, dataset)]} (%)"


def printed_accuracy(part: str, arm: str, dataset: str) -> str:
    """The paper's accuracy of an arm of a part, in per cent, on `column_of`; "" where it has no such arm."""
    column = column_of(part, dataset)
    value = cell_of(part, arm, COLUMNS.index(column))
    return "" if value is None else f"{value:.2f}"


def cell_of(part: str, arm: str, column: int) -> float | None:
    """The number of an arm of the study in its table of the paper, None where there is none."""
    if part in ("controls", "small", "beside"):
        known = {f"ASR({name})": row[column] for name, row in BACKBONES["ResNet"].items() if name}
        known |= {PLAIN: BACKBONES["ResNet"][""][column], FAITHFUL: known["ASR(SE)"], LITERAL: known["ASR(SE)"]}
        if part == "beside":
            for name, row in BESIDE[164].items():
                known |= dict(zip((name, f"{name} + ASR({name})"), row[column], strict=True))
        return known.get(arm)
    if part == "bare":
        return BARE[column] if arm in ("vector from 0.1", "vector from 1", BIAS) else None
    known = {
        "uses": {f"{k} use{'s' * (k > 1)}": value for k, value in enumerate(USES["SE"], 1)},
        "fixed": FIXED["SE"],
        "starts": {f"psi from 0.{k}": value for k, value in enumerate(STARTS["SE"], 1)},
    }[part]
    return known.get(arm)


def of_backbone(name: str, dataset: str) -> str:
    """What the paper prints of a backbone of the study without ASR and with ASR(SE), in words that say of what."""
    column = dataset if dataset in COLUMNS else "cifar100"
    place, usual = COLUMNS.index(column), USUAL[column]
    if name in BACKBONES:
        plain, gated = (BACKBONES[name][module][place] for module in ("", "SE"))
        return f"{usual}: {plain:.2f} -> {gated:.2f}"
    network = {"RepVGG": "RepVGG-A0", "ACNet": "ResNet56"}.get(name)
    if network is None:
        return OTHERS[name]
    column = column if column in COLUMNS[:2] else "cifar100"
    row = REPARAMETERISED[network]
    numbers = [row[key][COLUMNS.index(column)] for key in (name, f"{name}, ASR(SE)")]
    words = f"{network}, {USUAL[column]}: {numbers[0]:.2f} -> {numbers[1]:.2f}"
    return words + (f"; without {name} {row[''][COLUMNS.index(column)]:.2f}" if "" in row else "")


def slowdown(name: str, place: int) -> str:
    """Speed over the plain network's by Table 1: of CIFAR-100 (0) or STL-10 (1)."""
    return f"{SPEED[name][place] / SPEED['plain'][place]:.3f}" if name in SPEED else ""
