"""What a classifier scores on the test images; of several processes each looks at its share of them."""

import torch
from torch import nn
from torch.nn import functional as F

from netbridge.data.datasets import Dataset
from netbridge.data.pictures import Pictures
from netbridge.train import distributed
from netbridge.train.loading import to_test

MANY, TOP = 20, 5  # with more classes than `MANY`, the first `TOP` guesses are counted too


@torch.no_grad()
def evaluate(net: nn.Module, data: Dataset | Pictures, device=None, dtype=torch.float32, batch=250, workers=0) -> dict:
    """What a network scores on the test images; of several processes each looks at its share, and all get the answer.

    net      the network; it is put into evaluation mode and stays there
    data     a `netbridge.data.Dataset` or `netbridge.data.Pictures`
    device   of the computation; default: where the network is
    dtype    of the images (float32)
    batch    images at a time (250); it changes memory and time only
    workers  processes that decode pictures from the disk (0: this one does)

    Returns a dictionary: test_accuracy (a share of 1), test_errors (a count), test_loss (mean cross-entropy); with more
    than 20 classes also test_top5, the share of images whose class is among the five largest logits.

    >>> import netbridge as nb
    >>> from netbridge import data, train
    >>> train.evaluate(nb.pretrained("digits/resnet32-width4-se-seed0"), data.load("digits"))["test_errors"]
    4
    """
    device = next(net.parameters()).device if device is None else device
    net.eval()
    rank, world = distributed.rank(), distributed.world()
    shown = to_test(data, batch, rank, world, workers, device, dtype)
    sums = torch.zeros(4, dtype=torch.float64)  # images, errors, not among the first five, loss
    for images, labels in shown:
        logits = net(images.contiguous(memory_format=torch.channels_last)).to(dtype)
        loss = F.cross_entropy(logits, labels, reduction="sum")
        place = place_of(labels, logits)
        missed = [int((place >= first).sum()) for first in (1, TOP)]
        sums += torch.tensor([len(labels), *missed, float(loss)], dtype=torch.float64)
    if world > 1:
        sums = distributed.total(sums.to(device))
    count, errors, missed, total = sums.tolist()
    scores = {"test_accuracy": (count - errors) / count, "test_errors": round(errors), "test_loss": total / count}
    return scores | ({"test_top5": (count - missed) / count} if len(data.names) > MANY else {})


def place_of(labels: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """How many classes a network holds for likelier than the right one, int64 (N,): 0 where its answer is right.

    Of equal logits the first class counts as the likelier, and NaN as likelier than any number: a network whose logits
    are all alike has guessed one class, not all of them.
    """
    own = logits.gather(1, labels[:, None])
    before = torch.arange(logits.shape[1], device=logits.device) < labels[:, None]
    return (~(logits <= own) | ((logits == own) & before)).sum(1)
