"""What the paper prints, for the tables of the report: its own scale, beside ours."""

from studies.asr.design import BIAS, FAITHFUL, LITERAL, PLAIN

SPEED = {  # Table 1: images per second of ResNet-164 on CIFAR-100 and on STL-10
    "plain": (1944, 255),
    "IE": (1505, 170),
    "SRM": (1387, 162),
    "CBAM": (793, 127),
    "SE": (1469, 173),
    "DIA": (1092, 211),
    "SPA": (1080, 180),
}
RESNET = {  # Table 3: ResNet-164 on CIFAR-10 and CIFAR-100
    PLAIN: (92.97, 74.32),
    FAITHFUL: (94.47, 75.36),
    LITERAL: (94.47, 75.36),
    "ASR(IE)": (94.39, 75.58),
    "ASR(SRM)": (94.45, 75.23),
    "ASR(SPA)": (94.65, 75.12),
}
BESIDE = {  # Table 4: ResNet-164 on CIFAR-100, the module alone and with ASR beside it
    "SE": (75.29, 77.32),
    "IE": (75.78, 76.20),
    "SRM": (75.32, 77.18),
    "SPA": (75.48, 77.25),
}
BACKBONES = {  # Tables 2, 3 and 5; Table 5 gives gains over the plain ResNet, the last of the numbers
    "RepVGG": "CIFAR-100: A0 68.80, B3 76.70 -> 77.42",
    "ACNet": "CIFAR-100, 56 layers: 71.42 -> 71.81, plain ResNet 70.67",
    "ViT": "ImageNet: +0.31 to +1.12",
    "VGG": "VGG19, CIFAR-10: 93.15 -> 93.98",
    "MobileNetV1": "CIFAR-10: 90.97 -> 91.48",
    "ShuffleNetV2": "CIFAR-10: 91.68 -> 91.68",
    "MobileNetV2": "not in the paper",
}
NOISE = {  # Table 8: ResNet-164 on CIFAR-100, plain and with ASR(SE)
    "none": (74.32, 75.36),
    "(0.8, 0.8)": (45.42, 68.81),
    "(0.8, 0.5)": (46.10, 71.13),
    "(0.5, 0.5)": (35.77, 72.18),
    "(0.5, 0.2)": (73.10, 74.48),
    "random 0.1": (73.16, 75.29),
    "random 0.2": (72.87, 75.07),
    "random 0.3": (73.40, 75.33),
}
USES = {"1 use": 75.36, "2 uses": 75.87, "3 uses": 75.72, "4 uses": 75.22}  # Table 6: ASR(SE)
FIXED = {  # Table 7: ASR(SE); learnt 75.36
    "psi = 0.1": 75.18,
    "psi = 0.3": 75.09,
    "psi = 0.5": 75.07,
    "psi ~ N(0, 0.1)": 74.56,
    "psi ~ N(0, 0.3)": 75.02,
    "psi ~ N(0, 0.5)": 74.93,
}
STARTS = {  # Table 13: ResNet-83, ASR(SE); from 0.1 74.83
    "psi from 0.2": 74.56,
    "psi from 0.3": 74.15,
    "psi from 0.4": 74.17,
    "psi from 0.5": 74.03,
    "psi from 0.6": 74.15,
}
BARE = {"vector from 0.1": 92.84, "vector from 1": 92.84, BIAS: 92.84}  # Table 9: CIFAR-10; first value not said


def printed_beside(arm: str) -> str:
    """The paper's accuracy of an arm of Tables 3 and 4, in per cent."""
    if arm in RESNET:
        return f"{RESNET[arm][1]:.2f}"
    module = arm.partition(" ")[0]
    return f"{BESIDE[module]['+' in arm]:.2f}" if module in BESIDE else ""


def printed_accuracy(part: str, arm: str) -> str:
    """What the paper prints for an arm of a part, in per cent; "" where it has no such arm."""
    if part == "beside":
        return printed_beside(arm)
    if part in ("controls", "small"):
        return f"{RESNET[arm][0]:.2f}" if arm in RESNET else ""
    value = {"uses": USES, "fixed": FIXED, "starts": STARTS, "bare": BARE}.get(part, {}).get(arm)
    return "" if value is None else f"{value:.2f}"


def slowdown(name: str, place: int) -> str:
    """Speed over the plain network's by Table 1: of CIFAR-100 (0) or STL-10 (1)."""
    return f"{SPEED[name][place] / SPEED['plain'][place]:.3f}" if name in SPEED else ""
