"""Random spellings of one normal form, p x + q_1 f_1 + ... + q_n f_n: what there is of sums, products, quotients,
layouts, gates, activations, normalisations and tableaus in any nesting.

A `Form` says what is computed, a seed how it is written. `literal` computes state, slope and step size by formulas.
"""

import random
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, BLOCKS, EPS = 5, 3, 1e-6
SHAPES = {"vector": (WIDTH,), "tokens": (3, WIDTH), "map": (WIDTH, 4, 2)}
SCALES = (1.0, 1.5, 0.75, "rest")  # p; "rest": 1 - q, so that x and the sum of the f_i are mixed
SIZES = ("number", "scalar", "row", "gate", "place", "gate and row", "full")  # what q is
STEP = 0.4  # of the methods below


class Form(NamedTuple):
    """What a block computes.

    p       a number of `SCALES`
    size    q, of `SIZES`; of a tableau a number
    leaves  names of `LEAVES`; or one of `TABLEAUS`
    shape   of `SHAPES`
    zero    whether the layers behind the leaves begin with zeros
    """

    p: object
    size: str
    leaves: tuple[str, ...]
    shape: str
    zero: bool = False


def mean(v):
    return v.mean(-1, keepdim=True)


class Gelu(nn.Module):
    def forward(self, a):
        return 0.5 * a * (1.0 + torch.erf(a / 2**0.5))


class Rms(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 1.5, WIDTH))

    def forward(self, a):
        return self.weight * (a * torch.rsqrt(mean(a.pow(2)) + EPS))


# f as a function of a, a linear map of its argument: by torch's name first, then by hand; features are the last axis
LEAVES = {
    "tanh": [lambda b, a: torch.tanh(a), lambda b, a: 2.0 * torch.sigmoid(2.0 * a) - 1.0],
    "linear": [lambda b, a: a],
    "silu": [
        lambda b, a: F.silu(a),
        lambda b, a: a * torch.sigmoid(a),
        lambda b, a: a / (1.0 + torch.exp(-a)),
        lambda b, a: torch.sigmoid(a).mul(a),
    ],
    "mish": [lambda b, a: F.mish(a), lambda b, a: a * torch.tanh(F.softplus(a))],
    "relu": [lambda b, a: F.relu(a), lambda b, a: a * (a > 0), lambda b, a: a.clamp(min=0)],
    "softsign": [
        lambda b, a: F.softsign(a),
        lambda b, a: a / (1 + a.abs()),
        lambda b, a: a * (1 + a.abs()).reciprocal(),
    ],
    "gelu": [lambda b, a: F.gelu(a), lambda b, a: b.gelu(a)],
    "square": [lambda b, a: a.square(), lambda b, a: a * a, lambda b, a: a**2],
    "rms norm": [lambda b, a: F.rms_norm(a, (WIDTH,), b.rms.weight, EPS), lambda b, a: b.rms(a)],
    "layer norm": [
        lambda b, a: F.layer_norm(a, (WIDTH,), eps=EPS),
        lambda b, a: (a - mean(a)) / (a.var(-1, correction=0, keepdim=True) + EPS).sqrt(),
        lambda b, a: (c := a - mean(a)) * torch.rsqrt(mean(c * c) + EPS),
    ],
    "softmax": [
        lambda b, a: a.softmax(-1),
        lambda b, a: (e := (a - a.amax(-1, keepdim=True)).exp()) / e.sum(-1, keepdim=True),
    ],
    "length one": [
        lambda b, a: F.normalize(a, dim=-1),
        lambda b, a: a / a.norm(dim=-1, keepdim=True),
        lambda b, a: a * a.norm(dim=-1, keepdim=True).expand_as(a).reciprocal(),
    ],
}  # fmt: skip
NONE_AT_ZERO = {"length one"}  # not defined where a is zero
POSITIVE = {"softmax"}  # between 0 and 1, as a gate is: beside one of full size neither is the step size

# weights of the stages, and of the argument of each stage those of the stages before it
TABLEAUS = {
    "heun": ((1 / 2, 1 / 2), ((), (1.0,))),
    "kutta": ((1 / 6, 2 / 3, 1 / 6), ((), (1 / 2,), (-1.0, 2.0))),
    "rk4": ((1 / 6, 1 / 3, 1 / 3, 1 / 6), ((), (1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0))),
    "three eighths": ((1 / 8, 3 / 8, 3 / 8, 1 / 8), ((), (1 / 3,), (-1 / 3, 1.0), (1.0, -1.0, 1.0))),
}


class Nested(nn.Module):
    """A block that spells a form as the seed says; None: the plainest way."""

    def __init__(self, form, seed):
        super().__init__()
        self.form, self.seed = form, seed
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in form.leaves)
        self.squeeze, self.place = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 1)
        self.row, self.scalar = nn.Parameter(torch.linspace(0.2, 0.4, WIDTH)), nn.Parameter(torch.tensor(0.35))
        self.gelu, self.rms = Gelu(), Rms()
        if form.zero:
            for parameter in self.layers.parameters():
                nn.init.zeros_(parameter)

    def forward(self, x):
        choose = None if self.seed is None else random.Random(self.seed)
        parts = self.parts(x, choose)
        if choose is None:
            return sum(c * v for c, v in parts)
        if self.form.leaves[0] not in TABLEAUS and choose.random() < 0.4:  # what multiplies all is written once
            state, (q, _), *_ = parts
            parts = [state, (q, total([(1.0, f) for _, f in parts[1:]], choose))]
        return total(parts, choose)

    def parts(self, x, choose):
        """The summands (coefficient, thing), the state first."""
        slopes, q = self.slopes(x, choose)
        p = 1.0 - q[0] if self.form.p == "rest" else self.form.p
        return [(p, x), *zip(q, slopes, strict=True)]

    def slopes(self, x, choose):
        """The f_i, and their coefficients."""
        form = self.form
        if form.leaves[0] in TABLEAUS:
            weights, arguments = TABLEAUS[form.leaves[0]]
            slopes = []
            for row in arguments:
                known = [(STEP * a, k) for a, k in zip(row, slopes, strict=True) if a]
                u = total([(1.0, x), *known], choose) if choose else sum((a * k for a, k in known), start=x)
                slopes.append(self.leaf("tanh", self.layers[0], u, None) + torch.sin(u))
            return slopes, [STEP * w for w in weights]
        slopes = [self.leaf(name, layer, x, choose) for name, layer in zip(form.leaves, self.layers, strict=True)]
        return slopes, [self.size(x)] * len(slopes)

    def leaf(self, name, layer, x, choose):
        turned = self.form.shape == "map"
        a = layer(x.permute(0, 2, 3, 1) if turned else x)
        f = (LEAVES[name][0] if choose is None else choose.choice(LEAVES[name]))(self, a)
        return f.permute(0, 3, 1, 2) if turned else f

    def size(self, x):
        """q, with as many axes as x, or a number."""
        features = 1 if x.ndim == 4 else -1
        y = x.movedim(features, -1)
        pooled = y.flatten(1, -2).mean(1).reshape(len(y), *[1] * (y.ndim - 2), -1) if y.ndim > 2 else mean(y)
        squeezed = torch.sigmoid(self.squeeze(pooled) if y.ndim > 2 else self.place(y))
        found = {
            "number": lambda: 0.3,
            "scalar": lambda: self.scalar,
            "row": lambda: self.row.reshape(*[1] * (y.ndim - 1), -1),
            "gate": lambda: squeezed,
            "place": lambda: torch.sigmoid(self.place(y)),
            "gate and row": lambda: squeezed * self.row,
            "full": lambda: torch.sigmoid(self.squeeze(y)),
        }[self.form.size]()
        return found.movedim(-1, features) if isinstance(found, torch.Tensor) and found.ndim else found


def total(parts, choose):
    """The sum of coefficients times things, spelled at random."""
    parts = list(parts)
    choose.shuffle(parts)
    if choose.random() < 0.2:
        turn, back = choose.choice(turns(parts[0][1].ndim))
        turned = [(turn(c) if isinstance(c, torch.Tensor) and c.ndim else c, turn(v)) for c, v in parts]
        return back(total(turned, choose))
    if choose.random() < 0.2:  # a part is cut in two
        c, v = parts.pop()
        gate = isinstance(c, torch.Tensor) and c.shape == v.shape  # which is known by its lying between 0 and a bound
        parts += [(0.25 * c, v), (0.75 * c, v)] if gate or choose.random() < 0.5 else [(3 * c, v), (-2 * c, v)]
    if len(parts) == 1:
        return product(*parts[0], choose)
    cut = choose.randrange(1, len(parts))
    left, (last, *others) = total(parts[:cut], choose), parts[cut:]
    if not others and choose.random() < 0.5:
        c, v = last
        tensor = c if isinstance(c, torch.Tensor) else torch.full((1,), c, dtype=v.dtype)
        if isinstance(c, float) and choose.random() < 0.3:
            return torch.add(left, v, alpha=c)
        return torch.addcmul(left, v, tensor) if choose.random() < 0.5 else torch.addcdiv(left, v, 1 / tensor)
    right = total(parts[cut:], choose)
    ways = [
        lambda: left + right,
        lambda: right + left,
        lambda: left - (-right),
        lambda: -(-left - right),
        lambda: torch.add(left, right * 2.0, alpha=0.5),
        lambda: left.clone().add_(right),
        lambda: sum([left, right]),
        lambda: torch.stack([left, right]).sum(0),
        lambda: torch.stack([right, left], -1).sum(-1),
        lambda: 0.5 * (2.0 * left + right / 0.5),
        lambda: (left / 4 + right * 0.25).mul_(4.0),
        lambda: 2.0 * torch.lerp(left, right, 0.5),
    ]
    return choose.choice(ways)()


def turns(dimensions):
    """Changes of layout that keep how things broadcast, and back."""
    if dimensions == 2:
        return [(lambda v: v[:, None], lambda v: v[:, 0]), (lambda v: v.unsqueeze(-1), lambda v: v.squeeze(-1))]
    if dimensions == 3:
        return [(lambda v: v.mT, lambda v: v.mT), (lambda v: v.unsqueeze(2), lambda v: v.squeeze(2))]
    return [
        (lambda v: v.permute(0, 2, 3, 1), lambda v: v.permute(0, 3, 1, 2)),
        (lambda v: v.movedim(2, 1), lambda v: v.movedim(1, 2)),
        (lambda v: v.transpose(-1, -2), lambda v: v.transpose(-1, -2)),
    ]


def product(c, v, choose):
    """A coefficient times a thing, spelled at random."""
    ways = [
        lambda: c * v,
        lambda: v * c,
        lambda: v / (1.0 / c),
        lambda: -(c * -v),
        lambda: (v * 2.0) * c / 2.0,
        lambda: v.clone().mul_(c),
        lambda: (v.flatten(1) * 1.0).view_as(v) * c,
    ]
    if isinstance(c, torch.Tensor) and c.ndim:
        times = [wide // narrow for wide, narrow in zip(v.shape, c.shape, strict=True)]
        ways += [
            lambda: c.expand_as(v) * v,
            lambda: v * c.repeat(times),
            lambda: v * torch.tile(c, times),
            lambda: (c * torch.ones_like(v)) * v,
            lambda: (c.expand_as(v).flatten(1) * v.flatten(1)).view_as(v),
            lambda: v - (1.0 - c) * v,
            lambda: v + v * (c - 1.0),
        ]
        if v.ndim == 4 and c.shape[2:] == (1, 1):
            ways.append(lambda: F.interpolate(c.expand(len(v), -1, -1, -1), size=v.shape[2:]) * v)
    return choose.choice(ways)()


def network(form, seed):
    """Blocks of a form, and a batch of samples."""
    torch.manual_seed(1)
    blocks = [Nested(form, None if seed is None else 10 * seed + k) for k in range(BLOCKS)]
    return nn.Sequential(*blocks).double().eval(), torch.randn(4, *SHAPES[form.shape], dtype=torch.float64)


def literal(form):
    """||f|| / ||x||, ||x' - x|| / ||x|| and the mean of h, each (N, T), and what the network returns."""
    net, x = network(form, None)
    rows = []
    with torch.no_grad():
        for block in net:
            (p, _), *others = block.parts(x, None)
            if form.leaves[0] in TABLEAUS:
                h = torch.tensor(STEP, dtype=x.dtype)
                slope = sum(q * f for q, f in others) / STEP
            else:
                h, slope = torch.as_tensor(others[0][0], dtype=x.dtype), sum(f for _, f in others)
            slope, h = (slope - x, h) if form.p == "rest" else (slope, h / p)
            new = block(x)
            rows.append([norm(slope) / norm(x), norm(new - x) / norm(x), h.expand(x.shape).flatten(1).mean(1)])
            x = new
    return *(torch.stack(column, 1).numpy() for column in zip(*rows, strict=True)), x


def norm(v):
    return torch.linalg.vector_norm(v.flatten(1), dim=1)
