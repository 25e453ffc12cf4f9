"""Networks of every kind with fresh weights: how fast they are, how exactly they merge, and what a step is in them."""

import dataclasses
import statistics
from collections.abc import Callable
from typing import Any

import torch

import netbridge as nb
from netbridge.common.batches import channels_last
from netbridge.surgery.fold import fold
from odelab.experiments.clock import interleave, quartiles, ratios
from studies.asr import design
from studies.lab import jobs

SPEEDS = {
    "SE": "se",
    "IE": "ie",
    "SRM": "srm",
    "SPA": "spa",
    "CBAM": "cbam",
    "DIA": "dia",
    "ECA": "eca",
    "ASR(SE) as trained": "asr(se)",
}
Speeds = dict[str, tuple[float, tuple[float, float] | None]]


def measure_speeds(depth: int, size: int, batch: int, seconds: float) -> Speeds:
    """Images per second relative to the plain network: the median over interleaved rounds, and quartiles.

    One thread, and its processor time: what else the machine does counts for little.
    """
    images = torch.randn(batch, 3, size, size).contiguous(memory_format=torch.channels_last)
    nets: dict[str, torch.nn.Module] = {
        "plain": nb.resnet(depth),
        "plain, again": nb.resnet(depth),
    }  # the second shows what the clock is worth
    nets |= {name: nb.resnet(depth, controller=text) for name, text in SPEEDS.items()}
    nets["ASR(SE) merged"] = nb.merge(nets["ASR(SE) as trained"])
    nets["ASR(SE) folded"] = fold(nets["ASR(SE) merged"])
    for net in nets.values():
        channels_last(net).eval()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            timed = interleave([lambda net=net: net(images) for net in nets.values()], seconds=seconds)
    finally:
        torch.set_num_threads(threads)
    plain = timed[0].processor
    found = {name: ratios(plain, sample.processor) for name, sample in zip(nets, timed, strict=True)}
    return {name: (statistics.median(each), quartiles(each)) for name, each in found.items()}


GATES = {
    "ASR(SE)": nb.asr("se"),
    "ASR(SE, uses=2)": nb.asr("se", uses=2),
    "vector": nb.asr(None, init=0.7, spread=0.3),
    "tanh, negative": nb.asr(None, init=-0.4, spread=0.2),
    "constant -0.3": nb.controller("constant", value=-0.3),
    "bias": nb.controller("bias", init=0.3),
}
FEW_GATES = {name: GATES[name] for name in ("ASR(SE)", "constant -0.3")}


def merging_errors(kinds: dict) -> list[dict]:
    """How far merged and folded networks are from the unmerged, relative to the largest logit, by backbone and gate."""
    rows = []
    for name, build in BACKBONES.items():
        for label, spec in kinds.items():
            torch.manual_seed(0)
            net = build(spec).eval()
            randomise_norms(net)
            line = {"backbone": name, "gate": label}
            for dtype in (torch.float64, torch.float32):
                like = net.to(dtype)
                images = torch.randn(2, 3, 16, 16, dtype=dtype)
                with torch.no_grad():
                    wanted = like(images)
                    merged = nb.merge(like)
                    line[f"merged, {str(dtype)[6:]}"] = relative_error(merged(images), wanted)
                    try:
                        line[f"folded, {str(dtype)[6:]}"] = relative_error(fold(merged)(images), wanted)
                    except ValueError:
                        line[f"folded, {str(dtype)[6:]}"] = "refused"
            rows.append(line)
    return rows


def small_resnet(controller, **options):
    return nb.resnet(8, controller=controller, widths=(4, 4, 8), **options)


# Small networks of every kind that there is, as functions of what decides their step sizes.
BACKBONES: dict[str, Callable[[Any], torch.nn.Module]] = {
    "ResNet": small_resnet,
    "ResNet, pre-activation": lambda gate: small_resnet(gate, post_activation=False),
    "ResNet with group normalisation": lambda gate: small_resnet(gate, norm="group"),
    "ResNet with instance normalisation": lambda gate: small_resnet(gate, norm="instance"),
    "ResNet with layer normalisation": lambda gate: small_resnet(gate, norm="layer"),
    "ResNet-ACNet": lambda gate: small_resnet(gate, convolution="asymmetric"),
    "MobileNetV2": lambda gate: nb.mobilenet(controller=gate, width=0.125, blocks=(1, 2, 1, 1, 2, 1, 1)),
    "ViT": lambda gate: nb.vit(16, 4, 12, 2, 2, controller=gate),
    "RepVGG": lambda gate: nb.repvgg(controller=gate, blocks=(1, 2), widths=(4, 8)),
    "VGG": lambda gate: nb.vgg(controller=gate, width=4, blocks=(1, 2)),
    "VGG without normalisations": lambda gate: nb.vgg(controller=gate, width=4, blocks=(1, 1), normalised=False),
    "MobileNetV1": lambda gate: nb.mobilenet(1, controller=gate, width=0.125, blocks=(1, 1, 1, 1, 1)),
    "ShuffleNetV2": lambda gate: nb.shufflenet(controller=gate, blocks=(2, 1), widths=(4, 8, 8)),
}
NO_STEP = {"RepVGG": "a gain on the state, its shortcut included", "ShuffleNetV2": "a factor of a coupled half"}


def places_of_steps(full: bool = False) -> list[dict]:
    """What is a step in every backbone that is trained, how many there are, and how many numbers are learnt.

    full  whether the backbones have the paper's sizes
    """
    rows = []
    shapes = {name: one[:2] for name, one in (design.PAPERS_BACKBONES if full else design.BACKBONES).items()}
    for name, (network, options) in shapes.items():
        recipe = jobs.recipe_of("short", "cifar10")
        job = jobs.Job("cifar10", "constant", 0, recipe, network=network, options=options or None)
        if name == design.TRANSFORMER:
            job = dataclasses.replace(job, depth=6, width=64)
        if full and name == "ACNet":
            job = dataclasses.replace(job, depth=design.PAPERS_ACNET)
        with torch.device("meta"):  # counts need no numbers
            net: Any = job.untrained_network(10)
        steps = isinstance(net, nb.Network)
        rows.append(
            {
                "backbone": name,
                "numbers learnt": sum(parameter.numel() for parameter in net.parameters()),
                "places of h": len(net.blocks if steps else net.places),
                "what h is": "the size of a step x + h f(x)" if steps else NO_STEP.get(name, "a factor of a layer"),
                "TNS": "defined" if steps else "no step: not defined",
            }
        )
    return rows


def randomise_norms(net) -> None:
    """Statistics and scales that are not those of a fresh network."""
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            statistics = dict(module.named_buffers())
            statistics["running_mean"].normal_(0, 0.3)
            statistics["running_var"].uniform_(0.5, 1.5)
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.normal_(module.bias, 0, 0.3)


def relative_error(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((found - wanted).abs().max() / wanted.abs().max())
