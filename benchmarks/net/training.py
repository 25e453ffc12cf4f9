"""What the training loop adds to a bare one, what preparing images costs, and a trace of the whole test set."""

import copy
import time
from collections.abc import Callable

import torch
from torch.nn import functional as F

import netbridge as nb
from benchmarks.harness.rows import Row, at_most, below
from benchmarks.harness.timing import Contestant
from benchmarks.net.networks import Size, network
from netbridge import data
from netbridge.common.batches import channels_last
from netbridge.train import loop as train
from netbridge.train import recipes
from netbridge.train.stepping import make_optimizer

STEPS, TEST_IMAGES = 4, 10_000
WHOLE_IMAGES = recipes.recipe("short", epochs=10**6, evaluate_every=10**6, small=())


def noise(batch: int) -> data.Dataset:
    """An epoch of STEPS steps of CIFAR's shape."""
    images = torch.randint(0, 256, (STEPS * batch, 3, 32, 32), dtype=torch.uint8)
    labels = torch.arange(len(images)) % 10
    names = tuple(map(str, range(10)))
    return data.Dataset("noise", images, labels, images[:batch], labels[:batch], (0.5,) * 3, (0.25,) * 3, names)


def bare(net, images, labels) -> Callable:
    """The loop that everybody writes, on one batch that is ready."""
    optimizer = make_optimizer(net, WHOLE_IMAGES)

    def epoch():
        for _ in range(STEPS):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logits = net(images)
            F.cross_entropy(logits.float(), labels).backward()
            optimizer.step()

    return epoch


def training(size: Size):
    """an epoch of netbridge's training, images prepared on the way, against a bare loop on one ready batch, bfloat16"""
    torch.manual_seed(0)
    images = noise(size.batch)
    net = channels_last(nb.resnet(20)).train()
    run = train.Training(copy.deepcopy(net), images, WHOLE_IMAGES, device="cpu")
    run.prepare()
    ready = next(iter(run.batches.epoch(0, 0, 0, 1)))
    loop = Contestant("training loop", run.one_epoch, per=STEPS)
    peer = Contestant("bare loop", bare(net, *ready), per=STEPS)
    work = f"ResNet-20, a step at batch {size.batch}"
    (row,) = size.compare(work, loop, {peer: at_most(1.05)})
    yield row
    pipeline = Contestant("preparing images", lambda: list(run.batches.epoch(0, 0, 0, 1)), per=STEPS)
    yield from size.compare(work, pipeline, {peer: at_most(0.03)})


def whole_set(size: Size):
    """nb.trace(tune=True) of ResNet-20 over as many images as CIFAR has test images; the goal is for two threads"""
    net = network(20)
    images = torch.randn(TEST_IMAGES // (20 if size.quick else 1), 3, 32, 32)
    nb.trace(net, images[:256], tune=True)
    clock = time.process_time if size.threads == 1 else time.perf_counter
    began = clock()
    found = nb.trace(net, images, tune=True)
    seconds = clock() - began
    goal = below(15.0) if size.threads == 2 and not size.quick else None
    wrong = "" if found.nsi.shape[0] == len(images) else f"{found.nsi.shape[0]} images traced"
    yield Row(f"ResNet-20, {len(images):,} images", "nb.trace", "", seconds, goal=goal, unit="s", wrong=wrong)


SECTIONS: dict[str, Callable] = {"training": training, "whole_set": whole_set}
