"""A printed cell, the job that fills it, and how that job's recipe differs from the paper's."""

import dataclasses
from typing import Any

import torch

import netbridge as nb
from netbridge.train.recipes import Recipe
from studies import detect as detection
from studies.lab.jobs import Job
from studies.lab.networks import IMAGENET_SIZE

STEP_NET, BLOCK, ASR = "StepNet", "block", "ASR"
PAPERS = {
    STEP_NET: "Understanding Self-attention Mechanism via Dynamical System Perspective",
    BLOCK: "Block-level Stiffness Analysis of Residual Networks",
    ASR: "ASR: Attention-alike Structural Re-parameterization",
}
TRAINING_IMAGES = {"cifar10": 50_000, "cifar100": 50_000, "stl10": 5_000, "imagenet": 1_281_167}
CLASSES = {"cifar10": 10, "cifar100": 100, "stl10": 10, "imagenet": 1000}
PIXELS = {"cifar10": 32, "cifar100": 32, "stl10": 96, "imagenet": IMAGENET_SIZE}
UNSAID = (  # fields of a recipe of which the papers say nothing: names, what changes nothing, and the precision
    "name", "architectures", "evaluate_every", "bfloat16", "float16", "tf32", "benchmark"
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Look:
    """A trained network that is looked at and not trained: published weights, or those of somebody's own.

    depth  layers of the ResNet, behind a stem of 3x3 convolution and max-pool
    """

    depth: int

    def untrained_network(self, classes: int, size: int = 32) -> nb.Network:
        """A network of these sizes with fresh weights."""
        return nb.resnet(self.depth, classes, stem="cifar-pooled")


@dataclasses.dataclass(frozen=True)
class Cell:
    """One printed number, or pair of numbers, of a paper.

    paper       one of `PAPERS`
    table       as the paper counts, such as "3" or "Fig. 8"
    row, column of the table
    printed     as it is printed
    job         what fills the cell: a `Job` or a detector's `Run` to train, a `Look`, or None
    wanted      the recipe of the paper for this cell; None where it has none
    reason      why there is no job; "" where there is one
    remark      what the paper leaves open, or what is otherwise than in the paper without being a field of a recipe
    command     what carries the job out; "" where only `netbridge` can, from Python
    """

    paper: str
    table: str
    row: str
    column: str
    printed: str
    job: Any = None
    wanted: Recipe | None = None
    reason: str = ""
    remark: str = ""
    command: str = ""

    @property
    def network(self) -> str:
        """The network and what decides its step sizes, in words."""
        job = self.job
        if isinstance(job, Look):
            return f"ResNet-{job.depth}, pooled stem"
        if isinstance(job, detection.Run):
            return f"Faster R-CNN, ResNet-{job.depth}, {job.controller}"
        if job is None:
            return ""
        options = job.options or {}
        named = {"vit-s": "ViT-S", "vit-b": "ViT-B", "vit-conv": "ViT", "resnet": f"ResNet-{job.depth}"}
        kind = named.get(job.network, job.network)
        shown = " ".join(str(value) for key, value in options.items() if key != "bottleneck")
        noise = "" if job.noise is None else f", noise {job.noise}"
        starts = "".join(f", {name.rsplit('.', 2)[-2]} {value}" for name, value in job.start)
        return f"{kind}{' ' * bool(shown)}{shown}, {job.label}{noise}{starts}"

    @property
    def recipe(self) -> Recipe | None:
        """How the job trains; None where it does not."""
        return getattr(self.job, "recipe", None)

    @property
    def changes(self) -> list[str]:
        """The fields in which the job's recipe is not the paper's, with both values."""
        if self.recipe is None:
            return []
        if self.wanted is None:
            return ["the paper has no recipe"]
        pairs = {
            field.name: (getattr(self.recipe, field.name), getattr(self.wanted, field.name))
            for field in dataclasses.fields(Recipe)
            if field.name not in UNSAID
        }
        return [f"{name} {ours} for {theirs}" for name, (ours, theirs) in pairs.items() if ours != theirs]

    @property
    def difference(self) -> str:
        """How the job differs from what the paper says, and what the paper leaves open; "" where there is neither."""
        return "; ".join(filter(None, (*self.changes, self.remark)))

    @property
    def precision(self) -> str:
        """What layers compute in, by the recipe."""
        if self.recipe is None:
            return ""
        return "bfloat16" if self.recipe.bfloat16 else "float16" if self.recipe.float16 else "float32"

    @property
    def classes(self) -> int:
        """Of the data that the network is for."""
        return CLASSES[self.job.dataset] if isinstance(self.job, Job) else 10

    @property
    def size(self) -> int:
        """Height and width of the images that the network is shown."""
        if isinstance(self.job, Job):
            return self.job.size or PIXELS[self.job.dataset]
        return 32

    def build(self):
        """The whole network of the cell on torch's meta device, which has shapes and no numbers; None without a job."""
        if self.job is None:
            return None
        with torch.device("meta"):
            if isinstance(self.job, detection.Run):
                return self.job.untrained_detector([f"class {number}" for number in range(80)])
            return self.job.untrained_network(self.classes, self.size)
