"""Style transfer at 32 x 32 pixels: does ASR make batch normalisation paint as instance normalisation does? (Figure 5)

The paper shows pictures. Here they are scored: content and Gram losses on held-out pictures, by a network that neither
was trained with styles nor belongs to an arm, and the energy of gradients, which falls where pictures are blurred.
"""

import base64
import dataclasses
import hashlib
import json
import time
from pathlib import Path

import numpy as np
import torch

import netbridge as nb
from netbridge.model import transfer
from netbridge.progress import progress_bar
from odelab.files import replacing
from studies.asr.design import asr
from studies.lab.results import choose_current, source

JUDGE = "cifar10/resnet20-constant-seed0"  # whose maps the losses are of
INSTANCE, BATCH, HALVED, WITH_ASR = "IN", "BN", "BN, half", "BN, ASR(SE, r=4)"
ARMS = {  # normalisation and controller
    INSTANCE: ("instance", "constant"),
    BATCH: ("batch", "constant"),
    HALVED: ("batch", "constant(0.5)"),
    WITH_ASR: ("batch", asr("se(reduction=4)")),
}
STEPS, BATCH_SIZE, RATE, STYLE_WEIGHT = 400, 8, 2e-3, 2.0
TESTED, SHOWN = 200, 6  # held-out pictures that are scored, and those that are kept to look at
SCORES = ("content", "style", "gradients")


def waves(size: int, generator) -> np.ndarray:
    """Interfering waves, another pair of colours at every height."""
    y, x = np.mgrid[:size, :size] / size
    total = sum(
        np.sin(2 * np.pi * (a * x + b * y + phase)) for a, b, phase in generator.uniform(-6, 6, (4, 3)).tolist()
    )
    colours = generator.uniform(0, 1, (2, 3))
    share = (np.tanh(total) + 1)[..., None] / 2
    return share * colours[0] + (1 - share) * colours[1]


def glass(size: int, generator) -> np.ndarray:
    """Stained glass: Voronoi cells of bright colours with dark joints."""
    y, x = np.mgrid[:size, :size] / size
    seeds, colours = generator.uniform(0, 1, (20, 2)), generator.uniform(0.2, 1, (20, 3))
    distances = np.hypot(y[..., None] - seeds[:, 0], x[..., None] - seeds[:, 1])
    nearest = np.sort(distances, axis=2)
    return colours[distances.argmin(2)] * ((nearest[..., 1] - nearest[..., 0]) > 0.03)[..., None]


def strokes(size: int, generator) -> np.ndarray:
    """Short oblique strokes of a brush, one over the other."""
    y, x = np.mgrid[:size, :size] / size
    picture = np.ones((size, size, 3)) * generator.uniform(0.3, 0.8, 3)
    for row, column, angle in generator.uniform(0, 1, (150, 3)).tolist():
        turn = np.pi * (0.2 + 0.3 * angle)
        along = (x - column) * np.cos(turn) + (y - row) * np.sin(turn)
        across = (y - row) * np.cos(turn) - (x - column) * np.sin(turn)
        picture[(np.abs(along) < 0.15) & (np.abs(across) < 0.03)] = generator.uniform(0, 1, 3)
    return picture


STYLES = {"glass": glass, "waves": waves, "strokes": strokes}


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
    kept = {name: x.clone() for name, x in net.state_dict().items()}
    pictures = net(shown)
    net.load_state_dict(kept)
    maps = transfer.maps_of(judge, pictures)
    content = transfer.content_loss(maps, transfer.maps_of(judge, shown))
    return (float(content), float(transfer.style_loss(maps, grams)), transfer.gradient_energy(pictures)), pictures


def as_bytes(pictures: torch.Tensor, data) -> np.ndarray:
    """Normalised pictures as they are looked at."""
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (data.mean, data.std))
    return pictures.mul(std).add(mean).clamp(0, 1).mul(255).round().to(torch.uint8).numpy()


def write(one: Painted, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "specification": one.specification,
        "evaluation": one.evaluation,
        "batch": one.batch,
        "pictures": base64.b64encode(one.pictures.tobytes()).decode(),
        "shape": one.pictures.shape,
        "made": one.made,
    }
    with replacing(path) as unfinished:
        unfinished.write_text(json.dumps(record) + "\n")


def find(painting: Painting, folders) -> Painted | None:
    """The result of exactly this network in the first folder that has one; one by today's code goes before others."""
    every = []
    for folder in folders:
        path = Path(folder) / f"{painting.stem}.json"
        if path.is_file():
            record = json.loads(path.read_text())
            if record["specification"] != json.loads(json.dumps(painting.specification)):
                raise SystemExit(f"{path}: holds the result of another network than its name says. Delete it.")
            pictures = np.frombuffer(base64.b64decode(record["pictures"]), np.uint8).reshape(record["shape"])
            scored = tuple(record["evaluation"]), tuple(record["batch"])
            every.append(Painted(painting, *scored, pictures, record["made"]))
    return choose_current(every)
