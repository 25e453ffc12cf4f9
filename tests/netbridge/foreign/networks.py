"""Stand-ins with the structure of other people's residual networks: the same modules, in-place habits and additions.

Small in width, so that tests are fast; every one is random and in evaluation mode.
"""

import torch
from torch import nn
from torch.nn import functional as F


def shaken(net: nn.Module, seed: int = 0) -> nn.Module:
    """Random normalisations, so that no statistic is 0 or 1 by accident."""
    generator = torch.Generator().manual_seed(seed)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor, low in ((module.weight, 0.5), (module.bias, -0.3), (module.running_mean, -0.3)):
                tensor.data.copy_(low + 0.6 * torch.rand(tensor.shape, generator=generator))
            module.running_var.copy_(0.5 + torch.rand(module.running_var.shape, generator=generator))
    return net.eval()


# torchvision: inplace ReLU, `out += identity`, a Sequential named downsample


class VisionBasic(nn.Module):
    expansion = 1

    def __init__(self, inplanes, planes, stride=1, downsample=None):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = downsample

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        out = self.relu(out)
        return out


class VisionBottleneck(nn.Module):
    expansion = 4

    def __init__(self, inplanes, planes, stride=1, downsample=None):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv3 = nn.Conv2d(planes, 4 * planes, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * planes)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class VisionResNet(nn.Module):
    """7x7 stem, max pooling, stages layer1, layer2, ..."""

    def __init__(self, block=VisionBasic, counts=(2, 2), width=8, classes=10):
        super().__init__()
        self.inplanes = width
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = self.layer(block, width, counts[0], 1)
        self.layer2 = self.layer(block, 2 * width, counts[1], 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(2 * width * block.expansion, classes)

    def layer(self, block, planes, count, stride):
        downsample = None
        out = planes * block.expansion
        if stride != 1 or self.inplanes != out:
            downsample = nn.Sequential(nn.Conv2d(self.inplanes, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        blocks = [block(self.inplanes, planes, stride, downsample)]
        self.inplanes = out
        return nn.Sequential(*blocks, *(block(out, planes) for _ in range(count - 1)))

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer2(self.layer1(x))
        return self.fc(torch.flatten(self.avgpool(x), 1))


# timm: act and drop-path layers, an optional attention layer, optional zero initialisation of the last normalisation


class DropPath(nn.Module):
    def __init__(self, rate=0.0):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        if self.rate == 0.0 or not self.training:
            return x
        keep = 1.0 - self.rate
        mask = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep)
        return x * mask / keep


class TimmSE(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.fc1 = nn.Conv2d(channels, max(channels // 4, 1), 1)
        self.act = nn.ReLU(inplace=True)
        self.fc2 = nn.Conv2d(max(channels // 4, 1), channels, 1)
        self.gate = nn.Sigmoid()

    def forward(self, x):
        squeezed = x.mean((2, 3), keepdim=True)
        return x * self.gate(self.fc2(self.act(self.fc1(squeezed))))


class TimmBlock(nn.Module):
    def __init__(self, inplanes, planes, stride=1, downsample=None, attn=None, drop=0.1, zero=False):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.drop_block = nn.Identity()
        self.act1 = nn.ReLU(inplace=True)
        self.aa = nn.Identity()
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.se = attn(planes) if attn is not None else None
        self.act2 = nn.ReLU(inplace=True)
        self.downsample = downsample
        self.drop_path = DropPath(drop) if drop else None
        self.zero = zero

    def forward(self, x):
        shortcut = x
        x = self.conv1(x)
        x = self.aa(self.act1(self.drop_block(self.bn1(x))))
        x = self.bn2(self.conv2(x))
        if self.se is not None:
            x = self.se(x)
        if self.drop_path is not None:
            x = self.drop_path(x)
        if self.downsample is not None:
            shortcut = self.downsample(shortcut)
        x += shortcut
        return self.act2(x)


class TimmResNet(nn.Module):
    def __init__(self, attn=None, zero=False, width=8):
        super().__init__()
        down = nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(width, 2 * width, 1, bias=False), nn.BatchNorm2d(2 * width))
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.layer1 = nn.Sequential(*(TimmBlock(width, width, attn=attn) for _ in range(2)))
        self.layer2 = nn.Sequential(
            TimmBlock(width, 2 * width, 2, down, attn), TimmBlock(2 * width, 2 * width, attn=attn)
        )
        self.fc = nn.Linear(2 * width, 10)
        shaken(self)
        if zero:
            for module in self.modules():
                if isinstance(module, TimmBlock):
                    nn.init.zeros_(module.bn2.weight)
                    nn.init.zeros_(module.bn2.bias)

    def forward(self, x):
        return self.fc(self.layer2(self.layer1(self.stem(x))).mean((2, 3)))


# written by hand: functional ReLU, `out += self.shortcut(x)`, option A as a lambda, projection as a Sequential


class Lambda(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class HandBlock(nn.Module):
    def __init__(self, inplanes, planes, stride=1, option="A"):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or inplanes != planes:
            if option == "A":
                side = (planes - inplanes) // 2
                self.shortcut = Lambda(lambda x: F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, side, side), "constant", 0))
            else:
                self.shortcut = nn.Sequential(
                    nn.Conv2d(inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes)
                )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


class HandPreBlock(nn.Module):
    """The shortcut leaves after the first activation where the shape changes, before it elsewhere."""

    def __init__(self, inplanes, planes, stride=1):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inplanes)
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        if stride != 1 or inplanes != planes:
            self.shortcut = nn.Sequential(nn.Conv2d(inplanes, planes, 1, stride, bias=False))

    def forward(self, x):
        out = F.relu(self.bn1(x))
        shortcut = self.shortcut(out) if hasattr(self, "shortcut") else x
        out = self.conv1(out)
        out = self.conv2(F.relu(self.bn2(out)))
        return out + shortcut


class HandResNet(nn.Module):
    def __init__(self, block=HandBlock, width=8):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.layer1 = nn.Sequential(block(width, width), block(width, width), block(width, width))
        self.layer2 = nn.Sequential(block(width, 2 * width, 2), block(2 * width, 2 * width))
        self.linear = nn.Linear(2 * width, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer2(self.layer1(x))
        x = F.avg_pool2d(x, x.size()[3])
        return self.linear(x.view(x.size(0), -1))


class Branching(HandResNet):
    """Python decides by the numbers: torch.fx cannot read this."""

    def forward(self, x):
        if x.abs().mean() > 1e9:
            return self.linear(x.mean((2, 3)))
        return super().forward(x)


# transformers: x = x + attn(ln(x)), x = x + mlp(ln(x)); two steps a block


class Attention(nn.Module):
    def __init__(self, features, heads=2):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(features, 3 * features)
        self.proj = nn.Linear(features, features)

    def forward(self, x):
        samples, tokens, features = x.shape
        qkv = self.qkv(x).reshape(samples, tokens, 3, self.heads, features // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        weights = (q @ k.transpose(-2, -1) * (features // self.heads) ** -0.5).softmax(dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(samples, tokens, features))


class EncoderBlock(nn.Module):
    def __init__(self, features, in_place=False):
        super().__init__()
        self.norm1 = nn.LayerNorm(features)
        self.attn = Attention(features)
        self.norm2 = nn.LayerNorm(features)
        self.mlp = nn.Sequential(nn.Linear(features, 2 * features), nn.GELU(), nn.Linear(2 * features, features))
        self.drop_path = DropPath(0.1)
        self.in_place = in_place

    def forward(self, x):
        if self.in_place:
            x += self.drop_path(self.attn(self.norm1(x)))
            x += self.drop_path(self.mlp(self.norm2(x)))
            return x
        x = x + self.drop_path(self.attn(self.norm1(x)))
        return x + self.drop_path(self.mlp(self.norm2(x)))


class ParallelBlock(EncoderBlock):
    """x + attn(ln(x)) + mlp(ln(x)): one step."""

    def forward(self, x):
        return x + self.attn(self.norm1(x)) + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    """Patches, a class token, positions, blocks, a head."""

    def __init__(self, blocks=3, features=16, patch=8, block=EncoderBlock, **options):
        super().__init__()
        self.patches = nn.Conv2d(3, features, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, features))
        self.positions = nn.Parameter(0.1 * torch.randn(1, 17, features))
        self.blocks = nn.ModuleList([block(features, **options) for _ in range(blocks)])
        self.norm = nn.LayerNorm(features)
        self.head = nn.Linear(features, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1)
        x = x + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class TorchEncoder(nn.Module):
    """torch's own encoder layers, normalised before or after the addition."""

    def __init__(self, norm_first=True, layers=2):
        super().__init__()
        self.embed = nn.Linear(12, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=norm_first, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.encoder(self.embed(x)).mean(1))


class Plain(nn.Module):
    """No residual block anywhere, though it adds."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.shift = nn.Parameter(torch.zeros(4, 1, 1))

    def forward(self, x):
        return (F.relu(self.conv(x)) + self.shift).mean((2, 3))
