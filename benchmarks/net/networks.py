"""The networks, images and clocks that the benchmarks of netbridge share."""

import dataclasses
from collections.abc import Callable

import torch

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


def runner(net: Callable, images: torch.Tensor) -> Callable:
    def run():
        with torch.inference_mode():
            return net(images)

    return run


def relative_error(wanted: torch.Tensor) -> Callable[[torch.Tensor], float]:
    return lambda got: float((got - wanted).abs().max() / wanted.abs().max())
