"""How long a training of a cell's network will take on this machine, by a few of its steps."""

import statistics
import time

import torch

from netbridge import data as datasets
from netbridge.devices import best_device
from netbridge.train.epochs import Training
from netbridge.train.recipes import Recipe
from studies.lab.jobs import Job
from studies.plan.cells import TRAINING_IMAGES, Cell

WARM_UP = 2  # steps that are not timed: the first ones reserve memory and choose kernels


def hours_of(cell: Cell, steps: int = 20, device=None) -> float:
    """Hours of all steps of a cell's training, at the seconds of its steps here.

    Pictures are random and lie on the device: reading them and looking at the test images come on top.

    cell    one whose job is a `Job`
    steps   how many steps are timed, at every size of the images that the recipe has; their median counts
    device  of the training; the fastest there is by default
    """
    recipe, images = cell.recipe, TRAINING_IMAGES[cell.job.dataset]
    assert recipe is not None
    sizes = [recipe.size(epoch, cell.size) for epoch in range(recipe.epochs)]
    seconds = {size: seconds_of_a_step(cell, size, steps, device) for size in dict.fromkeys(sizes)}
    return sum(seconds[size] for size in sizes) * (images // recipe.batch) / 3600


def seconds_of_a_step(cell: Cell, size: int, steps: int, device=None) -> float:
    """The median time of a step on images of this height and width."""
    recipe: Recipe = cell.job.recipe
    chance = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (recipe.batch, 3, size, size), dtype=torch.uint8, generator=chance)
    labels = torch.arange(recipe.batch) % cell.classes
    arrays = {"train_images": images, "train_labels": labels, "test_images": images[:2], "test_labels": labels[:2]}
    data = datasets.dataset("timing", arrays, [f"class {number}" for number in range(cell.classes)])
    training = Training(cell.job.untrained_network(cell.classes, size), data, recipe, device=device or best_device())
    shown = data.normalised(images).to(training.device).contiguous(memory_format=torch.channels_last)
    wanted, times = labels.to(training.device), []
    for number in range(WARM_UP + steps):
        wait_for(training.device)
        began = time.perf_counter()
        training.stepper.step(shown, wanted, 0, number, WARM_UP + steps)
        wait_for(training.device)
        times.append(time.perf_counter() - began)
    return statistics.median(times[WARM_UP:])


def wait_for(device: torch.device) -> None:
    """Until the device has done everything that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def can_be_timed(cell: Cell) -> bool:
    """Is it the training of a classifier? Detectors and measurements are not timed."""
    return isinstance(cell.job, Job)
