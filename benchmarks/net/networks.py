"""The networks, images and clocks that the benchmarks of netbridge share."""

import dataclasses
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

import netbridge as nb
from benchmarks.harness.rows import Row
from benchmarks.harness.timing import Contestant, compare
from netbridge.common.batches import channels_last


@dataclasses.dataclass(frozen=True)
class Size:
    depths: tuple[int, ...] = (56, 164)
    batch: int = 128
    rounds: int = 15
    seconds: float = 120.0
    clock: str = "processor"
    threads: int = 1
    quick: bool = False

    def images(self) -> torch.Tensor:
        torch.manual_seed(0)
        return torch.randn(self.batch, 3, 32, 32).to(memory_format=torch.channels_last)

    def compare(self, work: str, ours: Contestant, peers: dict, **more) -> list[Row]:
        return compare(work, ours, peers, rounds=self.rounds, seconds=self.seconds, clock=self.clock, **more)


def network(depth: int, controller="constant", precision=torch.float32) -> nb.Network:
    """Weights as training leaves them, away from the initial zeros and ones."""
    torch.manual_seed(depth)
    net = nb.resnet(depth, controller=controller)
    with torch.no_grad():
        for tensor in (*net.parameters(), *net.buffers()):
            if tensor.ndim == 1:
                tensor.mul_(1.0 + 0.2 * torch.rand_like(tensor)).add_(0.1 * torch.rand_like(tensor))
    return channels_last(net.to(precision)).eval()


class ForeignBlock(nn.Module):
    """A residual block as other people write it: in-place sum and ReLU, perhaps squeeze and excitation."""

    def __init__(self, inside: int, out: int, stride: int, gated: bool):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.gate = nn.Sequential(nn.Linear(out, out // 4), nn.ReLU(), nn.Linear(out // 4, out), nn.Sigmoid())
        self.gated = gated
        self.short: nn.Module = nn.Identity()
        if stride > 1 or inside != out:
            self.short = nn.Sequential(nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        out = self.bn2(self.conv2(F.relu_(self.bn1(self.conv1(x)))))
        if self.gated:
            out = out * self.gate(out.mean((2, 3)))[:, :, None, None]
        out += self.short(x)
        return F.relu_(out)


def foreign_network(widths: tuple[int, ...], blocks: int, gated: bool = False) -> nn.Module:
    """Stages of so many blocks each, in plain torch; (64, 128, 256, 512) with 2 is ResNet-18 for small images."""
    torch.manual_seed(0)
    pairs = [(w, 2 if i and not k else 1) for i, w in enumerate(widths) for k in range(blocks)]
    before = [widths[0], *(width for width, _ in pairs)]
    layers = [ForeignBlock(a, width, stride, gated) for a, (width, stride) in zip(before, pairs, strict=False)]
    stem = nn.Sequential(nn.Conv2d(3, widths[0], 3, 1, 1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU())
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 10))
    return channels_last(nn.Sequential(stem, *layers, head)).eval()


def runner(net: Callable, images: torch.Tensor) -> Callable:
    def run():
        with torch.inference_mode():
            return net(images)

    return run


def relative_error(wanted: torch.Tensor) -> Callable[[torch.Tensor], float]:
    return lambda got: float((got - wanted).abs().max() / wanted.abs().max())
