"""Networks for the tests: ours with lively weights, and residual networks written out by hand."""

import torch
from torch import nn
from torch.nn import functional as F

from tests.rounding import ROUNDINGS, amplification_of_weights


def lively(net: nn.Module, seed: int = 1) -> nn.Module:
    """Weights and statistics as training might leave them: nothing is exactly 0 or 1 any more."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in (*net.named_parameters(), *net.named_buffers()):
            if name.endswith("running_var"):
                tensor.mul_(0.5 + torch.rand(tensor.shape, generator=generator))
            elif tensor.is_floating_point() and (tensor.ndim == 1 or "controller" in name or "shared" in name):
                tensor.add_(0.2 * torch.randn(tensor.shape, generator=generator))
    return net


def relative_error(got: torch.Tensor, wanted: torch.Tensor) -> float:
    return float(((got - wanted).abs().max() / wanted.abs().max()).detach())


def rounding_of(net: nn.Module, *inputs) -> float:
    """The relative error that rounding explains where weights were multiplied or a sum was taken in another order."""
    return ROUNDINGS * amplification_of_weights(net, *inputs, draws=4)


class PlainBlock(nn.Module):
    def __init__(self, channels_in, width, stride, bottleneck, projected):
        super().__init__()
        out = 4 * width if bottleneck else width
        kernels = [(channels_in, width, 1, 1), (width, width, 3, stride), (width, out, 1, 1)]
        if not bottleneck:
            kernels = [(channels_in, width, 3, stride), (width, out, 3, 1)]
        self.convs = nn.ModuleList(nn.Conv2d(a, b, k, s, padding=k // 2, bias=False) for a, b, k, s in kernels)
        self.norms = nn.ModuleList(nn.BatchNorm2d(b) for _, b, _, _ in kernels)
        self.stride, self.extra = stride, out - channels_in
        self.project = None
        if projected and (stride != 1 or self.extra):
            self.project = nn.Sequential(nn.Conv2d(channels_in, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        out = x
        for conv, norm in zip(self.convs[:-1], self.norms[:-1], strict=True):
            out = F.relu(norm(conv(out)))
        out = self.norms[-1](self.convs[-1](out))
        if self.project is not None:
            x = self.project(x)
        elif self.stride != 1 or self.extra:
            half = self.extra // 2
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, half, self.extra - half))
        return F.relu(x + out)


class PlainResNet(nn.Module):
    """A post-activation CIFAR ResNet as one would write it, without a solver; `takes` reads weights of ours."""

    def __init__(self, blocks, widths, bottleneck, projected, num_classes=10):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, widths[0], 3, padding=1, bias=False), nn.BatchNorm2d(widths[0])
        members, channels = [], widths[0]
        for stage, (count, width) in enumerate(zip(blocks, widths, strict=True)):
            for i in range(count):
                stride = 2 if stage > 0 and i == 0 else 1
                members.append(PlainBlock(channels, width, stride, bottleneck, projected))
                channels = 4 * width if bottleneck else width
        self.blocks = nn.ModuleList(members)
        self.head = nn.Linear(channels, num_classes)

    def forward(self, x):
        x = F.relu(self.norm(self.conv(x)))
        for block in self.blocks:
            x = block(x)
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))

    def takes(self, net):
        """Copies every weight of a network of ours, by place."""
        pairs = [(self.conv, net.stem.conv), (self.norm, net.stem.bn), (self.head, net.head.fc)]
        for mine, theirs in zip(self.blocks, net.blocks, strict=True):
            for i, (conv, norm) in enumerate(zip(mine.convs, mine.norms, strict=True), start=1):
                pairs += [(conv, getattr(theirs.branch, f"conv{i}")), (norm, getattr(theirs.branch, f"bn{i}"))]
            if mine.project is not None:
                pairs += [(mine.project[0], theirs.shortcut.conv), (mine.project[1], theirs.shortcut.bn)]
        for mine, theirs in pairs:
            mine.load_state_dict(theirs.state_dict())
        return self.train(net.training)


def plain_twin(net):
    config = net.config
    twin = PlainResNet(config["blocks"], config["widths"], config["bottleneck"], config["shortcut"] == "B")
    return twin.to(next(net.parameters()).dtype).takes(net)
