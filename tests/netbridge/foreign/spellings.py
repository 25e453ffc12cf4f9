"""One function in many spellings: whatever is written, state, slope, step size and openings are those of the function.

`GROUPS` maps a name to the shape of a sample, the slope and the step size as functions of block and state, and the
spellings of the block.
"""

import torch
from torch import nn
from torch.nn import functional as F

MAP, TOKENS, VECTOR = (6, 5, 4), (7, 6), (6,)
BLOCKS = 3


class Weights(nn.Module):
    """What blocks are made of, and a block."""

    def __init__(self, how, shape):
        super().__init__()
        self.how = how
        width = shape[0] if len(shape) == 3 else shape[-1]
        layer = (lambda a, b: nn.Conv2d(a, b, 1)) if len(shape) == 3 else nn.Linear
        self.a, self.b, self.c = layer(width, width), layer(width, width), layer(width, width)
        self.halves, self.place = layer(width, 2 * width), layer(width, 1)
        self.squeeze, self.groups = nn.Linear(width, width), nn.Linear(width, 3)
        self.row = nn.Parameter(torch.linspace(0.2, 0.7, width))
        self.step = nn.Parameter(torch.tensor(0.3))
        self.hardswish, self.rms = Hardswish(), Rms(width)

    def forward(self, x):
        return self.how(self, x)

    def k(self, x):
        return torch.tanh(self.a(x))

    def sum_of_two(self, x):
        return torch.tanh(self.a(x)) + torch.sin(self.b(x))

    def channels(self, x):
        """A gate per channel, (N, C, 1, 1)."""
        return torch.sigmoid(self.squeeze(x.mean((2, 3))))[:, :, None, None]

    def places(self, x):
        return torch.sigmoid(self.place(x))

    def grouped(self, x):
        """A gate per group of channels, (N, 3, 1, 1)."""
        return torch.sigmoid(self.groups(x.mean((2, 3))))[:, :, None, None]


class Hardswish(nn.Module):
    def forward(self, a):
        return a * F.relu6(a + 3) / 6


class Rms(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.linspace(0.5, 1.5, width)), 1e-6

    def forward(self, a):
        return a / (a.pow(2).mean(-1, keepdim=True) + self.eps).sqrt() * self.weight


def group_norm(a):
    parts = a.reshape(len(a), 3, -1)
    centred = parts - parts.mean(-1, keepdim=True)
    return (centred * torch.rsqrt(parts.var(-1, keepdim=True, unbiased=False) + 1e-5)).reshape(a.shape)


def in_groups(f):
    return f.unflatten(1, (3, 2))


def stages(s, x, k, h):
    k1 = k(x)
    return k1, k(x + h * k1)


def thirds(s, x, h=0.6):
    k1 = s.k(x)
    k2 = s.k(x + h / 3 * k1)
    k3 = s.k(x + h * (k2 - k1 / 3))
    return k1, k2, k3, s.k(x + h * (k1 - k2 + k3))


def convex(s, x):
    """The slopes of SSP-RK3 with step size 0.4."""
    k1 = s.k(x)
    k2 = s.k(x + 0.4 * k1)
    return k1, k2, s.k(x + 0.1 * (k1 + k2))


def second_stage(s, x):
    return 0.75 * x + 0.25 * ((y := x + 0.4 * s.k(x)) + 0.4 * s.k(y))


def collect(total, *parts):
    for part in parts:
        total += part
    return total


def selected(s, x):
    """Each branch times its own gate, as selective kernels have them."""
    first, second, _ = s.grouped(x).chunk(3, 1)
    return first * s.a(x) + second * s.k(x)


def one(s, x):
    return 1.0


def norm_of(f):
    return torch.linalg.vector_norm(f, dim=-1, keepdim=True)


GROUPS = {
    "hardswish": (TOKENS, lambda s, x: F.hardswish(s.a(x)), one, [
        lambda s, x: x + F.hardswish(s.a(x)),
        lambda s, x: x + s.hardswish(s.a(x)),
        lambda s, x: x + F.hardsigmoid(a := s.a(x)) * a,
    ]),
    "leaky relu": (MAP, lambda s, x: F.leaky_relu(s.a(x), 0.1), one, [
        lambda s, x: x + F.leaky_relu(s.a(x), 0.1),
        lambda s, x: x + (a := s.a(x)) * torch.where(a > 0, a.new_ones(()), a.new_full((), 0.1)),
        lambda s, x: x + torch.maximum(a := s.a(x), 0.1 * a),
    ]),
    "square of relu": (VECTOR, lambda s, x: F.relu(s.a(x)) ** 2, one, [
        lambda s, x: x + F.relu(s.a(x)) ** 2,
        lambda s, x: x + F.relu(a := s.a(x)) * F.relu(a),
        lambda s, x: x + (r := F.relu(s.a(x))).mul(r),
    ]),
    "group norm": (MAP, lambda s, x: group_norm(s.a(x)), one, [
        lambda s, x: x + F.group_norm(s.a(x), 3),
        lambda s, x: x + group_norm(s.a(x)),
    ]),
    "sum of one": (VECTOR, lambda s, x: F.normalize(s.a(x), p=1), one, [
        lambda s, x: x + F.normalize(s.a(x), p=1),
        lambda s, x: x + (a := s.a(x)) / a.abs().sum(-1, keepdim=True),
        lambda s, x: x + (a := s.a(x)) / a.abs().sum(-1, keepdim=True).clamp_min(1e-12).expand_as(a),
    ]),
    "softmax": (TOKENS, lambda s, x: s.a(x).softmax(-1), lambda s, x: s.step, [
        lambda s, x: x + s.step * s.a(x).softmax(-1),
        lambda s, x: x + s.step * ((e := ((a := s.a(x)) - a.amax(-1, keepdim=True)).exp()) / e.sum(-1, keepdim=True)),
        lambda s, x: x + s.step * ((e := s.a(x).exp()) * e.sum(-1, keepdim=True).reciprocal()),
    ]),
    "root mean square": (TOKENS, lambda s, x: s.rms(s.a(x)), lambda s, x: s.row, [
        lambda s, x: x + s.row * F.rms_norm(s.a(x), (6,), s.rms.weight, 1e-6),
        lambda s, x: x + s.rms(s.a(x)) * s.row,
    ]),
    "two gates": (MAP, lambda s, x: s.a(x), lambda s, x: s.channels(x) * s.places(x), [
        lambda s, x: x + (s.channels(x) * s.places(x)) * s.a(x),
        lambda s, x: x + s.channels(x) * (s.places(x) * s.a(x)),
        lambda s, x: x + s.a(x) * s.channels(x) * s.places(x),
        lambda s, x: x + s.a(x).mul(s.channels(x)).mul(s.places(x).expand_as(x)),
    ]),
    "gate and one less": (MAP, lambda s, x: s.a(x), lambda s, x: s.channels(x), [
        lambda s, x: x + s.channels(x) * s.a(x),
        lambda s, x: x + ((f := s.a(x)) + (s.channels(x) - 1) * f),
        lambda s, x: x + ((f := s.a(x)) - (1 - s.channels(x)) * f),
        lambda s, x: x + (f := s.a(x)) - f * (1 - s.channels(x)),
        lambda s, x: x - s.channels(x) * -s.a(x),
    ]),
    "gate of a group": (MAP, lambda s, x: s.a(x), lambda s, x: s.grouped(x).repeat_interleave(2, 1), [
        lambda s, x: x + (in_groups(s.a(x)) * s.grouped(x)[:, :, None]).flatten(1, 2),
        lambda s, x: x + s.a(x) * s.grouped(x).repeat_interleave(2, 1),
        lambda s, x: x + s.a(x) * s.grouped(x)[:, :, None].expand(-1, -1, 2, 5, 4).reshape(x.shape),
    ]),
    "linear gate": (TOKENS, lambda s, x: s.halves(x)[..., :6], lambda s, x: torch.sigmoid(s.halves(x)[..., 6:]), [
        lambda s, x: x + F.glu(s.halves(x)),
        lambda s, x: x + (p := s.halves(x).chunk(2, -1))[0] * torch.sigmoid(p[1]),
        lambda s, x: x + (y := s.halves(x))[..., :6] / (1 + torch.exp(-y[..., 6:])),
        lambda s, x: x + (y := s.halves(x))[..., :6] * torch.special.expit(y[..., 6:]),
    ]),
    "bounded step": (VECTOR, lambda s, x: s.a(x), lambda s, x: 1 / (1 + norm_of(s.a(x))), [
        lambda s, x: x + (f := s.a(x)) / (1 + norm_of(f)),
        lambda s, x: x + (1 / (1 + norm_of(f := s.a(x)))) * f,
        lambda s, x: torch.addcdiv(x, f := s.a(x), 1 + norm_of(f)),
        lambda s, x: x + (f := s.a(x)) * (1 + norm_of(f)).reciprocal().expand_as(f),
    ]),
    "swish of a product": (VECTOR, lambda s, x: F.silu(s.a(x)) * s.b(x), one, [
        lambda s, x: x + F.silu(s.a(x)) * s.b(x),
        lambda s, x: x + (a := s.a(x)) * (s.b(x) * torch.sigmoid(a)),
        lambda s, x: x + ((a := s.a(x)) * s.b(x)) * torch.sigmoid(a),
    ]),
    "one and a half": (VECTOR, lambda s, x: s.k(x), lambda s, x: 2 / 3, [
        lambda s, x: 1.5 * x + s.k(x),
        lambda s, x: x + (0.5 * x + s.k(x)),
        lambda s, x: (x + s.k(x)) + 0.5 * x,
        lambda s, x: 2 * x - 0.5 * x + s.k(x),
    ]),
    "Heun of a sum": (VECTOR, lambda s, x: sum(stages(s, x, s.sum_of_two, 0.4)) / 2, lambda s, x: 0.4, [
        lambda s, x: x + 0.2 * sum(stages(s, x, s.sum_of_two, 0.4)),
        lambda s, x: x + 0.4 * ((k := stages(s, x, s.sum_of_two, 0.4))[0] / 2 + k[1] / 2),
        lambda s, x: x + 0.2 * (k := stages(s, x, s.sum_of_two, 0.4))[0] + 0.2 * k[1],
        lambda s, x: x / 2 + ((y := x + 0.4 * s.sum_of_two(x)) + 0.4 * s.sum_of_two(y)) / 2,
        lambda s, x: ((y := x + 0.4 * s.sum_of_two(x)) + x + 0.4 * s.sum_of_two(y)) * 0.5,
    ]),
    "Heun with one": (VECTOR, lambda s, x: sum(stages(s, x, s.k, 1.0)) / 2, one, [
        lambda s, x: x + sum(stages(s, x, s.k, 1.0)) / 2,
        lambda s, x: x + 0.5 * (k := stages(s, x, s.k, 1.0))[0] + 0.5 * k[1],
        lambda s, x: x.add((k := stages(s, x, s.k, 1.0))[0], alpha=0.5).add(k[1], alpha=0.5),
    ]),
    "learned Heun": (VECTOR, lambda s, x: sum(stages(s, x, s.k, s.step)) / 2, lambda s, x: s.step, [
        lambda s, x: x + s.step * (sum(stages(s, x, s.k, s.step)) / 2),
        lambda s, x: x + s.step / 2 * sum(stages(s, x, s.k, s.step)),
        lambda s, x: x + s.step / 2 * (k := stages(s, x, s.k, s.step))[0] + s.step / 2 * k[1],
        lambda s, x: torch.lerp(x, (y := x + s.step * s.k(x)) + s.step * s.k(y), 0.5),
    ]),
    "three stages": (VECTOR, lambda s, x: (sum((k := convex(s, x))[:2]) + 4 * k[2]) / 6, lambda s, x: 0.4, [
        lambda s, x: x + 0.4 / 6 * (sum((k := convex(s, x))[:2]) + 4 * k[2]),
        lambda s, x: x / 3 + 2 / 3 * ((z := second_stage(s, x)) + 0.4 * s.k(z)),
        lambda s, x: (x + (z := second_stage(s, x)) + (z + 0.8 * s.k(z))) / 3,
    ]),
    "three eighths": (VECTOR, lambda s, x: sum(w * k for w, k in zip((1, 3, 3, 1), thirds(s, x), strict=True)) / 8,
                      lambda s, x: 0.6, [
        lambda s, x: x + 0.6 / 8 * ((k := thirds(s, x))[0] + 3 * (k[1] + k[2]) + k[3]),
        lambda s, x: x + ((k := thirds(s, x))[0] + 3 * (k[1] + k[2]) + k[3]) * 0.6 * 0.125,
        lambda s, x: x + 0.075 * (k := thirds(s, x))[0] + 0.225 * k[1] + 0.225 * k[2] + 0.075 * k[3],
    ]),
    "gated unit": (VECTOR, lambda s, x: s.k(x) - x, lambda s, x: torch.sigmoid(s.b(x)), [
        lambda s, x: torch.lerp(x, s.k(x), torch.sigmoid(s.b(x))),
        lambda s, x: torch.sigmoid(-(b := s.b(x))) * x + torch.sigmoid(b) * s.k(x),
        lambda s, x: x - (z := torch.sigmoid(s.b(x))) * x + z * s.k(x),
        lambda s, x: x - torch.sigmoid(s.b(x)) * (x - s.k(x)),
        lambda s, x: (1 - torch.sigmoid(s.b(x))) * x + torch.sigmoid(s.b(x)) * s.k(x),
    ]),
    "the state mixed with the next one": (MAP, lambda s, x: s.a(x), lambda s, x: s.channels(x), [
        lambda s, x: x + s.channels(x) * s.a(x),
        lambda s, x: torch.lerp(x, x + s.a(x), s.channels(x)),
        lambda s, x: (z := s.channels(x)) * (x + s.a(x)) + (1 - z) * x,
        lambda s, x: (z := s.channels(x)) * x + (x - z * x) + z * s.a(x),
    ]),
    "mean": (VECTOR, lambda s, x: s.k(x) - x, lambda s, x: 0.5, [
        lambda s, x: torch.lerp(x, s.k(x), 0.5),
        lambda s, x: 0.5 * x + 0.5 * s.k(x),
        lambda s, x: (x + s.k(x)) / 2,
        lambda s, x: x / 2 + s.k(x) / 2,
    ]),
    "two branches and a gate": (MAP, lambda s, x: s.a(x) + s.b(x).tanh(), lambda s, x: s.channels(x), [
        lambda s, x: x + s.channels(x) * (s.a(x) + s.b(x).tanh()),
        lambda s, x: x + (g := s.channels(x)) * s.a(x) + g * s.b(x).tanh(),
        lambda s, x: x + s.channels(x) * s.a(x) + s.channels(x) * s.b(x).tanh(),
        lambda s, x: x + s.channels(x) * collect(torch.zeros_like(x), s.a(x), s.b(x).tanh()),
        lambda s, x: collect(collect(x.new_zeros(x.shape), x), (g := s.channels(x)) * s.a(x), g * s.b(x).tanh()),
    ]),
    "number in a sum of zeros": (VECTOR, lambda s, x: s.a(x) + s.k(x), lambda s, x: 0.3, [
        lambda s, x: x + 0.3 * (s.a(x) + s.k(x)),
        lambda s, x: x + torch.zeros(x.shape, dtype=x.dtype).add_(s.a(x), alpha=0.3).add_(s.k(x), alpha=0.3),
    ]),
    "one gate of three for each branch": (MAP, lambda s, x: selected(s, x), one, [
        lambda s, x: x + selected(s, x),
        lambda s, x: x + (w := s.grouped(x))[:, 0:1] * s.a(x) + w[:, 1:2] * s.k(x),
        lambda s, x: x + (w := s.grouped(x).flatten(1))[:, 0, None, None, None] * s.a(x)
                     + w[:, 1, None, None, None] * s.k(x),
        lambda s, x: x + (w := s.grouped(x).unbind(1))[0][:, None] * s.a(x) + w[1][:, None] * s.k(x),
    ]),
    "entries of a parameter": (VECTOR, lambda s, x: s.row[0] * s.a(x) + s.row[1] * s.k(x), one, [
        lambda s, x: x + s.row[0] * s.a(x) + s.row[1] * s.k(x),
        lambda s, x: x + (s.row[:2, None, None] * torch.stack([s.a(x), s.k(x)])).sum(0),
    ]),
    "entries that add up to less": (VECTOR, lambda s, x: s.k(x), lambda s, x: s.row[3] / (1 - s.row[1]), [
        lambda s, x: (1 - s.row[1]) * x + s.row[3] * s.k(x),
    ]),
    "layer norm": (TOKENS, lambda s, x: F.layer_norm(s.a(x), (6,)), one, [
        lambda s, x: x + F.layer_norm(s.a(x), (6,)),
        lambda s, x: x + ((f := s.a(x)) - (v := torch.var_mean(f, -1, correction=0, keepdim=True))[1])
                     / (v[0] + 1e-5).sqrt(),
        lambda s, x: x + ((f := s.a(x)) - (v := torch.std_mean(f, dim=-1, correction=0, keepdim=True))[1])
                     / (v[0] ** 2 + 1e-5).sqrt(),
    ]),
    "channels last": (MAP, lambda s, x: s.a(x), lambda s, x: s.row[:, None, None] * s.channels(x), [
        lambda s, x: x + s.row[:, None, None] * (s.channels(x) * s.a(x)),
        lambda s, x: x + (s.row * (s.channels(x) * s.a(x)).permute(0, 2, 3, 1)).permute(0, 3, 1, 2),
        lambda s, x: (x.permute(0, 2, 3, 1) + s.row * (s.channels(x) * s.a(x)).permute(0, 2, 3, 1)).permute(0, 3, 1, 2),
        lambda s, x: x + (s.channels(x).flatten(1)[:, None] * s.row * s.a(x).flatten(2).mT).mT.unflatten(2, (5, 4)),
    ]),
}  # fmt: skip
SPELLINGS = [(name, number) for name, (*_, ways) in GROUPS.items() for number in range(len(ways))]


def network(name, number, dtype=torch.float64, zero=False):
    """Blocks of a spelling, and a batch of three samples."""
    shape, *_, ways = GROUPS[name]
    torch.manual_seed(3)
    net = nn.Sequential(*[Weights(ways[number], shape) for _ in range(BLOCKS)]).eval()
    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.ndim > 1:
                parameter.mul_(2.0)
        for block in net if zero else ():
            for parameter in block.a.parameters():
                parameter.zero_()
    torch.manual_seed(5)
    return net.to(dtype), torch.randn(3, *shape, dtype=torch.float64).to(dtype)


def literal(name, net, x):
    """||f|| / ||x||, ||x' - x|| / ||x|| and the mean of h, each (N, T), and what the network returns."""
    _, slope, size, ways = GROUPS[name]
    rows = []
    with torch.no_grad():
        for block in net:
            new, f = ways[0](block, x), slope(block, x)
            h = torch.as_tensor(size(block, x), dtype=x.dtype)
            h = h.expand(x.shape) if h.ndim < x.ndim or len(h) == len(x) else h
            rows.append([norm(f) / norm(x), norm(new - x) / norm(x), h.flatten(1).mean(1)])
            x = new
    return *(torch.stack(column, 1).double().numpy() for column in zip(*rows, strict=True)), x


def norm(v):
    return torch.linalg.vector_norm(v.flatten(1), dim=1)
