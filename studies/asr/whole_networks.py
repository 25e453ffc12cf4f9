"""The claims about whole networks: how stable and how fast they are, how they repaint pictures, where they look.

The exhibits stand in the order of the paper's claims; of each how it is measured, the rules with the worlds that they
are tried in, then its figure, tables and words.
"""

import base64
import dataclasses
import hashlib
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

import netbridge as nb
from netbridge.common.batches import channels_last
from netbridge.model import transfer
from netbridge.progress import progress_bar
from netbridge.surgery.fold import fold
from netbridge.tracing import activation_maps
from odelab.experiments.clock import interleave, quartiles, ratios
from odelab.files import replacing
from odelab.plot import style as stylesheet
from studies.asr import design, evidence
from studies.asr.design import FAITHFUL, LITERAL, PLAIN
from studies.asr.evidence import Evidence, exhibit, over_settings, seeds_rule
from studies.lab import networks
from studies.lab.figures import MARKS, hide_scales
from studies.lab.measurements import find_current
from studies.lab.page import Page
from studies.lab.results import source
from studies.lab.statistics import Estimate, interval_text
from studies.lab.verdicts import NOT_ASKABLE, Verdict, of_cases, of_closeness, rule

# ---- Theorem 6.1: the bound on a perturbation's growth ----


def measure_bound(name: str, seed, path: Path, data, images: int = evidence.BOUND_IMAGES) -> dict:
    """Theorem 6.1's bound of one network and what it measures, as numbers."""
    net = networks.read_subject(path).net
    bound = nb.perturbation_bound(net, data.normalised(data.test_images[:images]))
    numbers = {"alpha": bound.alpha, "norm": bound.lipschitz, "growth": bound.measured}
    return {"name": name, "seed": seed, "bound": np.log10(bound.bound)} | numbers


def make_bounds(chance, effect, n):
    """log10 of the bounds of ASR and the plain network."""
    rows = {
        arm: [SimpleNamespace(bound=(x, 0.0)) for x in chance.normal(6.5 - effect * (arm != PLAIN), 0.1, n)]
        for arm in (PLAIN, FAITHFUL, LITERAL)
    }
    return (Evidence({("small", ""): rows}),)


@seeds_rule(
    "The bound on perturbations explains ASR's robustness.",
    "Theorem 6.1",
    "before the data, but for intervals that hold together over both scales, which came in on 2026-11-19 with "
    "three seeds seen; undecided by the old rule, which one open case left undecided",
    make_bounds,
    "a bound ten times smaller, as nine blocks with alpha = 0.7 make it where weights stay",
)
def judge_bound(e: Evidence) -> tuple[Verdict, str]:
    """log10 of ASR's bound below the plain network's over seeds, at every scale whose arms have three of them, by
    Dunnett's intervals. The arm with the paper's reduction of 16 counts where it has its seeds.
    """
    settings = {
        scale: {
            arm: [result.bound[0] for result in results if result.bound] for arm, results in e.results(part).items()
        }
        for part, scale in (("controls", design.LARGE_SCALE), ("small", design.SMALL_SCALE))
    }
    compared = over_settings(PLAIN, settings, (FAITHFUL,), (LITERAL,))
    words = f"{compared.lacking}log10 of the bound above the plain network's, negative where the claim is right, "
    words += f"{compared.words}."
    if e.bounds:
        logs = "; ".join(
            f"{net['name']} (seed {net['seed']}) {float(net['bound'][-1]):.2f}, growth {net['growth'][-1]:.0f}"
            for net in e.bounds
        )
        words += f" Shipped networks, whose psi decays: {logs}. A larger bound cannot explain a smaller growth."
    return compared.verdict(-1), words


def show_growth(page: Page, e: Evidence) -> None:
    if not e.bounds:
        return
    page.figure(
        draw_growth(e.bounds),
        "bounds",
        "Behind each block, of the shipped networks: the bound on a perturbation's growth, and the largest growth "
        "that a search has found on sixteen test images.",
    )
    rows = [
        {
            "network": network["name"],
            "seed": network["seed"],
            "log10 of the bound": f"{network['bound'][-1]:.2f}",
            "growth measured": f"{network['growth'][-1]:.1f}",
            "alpha, from block to block": f"{network['alpha'].min():.2f} to {network['alpha'].max():.2f}",
            "norms of the branches": f"{network['norm'].min():.1f} to {network['norm'].max():.1f}",
        }
        for network in e.bounds
    ]
    page.table("bounds", rows, "Bound and growth")


GROWTH = exhibit("Theorem 6.1", show_growth, {"--train --part theorem": (judge_bound,)})


def draw_growth(bounds: list[dict]):
    """The bound and what was measured, from block to block."""
    names = list(dict.fromkeys(network["name"] for network in bounds))
    with stylesheet.figure(1, 2, height=2.6) as (drawing, axes):
        for what, title, axis in zip(
            ("bound", "growth"), ("log10 of the bound", "growth measured"), axes[0], strict=True
        ):
            drawn = set()
            for network in bounds:
                name, values = network["name"], network[what]
                look = {"color": stylesheet.COLOURS[names.index(name)], "linestyle": "--" if name in drawn else "-"}
                axis.plot(range(1, len(values) + 1), values, **look, label=f"{name}, seed {network['seed']}")
                drawn.add(name)
            axis.set(xlabel="block", title=title)
        axes[0, 0].legend()
    return drawing


# ---- Speed and merging (Table 1, Figure 3) ----

PAPERS_SIX = ("IE", "SRM", "CBAM", "SE", "DIA", "SPA")  # the modules of Table 1
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
    # the second plain one shows what the clock is worth
    nets: dict[str, torch.nn.Module] = {"plain": nb.resnet(depth), "plain, again": nb.resnet(depth)}
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
    rounds = {name: ratios(plain, sample.processor) for name, sample in zip(nets, timed, strict=True)}
    return {name: (statistics.median(each), quartiles(each)) for name, each in rounds.items()}


GATES = {
    "ASR(SE)": nb.asr("se"),
    "ASR(SE, uses=2)": nb.asr("se", uses=2),
    "vector": nb.asr(None, init=0.7, spread=0.3),
    "tanh, negative": nb.asr(None, init=-0.4, spread=0.2),
    "constant -0.3": nb.controller("constant", value=-0.3),
    "bias": nb.controller("bias", init=0.3),
}
FEW_GATES = {name: GATES[name] for name in ("ASR(SE)", "constant -0.3")}


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


def merging_errors(kinds: dict) -> list[dict]:
    """How far merged and folded networks are from the unmerged, relative to the largest logit, by backbone and gate."""
    rows = []
    for name, build in BACKBONES.items():
        for label, spec in kinds.items():
            torch.manual_seed(0)
            net = build(spec).eval()
            randomise_norms(net)
            row = {"backbone": name, "gate": label}
            for dtype in (torch.float64, torch.float32):
                like, digits = net.to(dtype), str(dtype)[6:]
                images = torch.randn(2, 3, 16, 16, dtype=dtype)
                with torch.no_grad():
                    wanted, merged = like(images), nb.merge(like)
                    row[f"merged, {digits}"] = relative_error(merged(images), wanted)
                    try:
                        row[f"folded, {digits}"] = relative_error(fold(merged)(images), wanted)
                    except ValueError:
                        row[f"folded, {digits}"] = "refused"
            rows.append(row)
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


def relative_error(actual: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((actual - wanted).abs().max() / wanted.abs().max())


@rule(
    "Attention slows inference by more than 36 %.",
    "Table 1",
    fixed="after the data: until 2026-11-19 the quartiles of one thread's rounds decided, and the verdict was "
    "contradicted for ResNet-56; ResNet-164 had shown 38 and 30 %",
    exempt="nothing is judged",
)
def judge_speed(e: Evidence) -> tuple[Verdict, str]:
    """Not judged. The claim is of frames per second of a ResNet-164 on a GPU; one thread of a processor is another
    machine, where other things than on a GPU take the time.
    """
    complete = {size: speeds for size, speeds in e.speeds.items() if set(PAPERS_SIX) <= set(speeds)}
    words = ["The paper's frames per second are of a GPU."]
    for size, speeds in complete.items():
        six = [speeds[name] for name in PAPERS_SIX]
        slowdown = [1 - ratio for ratio, _ in six]
        low, high = (np.mean([1 - quarters[end] if quarters else np.nan for _, quarters in six]) for end in (1, 0))
        words.append(
            f"At {size} pixels the six modules of Table 1 cost one thread of a processor "
            f"{100 * np.mean(slowdown):.0f} % of the plain speed on average (rounds' quartiles {100 * low:.0f} to "
            f"{100 * high:.0f}), {100 * np.median(slowdown):.0f} % in the median; speed over the plain network's: "
            f"merged {speeds['ASR(SE) merged'][0]:.2f}, folded {speeds['ASR(SE) folded'][0]:.2f}."
        )
    return NOT_ASKABLE, " ".join(words if complete else [*words, "n = 0: not measured."])


def show_speed(page: Page, e: Evidence) -> None:
    if e.speeds:
        page.figure(
            draw_speeds(e.speeds),
            "speed",
            f"Speed of a ResNet-{e.speed_depth} by the processor time of one thread, over the plain network's "
            "in the same round: median and quartiles of the rounds, for CIFAR's and STL's sizes. Dashed: 36 % slower. "
            "How far a second plain network is from 1 is what such a measurement is worth.",
        )
        page.table("speed", speed_rows(e.speeds), "Speed")
    page.table(
        "merging",
        merging_rows(e.merging),
        "Merged and folded networks against unmerged ones",
        "The largest difference of a logit over all gates of the table, over the largest logit. Normalisations whose "
        "statistics are each image's own cannot be folded, which is said and not done.",
        printed=False,
    )


SPEED = exhibit("Speed and merging (Table 1, Figure 3)", show_speed, {"--part speed": (judge_speed,)})


def draw_speeds(speeds: dict[str, Speeds]):
    """Speed over the plain network's, a panel per size of the images."""
    names = list(next(iter(speeds.values())))[::-1]
    with stylesheet.figure(1, len(speeds), height=0.24 * len(names) + 0.9, sharey=True) as (drawing, axes):
        for axis, (size, measured) in zip(axes[0], speeds.items(), strict=True):
            values = np.array([measured[name][0] for name in names])
            quarters = [measured[name][1] or (measured[name][0],) * 2 for name in names]
            error = np.array([(v - q[0], q[1] - v) for v, q in zip(values, quarters, strict=True)]).T.clip(0)
            axis.barh(names, values, xerr=error, color=stylesheet.COLOURS[0], height=0.6)
            axis.axvline(1 - 0.36, color=stylesheet.GREY, linestyle="--", linewidth=1)
            axis.axvline(1, color="black", linewidth=0.8)
            axis.set(title=f"{size} pixels", xlabel="speed over the plain network's")
    return drawing


def speed_rows(speeds: dict[str, Speeds]) -> list[dict]:
    """Table 1: a row per network, with the slowdown that the paper prints where it prints one."""
    rows, printed = [], design.TABLE_1
    for name in next(iter(speeds.values())):
        row = {"network": name}
        for size, measured in speeds.items():
            ratio, quarters = measured[name]
            row[f"{size}: speed over the plain network's"] = f"{ratio:.3f}"
            row[f"{size}: quartiles of the rounds"] = f"{quarters[0]:.3f} to {quarters[1]:.3f}" if quarters else ""
        paper = [f"{printed[name][0][k] / printed['plain'][0][k]:.3f}" for k in (0, 1)] if name in printed else []
        rows.append(row | {"paper, ResNet-164: CIFAR-100, STL-10": ", ".join(paper)})
    return rows


def merging_rows(merging: list[dict]) -> list[dict]:
    """Per backbone the largest error over all gates, relative to the largest logit."""
    rows = []
    for name in dict.fromkeys(row["backbone"] for row in merging):
        own = [row for row in merging if row["backbone"] == name]
        worst = {key: [row[key] for row in own] for key in own[0] if key not in ("backbone", "gate")}
        cells = {key: "refused" if "refused" in v else f"{max(v):.1e}" for key, v in worst.items()}
        rows.append({"backbone": name, "gates": len(own)} | cells)
    return rows


# ---- Style transfer (Figures 5 and 19 to 21) ----
#
# The paper shows pictures. Here they are scored: content and Gram losses on held-out pictures, by a network that
# neither was trained with styles nor belongs to an arm, and the energy of gradients, which falls where pictures blur.

JUDGE = "cifar10/resnet20-constant-seed0"  # whose maps the losses are of
INSTANCE, BATCH, HALVED, WITH_ASR = "IN", "BN", "BN, half", "BN, ASR(SE, r=4)"
ARMS = {  # normalisation and controller
    INSTANCE: ("instance", "constant"),
    BATCH: ("batch", "constant"),
    HALVED: ("batch", "constant(0.5)"),
    WITH_ASR: ("batch", design.asr("se(reduction=4)")),
}
STEPS, BATCH_SIZE, RATE, STYLE_WEIGHT = 400, 8, 2e-3, 2.0
TESTED, SHOWN = 200, 6  # held-out pictures that are scored, and those that are kept to look at
SCORES = ("content", "style", "gradients")


def draw_waves(size: int, generator) -> np.ndarray:
    """Interfering waves, another pair of colours at every height."""
    y, x = np.mgrid[:size, :size] / size
    total = sum(
        np.sin(2 * np.pi * (a * x + b * y + phase)) for a, b, phase in generator.uniform(-6, 6, (4, 3)).tolist()
    )
    colours = generator.uniform(0, 1, (2, 3))
    share = (np.tanh(total) + 1)[..., None] / 2
    return share * colours[0] + (1 - share) * colours[1]


def draw_glass(size: int, generator) -> np.ndarray:
    """Stained glass: Voronoi cells of bright colours with dark joints."""
    y, x = np.mgrid[:size, :size] / size
    seeds, colours = generator.uniform(0, 1, (20, 2)), generator.uniform(0.2, 1, (20, 3))
    distances = np.hypot(y[..., None] - seeds[:, 0], x[..., None] - seeds[:, 1])
    nearest = np.sort(distances, axis=2)
    return colours[distances.argmin(2)] * ((nearest[..., 1] - nearest[..., 0]) > 0.03)[..., None]


def draw_strokes(size: int, generator) -> np.ndarray:
    """Short oblique strokes of a brush, one over the other."""
    y, x = np.mgrid[:size, :size] / size
    picture = np.ones((size, size, 3)) * generator.uniform(0.3, 0.8, 3)
    for row, column, angle in generator.uniform(0, 1, (150, 3)).tolist():
        turn = np.pi * (0.2 + 0.3 * angle)
        along = (x - column) * np.cos(turn) + (y - row) * np.sin(turn)
        across = (y - row) * np.cos(turn) - (x - column) * np.sin(turn)
        picture[(np.abs(along) < 0.15) & (np.abs(across) < 0.03)] = generator.uniform(0, 1, 3)
    return picture


STYLES = {"glass": draw_glass, "waves": draw_waves, "strokes": draw_strokes}


def style_picture(name: str, size: int = 32) -> torch.Tensor:
    """The picture of a style, (3, size, size) between 0 and 1; the same one always."""
    picture = STYLES[name](size, np.random.default_rng(sum(map(ord, name))))
    return torch.from_numpy(picture.clip(0, 1)).permute(2, 0, 1).float()


@dataclasses.dataclass(frozen=True)
class Painting:
    """One network to train: an arm, a style and a seed."""

    arm: str
    style: str
    seed: int
    steps: int = STEPS

    @property
    def specification(self) -> dict:
        constants = {"batch": BATCH_SIZE, "rate": RATE, "weight": STYLE_WEIGHT, "judge": JUDGE}
        return dataclasses.asdict(self) | {"controller": ARMS[self.arm]} | constants

    @property
    def stem(self) -> str:
        text = json.dumps(self.specification, sort_keys=True)
        words = "".join(letter if letter.isalnum() else "-" for letter in self.arm)
        return f"style-{self.style}-{words}-seed{self.seed}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@dataclasses.dataclass(frozen=True)
class Painted:
    """What a network's pictures score: of the running statistics, and with those of the batch; and some of them.

    evaluation, batch  content loss, style loss and energy of gradients, `SCORES`
    pictures           the first pictures of the test set repainted in evaluation mode, uint8 (SHOWN, 3, 32, 32)
    made               seconds, version of torch, and what `results.source` gives: which code made it
    """

    painting: Painting
    evaluation: tuple[float, float, float]
    batch: tuple[float, float, float]
    pictures: np.ndarray
    made: dict

    @property
    def specification(self) -> dict:
        """Everything that determines the network."""
        return self.painting.specification

    def __str__(self):
        seconds = self.made["seconds"]
        return f"content {self.evaluation[0]:.3f}, style {self.evaluation[1]:.3f}, {seconds:.0f} s."


def plan_paintings(seeds) -> list[Painting]:
    """One style after the other; within a style all arms have as many seeds."""
    return [Painting(arm, style, seed) for style in STYLES for seed in seeds for arm in ARMS]


def paint(painting: Painting, data) -> Painted:
    """Train a network to repaint training pictures in the style, and score it on test pictures."""
    began = time.perf_counter()
    torch.manual_seed(painting.seed)
    norm, controller = ARMS[painting.arm]
    net, judge = transfer.repainter(controller, norm=norm), nb.pretrained(JUDGE).eval().requires_grad_(False)
    size = data.test_images.shape[-1]
    wanted = style_picture(painting.style, size)[None].mul(255).to(torch.uint8)
    with torch.no_grad():
        grams = [transfer.gram(one) for one in transfer.maps_of(judge, data.normalised(wanted))]
    optimizer = torch.optim.Adam(net.parameters(), RATE)
    drawn = torch.Generator().manual_seed(painting.seed)
    with progress_bar(painting.stem, painting.steps, 0) as advance:
        for _ in range(painting.steps):
            chosen = torch.randint(len(data.train_images), (BATCH_SIZE,), generator=drawn)
            pictures = data.normalised(data.train_images[chosen])
            maps = transfer.maps_of(judge, net(pictures))
            with torch.no_grad():
                content = transfer.maps_of(judge, pictures)
            loss = transfer.content_loss(maps, content) + STYLE_WEIGHT * transfer.style_loss(maps, grams)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            advance(1, painting.stem)
    shown = data.normalised(data.test_images[:TESTED])
    with torch.no_grad():
        batch, _ = score_pictures(net.train(), judge, shown, grams)  # first: it is the mode of the training
    evaluation, pictures = score_pictures(net.eval(), judge, shown, grams)
    made = {"seconds": time.perf_counter() - began, "torch": torch.__version__, **source()}
    return Painted(painting, evaluation, batch, as_bytes(pictures[:SHOWN], data), made)


@torch.no_grad()
def score_pictures(net, judge, shown, grams) -> tuple[tuple[float, float, float], torch.Tensor]:
    """The three scores of pictures and the pictures; the network is not changed."""
    state = {name: x.clone() for name, x in net.state_dict().items()}
    pictures = net(shown)
    net.load_state_dict(state)
    maps = transfer.maps_of(judge, pictures)
    content = transfer.content_loss(maps, transfer.maps_of(judge, shown))
    return (float(content), float(transfer.style_loss(maps, grams)), transfer.gradient_energy(pictures)), pictures


def as_bytes(pictures: torch.Tensor, data) -> np.ndarray:
    """Normalised pictures as they are looked at."""
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (data.mean, data.std))
    return pictures.mul(std).add(mean).clamp(0, 1).mul(255).round().to(torch.uint8).numpy()


def write_painted(painted: Painted, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "specification": painted.specification,
        "evaluation": painted.evaluation,
        "batch": painted.batch,
        "pictures": base64.b64encode(painted.pictures.tobytes()).decode(),
        "shape": painted.pictures.shape,
        "made": painted.made,
    }
    with replacing(path) as unfinished:
        unfinished.write_text(json.dumps(record) + "\n")


def read_painted(path: Path) -> Painted:
    record = json.loads(path.read_text())
    painting = Painting(*(record["specification"][field.name] for field in dataclasses.fields(Painting)))
    pictures = np.frombuffer(base64.b64decode(record["pictures"]), np.uint8).reshape(record["shape"])
    return Painted(painting, tuple(record["evaluation"]), tuple(record["batch"]), pictures, record["made"])


def find_painted(painting: Painting, folders) -> Painted | None:
    """The result of exactly this network in the first folder that has one; one by today's code goes before others."""
    return find_current(f"{painting.stem}.json", folders, read_painted, lambda painted: painted.painting == painting)


def make_paintings(chance, effect, n):
    """Losses of pictures: with ASR a tenth above instance normalisation's, or the same."""
    painted = [
        SimpleNamespace(
            painting=SimpleNamespace(style=picture, arm=arm),
            evaluation=(chance.normal(mean, 0.045), chance.normal(0.55 * mean, 0.01)),
        )
        for picture in STYLES
        for arm, mean in ((INSTANCE, 1.0), (WITH_ASR, 1.0 + (1 - effect) * design.ALIKE))
        for _ in range(n)
    ]
    return (Evidence(painted=painted),)


@seeds_rule(
    "With ASR, batch normalisation transfers style as instance normalisation does.",
    "Figure 5",
    "before the data, but for intervals that hold together over pictures and scores: from 2026-11-19, with three "
    "seeds of the first picture seen. Undecided by the old rule and by this one",
    make_paintings,
    "no difference, where a tenth of the loss is on the margin",
    negligible=design.ALIKE,
)
def judge_paintings(e: Evidence) -> tuple[Verdict, str]:
    """Content and Gram losses in evaluation mode, of every picture that has three seeds: with ASR within a tenth of
    instance normalisation's mean loss, or beyond, by Welch's intervals that hold together over pictures and losses.
    """
    pictures = [picture for picture in STYLES if any(of_arm(e.painted, picture, arm) for arm in ARMS)]
    settings = {
        f"{picture}, {score}": {
            arm: [network.evaluation[k] for network in of_arm(e.painted, picture, arm)] for arm in ARMS
        }
        for picture in pictures
        for k, score in enumerate(SCORES[:2])
    }
    compared = over_settings(INSTANCE, settings, (WITH_ASR,), form="+.3f")
    others = over_settings(INSTANCE, settings, (BATCH, HALVED), form="+.3f")
    missing = ", ".join(picture for picture in STYLES if picture not in pictures)
    shown = "; ".join(filter(None, (compared.words, missing and f"n = 0: {missing}")))
    words = f"{compared.lacking}Losses above instance normalisation's, in evaluation mode, {shown}."
    if others.beyond:
        words += f" Without ASR, {others.words}."
    means = {f"{WITH_ASR}, {setting}": float(np.mean(groups[INSTANCE])) for setting, groups in settings.items()}
    cases = [of_closeness(above, 0.0, design.ALIKE * means[case]) for case, above in compared.beyond.items()]
    return of_cases(cases) if cases else compared.undecided, words


def show_styles(page: Page, e: Evidence) -> None:
    if not e.painted:
        return
    page.words(
        f"Networks with three residual steps repaint {e.plan.data_name} in a made-up style; a ResNet-20 that comes "
        "with the repository, trained on CIFAR-10, gives content and Gram losses. In training mode batch "
        "normalisation of one picture alone is instance normalisation; so scores are of running statistics, and beside "
        "them of those of 200 pictures at once. Gradients are a mean squared difference of neighbouring pixels, which "
        "blur takes away."
    )
    page.figure(
        draw_styles(e.painted, e.originals),
        "style",
        "The style, and six held-out pictures as they are and as each network repaints them, first seed.",
    )
    page.figure(
        draw_style_losses(e.painted),
        "style_losses",
        "Content and style loss on 200 held-out pictures, a mark per network. Filled: running statistics; hollow: "
        "statistics of the pictures themselves, as in training.",
    )
    page.table("style", style_rows(e.painted), "Losses on held-out pictures, mean over seeds")


STYLE = exhibit("Style transfer (Figures 5 and 19 to 21)", show_styles, {"--train --part style": (judge_paintings,)})


def of_arm(painted: list[Painted], style: str, arm: str) -> list[Painted]:
    """The networks of an arm that paint in a style."""
    return [network for network in painted if (network.painting.style, network.painting.arm) == (style, arm)]


def draw_styles(painted: list[Painted], originals: np.ndarray | None):
    """What the networks of the first seed paint, a row per arm of the first style; the style and the originals above.

    originals  the pictures before they are repainted, (N, 3, H, W); None where they are not known
    """
    first = painted[0].painting
    chosen = [net for net in painted if (net.painting.style, net.painting.seed) == (first.style, first.seed)]
    rows = [(net.painting.arm, net.pictures) for net in chosen]
    rows = ([] if originals is None else [("original", originals[: len(chosen[0].pictures)])]) + rows
    with stylesheet.figure(len(rows), 1 + len(rows[-1][1]), height=0.95 * len(rows) + 0.2) as (drawing, axes):
        for number, ((name, pictures), row) in enumerate(zip(rows, axes, strict=True)):
            size = pictures.shape[-1]
            shown = [style_picture(first.style, size).numpy() if number == 0 else None, *pictures]
            for picture, axis in zip(shown, row, strict=True):
                hide_scales(axis)
                axis.spines[:].set_visible(False)
                if picture is not None:
                    axis.imshow(picture.transpose(1, 2, 0))
            row[1].set_ylabel(name, fontsize=7)
        axes[0, 0].set_title("style", fontsize=8)
    return drawing


def draw_style_losses(painted: list[Painted]):
    """Content and style loss of every network: filled with running statistics, hollow with those of the batch."""
    styles = list(dict.fromkeys(network.painting.style for network in painted))
    with stylesheet.figure(1, len(styles), height=2.7) as (drawing, axes):
        for axis, style in zip(axes[0], styles, strict=True):
            for colour, mark, arm in zip(stylesheet.COLOURS, MARKS, ARMS, strict=False):
                for mode, filling in (("evaluation", "full"), ("batch", "none")):
                    points = [getattr(network, mode)[:2] for network in of_arm(painted, style, arm)]
                    if points:
                        label = arm if filling == "full" else None
                        axis.plot(*zip(*points, strict=True), mark, color=colour, fillstyle=filling, label=label)
            axis.set(title=style, xlabel="content loss")
        axes[0, 0].set_ylabel("style loss")
        axes[0, 0].legend(fontsize=7)
    return drawing


def style_rows(painted: list[Painted]) -> list[dict]:
    """Every style and arm: losses and gradients, with running statistics and with those of the batch."""
    rows = []
    for style, arm in dict.fromkeys((network.painting.style, network.painting.arm) for network in painted):
        networks = of_arm(painted, style, arm)
        row = {"style": style, "arm": arm, "n": len(networks)}
        for k, score in enumerate(SCORES):
            modes = [np.mean([getattr(net, mode)[k] for net in networks]) for mode in ("evaluation", "batch")]
            row[f"{score}: running, batch"] = f"{modes[0]:.3f}, {modes[1]:.3f}"
        rows.append(row)
    return rows


# ---- Class activation maps (Figure 4) ----

ROLL = 6  # pixels by which pictures are rolled


def measure_class_maps(name: str, seed, path: Path, data, images: int) -> dict:
    """Grad-CAM of test images, straight and with the pictures rolled by six pixels to the right."""
    net = evidence.load_network(path)
    shown, labels = data.normalised(data.test_images[:images]), data.test_labels[:images]
    moved = torch.nn.functional.pad(shown, (ROLL, 0, 0, 0))[..., : shown.shape[3]]  # the mean colour comes in
    pictures = (shown, shown.roll(ROLL, dims=3), moved)
    straight, rolled, padded = (activation_maps.class_maps(net, each, labels) for each in pictures)
    mass = activation_maps.central_mass(straight)
    centres = [activation_maps.centre_of_mass(each)[:, 1] for each in (straight, rolled, padded)]
    return {
        "name": name,
        "seed": seed,
        "mass": evidence.mean_over_images(mass[mass.isfinite()].double()),
        "shift": float((centres[1] - centres[0]).nanmean()),
        "padded": float((centres[2] - centres[0]).nanmean()),
        "cells": ROLL * straight.shape[2] / shown.shape[3],
        "straight": (straight / straight.sum((1, 2), keepdim=True)).nanmean(0).numpy(),
        "rolled": (rolled / rolled.sum((1, 2), keepdim=True)).nanmean(0).numpy(),
    }


def make_centre(chance, effect, n):
    """Mass of class maps in the central quarter: 0.05 more with a module, or no more."""
    maps = [
        {"name": name, "seed": seed, "mass": Estimate(x, np.nan, np.nan)}
        for name in ("plain", "SE", "SRM")
        for seed, x in enumerate(chance.normal(0.5 + 0.05 * effect * (name != "plain"), 0.01, n))
    ]
    return (Evidence(maps=maps),)


@evidence.networks_rule(
    "A bias to the centre is attention's.",
    "Figure 4",
    "after the data: until 2026-11-19 images were the units and every network a case, and the verdict was "
    "contradicted. With two networks of each kind seen, networks became the units",
    make_centre,
    "0.05 more mass in the centre",
    units="networks of each kind",
)
def judge_centre(e: Evidence) -> tuple[Verdict, str]:
    """The mass of class maps in the central quarter of the picture, mean over images: that of networks with a module
    above the plain networks', by Dunnett's intervals over networks.
    """
    masses: evidence.Groups = {}
    for network in e.maps:
        masses.setdefault(network["name"], []).append(network["mass"].value)
    several = [name for name, values in masses.items() if len(values) >= design.FEWEST_NETWORKS and name != "plain"]
    others = [name for name in masses if name not in ("plain", *several)]
    setting = {"above plain": masses} if masses else {}
    compared = over_settings("plain", setting, several or others, others, design.FEWEST_NETWORKS, "+.3f")
    shown = "; ".join(f"{net['name']} (seed {net['seed']}) {interval_text(net['mass'])}" for net in e.maps)
    words = f"{compared.lacking}Mass in the central quarter, uniform 0.25: {shown or 'n = 0'}"
    return compared.verdict(), f"{words}; {compared.words}." if masses else f"{words}."


def show_maps(page: Page, e: Evidence) -> None:
    if not e.maps:
        return
    page.words("Behind an average over the map and a linear layer, Grad-CAM is CAM: one forward pass.")
    page.figure(draw_maps(e.maps), "gradcam", "Mean maps, of the pictures straight and rolled by 6 pixels.")
    rows = [
        {
            "network": network["name"],
            "seed": network["seed"],
            "mass in the central quarter [95 %]": interval_text(network["mass"]),
            "uniform": "0.250",
            "cells rolled": f"{network['cells']:.2f}",
            "cells the centre of mass went": f"{network['shift']:.2f}",
            "the same, padded instead of rolled": f"{network['padded']:.2f}",
        }
        for network in e.maps
    ]
    page.table("gradcam", rows, "Mass of the maps")


MAPS = exhibit("Class activation maps (Figure 4)", show_maps, {"--part gradcam": (judge_centre,)})


def draw_maps(maps: list[dict]):
    """Mean class maps, the pictures straight and rolled."""
    first = list({network["name"]: network for network in reversed(maps)}.values())[::-1]
    top = max(network[what].max() for network in first for what in ("straight", "rolled"))
    with stylesheet.figure(2, len(first), height=3.4) as (drawing, axes):
        for column, network in enumerate(first):
            for axis, what in zip(axes[:, column], ("straight", "rolled"), strict=True):
                image = axis.imshow(network[what], cmap="magma", vmin=0, vmax=top)
                hide_scales(axis)
                if column == 0:
                    axis.set_ylabel(what)
            axes[0, column].set_title(network["name"])
        drawing.colorbar(image, ax=axes, shrink=0.8, label="share of the map's mass in a cell")
    return drawing
