"""Blocks as other people write them, above all timm: for tests of what is put into their networks and merged again."""

import torch
from torch import nn
from torch.nn import functional as F

import netbridge as nb
from tests.netbridge.foreign.networks import DropPath


class NormAct(nn.BatchNorm2d):
    """As timm has it: normalises by hand, and its activation belongs to it."""

    def __init__(self, channels, act=nn.Identity):
        super().__init__(channels)
        self.drop, self.act = nn.Identity(), act()

    def forward(self, x):
        statistics = (self.running_mean, self.running_var)
        x = F.batch_norm(x, *statistics, self.weight, self.bias, self.training, self.momentum, self.eps)
        return self.act(self.drop(x))


class ConvNormAct(nn.Module):
    """A convolution with its normalisation, in a module of its own."""

    def __init__(self, ins, outs, size, act=nn.Identity, groups=1):
        super().__init__()
        self.conv = nn.Conv2d(ins, outs, size, padding=size // 2, groups=groups, bias=False)
        self.bn = NormAct(outs, act)

    def forward(self, x):
        return self.bn(self.conv(x))


class Excite(nn.Module):
    """Squeeze and excitation inside an inverted residual."""

    def __init__(self, channels, gate):
        super().__init__()
        self.reduce, self.expand = nn.Conv2d(channels, 2, 1), nn.Conv2d(2, channels, 1)
        self.gate = gate()

    def forward(self, x):
        return x * self.gate(self.expand(torch.relu(self.reduce(x.mean((2, 3), keepdim=True)))))


class MBConv(nn.Module):
    """As EfficientNet and MobileNet-V3 have it: a linear bottleneck behind SE, and random depth."""

    def __init__(self, channels, act=nn.SiLU, gate=nn.Sigmoid):
        super().__init__()
        self.expand = ConvNormAct(channels, 2 * channels, 1, act)
        self.depthwise = ConvNormAct(2 * channels, 2 * channels, 3, act, 2 * channels)
        self.se = Excite(2 * channels, gate)
        self.project = ConvNormAct(2 * channels, channels, 1)
        self.drop_path = DropPath(0.1)

    def forward(self, x):
        return self.drop_path(self.project(self.se(self.depthwise(self.expand(x))))) + x


class Summed(nn.Module):
    """As RepVGG is trained: a normalised shortcut, and a branch that is the sum of two convolutions."""

    def __init__(self, channels):
        super().__init__()
        self.identity = NormAct(channels)
        self.wide, self.narrow = ConvNormAct(channels, channels, 3), ConvNormAct(channels, channels, 1)
        self.drop_path, self.attn, self.act = nn.Identity(), nn.Identity(), nn.ReLU()

    def forward(self, x):
        identity = self.identity(x)
        x = self.drop_path(self.narrow(x) + self.wide(x))
        x += identity
        return self.act(self.attn(x))


class LayerScale(nn.Module):
    """As ConvNeXt and DeiT-III have it: tokens last, a learnt factor per channel."""

    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
        self.norm = nn.LayerNorm(channels)
        self.widen, self.narrow = nn.Linear(channels, 2 * channels), nn.Linear(2 * channels, channels)
        self.gamma = nn.Parameter(0.3 * torch.ones(channels))

    def forward(self, x):
        f = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        f = self.gamma * self.narrow(F.gelu(self.widen(f)))
        return x + f.permute(0, 3, 1, 2)


class Inverted(nn.Module):
    """As MobileNet-V2 has it: the branch ends in a linear bottleneck."""

    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, 2 * channels, 1), nn.BatchNorm2d(2 * channels), nn.ReLU6(),
            nn.Conv2d(2 * channels, channels, 1), nn.BatchNorm2d(channels),
        )  # fmt: skip

    def forward(self, x):
        return x + self.body(x)


class Attention(nn.Module):
    """A pre-norm transformer block: two steps."""

    def __init__(self, features):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(features), nn.LayerNorm(features)
        self.attention, self.out = nb.SelfAttention(features, 2), nn.Linear(features, features)
        self.mlp = nn.Sequential(nn.Linear(features, 2 * features), nn.GELU(), nn.Linear(2 * features, features))

    def forward(self, x):
        x = x + self.out(self.attention(self.norm1(x)))
        return x + self.mlp(self.norm2(x))


class RepVGG(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.wide, self.narrow = nn.Conv2d(channels, channels, 3, padding=1), nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        return torch.relu(x + (self.wide(x) * 2 + self.narrow(x)).relu())


class WindowAttention(nn.Module):
    """Attention within windows of a map whose channels are last; every second block shifts the map first."""

    def __init__(self, features, window, shift):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(features), nb.SelfAttention(features, 2)
        self.proj, self.window, self.shift = nn.Linear(features, features), window, shift

    def forward(self, x):
        images, height, width, features = x.shape
        w, turned = self.window, self.norm(x)
        if self.shift:
            turned = torch.roll(turned, (-self.shift, -self.shift), (1, 2))
        turned = F.pad(turned, (0, 0, 0, -width % w, 0, -height % w))
        rows, columns = turned.shape[1] // w, turned.shape[2] // w
        windows = turned.view(images, rows, w, columns, w, features).permute(0, 1, 3, 2, 4, 5).contiguous()
        windows = self.proj(self.attention(windows.view(-1, w * w, features)))
        turned = windows.view(images, rows, columns, w, w, features).permute(0, 1, 3, 2, 4, 5).contiguous()
        turned = turned.view(images, rows * w, columns * w, features)[:, :height, :width, :].contiguous()
        return torch.roll(turned, (self.shift, self.shift), (1, 2)) if self.shift else turned


class SwinBlock(nn.Module):
    """As timm's Swin has it: a step of attention in windows, and one of an MLP on tokens."""

    def __init__(self, features, window=4, shift=0):
        super().__init__()
        self.attn, self.norm = WindowAttention(features, window, shift), nn.LayerNorm(features)
        self.mlp = nn.Sequential(nn.Linear(features, 2 * features), nn.GELU(), nn.Linear(2 * features, features))
        self.drop_path = DropPath(0.1)

    def forward(self, x):
        images, height, width, features = x.shape
        x = x + self.drop_path(self.attn(x))
        x = x.reshape(images, -1, features)
        x = x + self.drop_path(self.mlp(self.norm(x)))
        return x.reshape(images, height, width, features)


class Swin(nn.Module):
    """Two blocks, the second one shifted."""

    def __init__(self, features=8):
        super().__init__()
        self.patches = nn.Conv2d(3, features, 2, 2)
        self.blocks = nn.Sequential(SwinBlock(features), SwinBlock(features, shift=2))
        self.head = nn.Linear(features, 5)

    def forward(self, x):
        return self.head(self.blocks(self.patches(x).permute(0, 2, 3, 1)).mean((1, 2)))


class Activated(nn.Module):
    """x + act(norm(conv(x))): how the branch is activated is what differs."""

    def __init__(self, channels, act, **settings):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(channels, channels, 3, padding=1, **settings), nn.BatchNorm2d(channels)
        self.act = act

    def forward(self, x):
        return x + self.act(self.norm(self.conv(x)))


class OwnResidual(nn.Module):
    """The block of docs/training.md."""

    def __init__(self, channels):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels)

    def forward(self, x):
        return x + self.norm(self.conv(x)).relu()


class OwnExcited(OwnResidual):
    """What multiplies the branch is computed from it: it is used twice."""

    def forward(self, x):
        f = self.norm(self.conv(x)).relu()
        return x + torch.sigmoid(f.mean((2, 3), keepdim=True)) * f


class OneActivation(Activated):
    """As torchvision has it: one ReLU, inside the branch, at its end and behind the sum."""

    def forward(self, x, mask=None):
        slope = self.act(self.norm(self.act(self.conv(x))))
        return self.act(x + slope if mask is None else x + mask * slope)


def maps(block, width=8):
    return nn.Sequential(
        nn.Conv2d(3, width, 3), *(block(width) for _ in range(3)), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
