"""Random spellings of one normal form, p x + q f_1 + ... + q f_n: sums and products in any nesting."""

import random

import torch
from torch import nn

WIDTH, TOKENS, BLOCKS = 5, 3, 3
SCALES = (1.0, 1.5, 0.75)  # p
SIZES = ("number", "row", "gate")  # what q is


class Nested(nn.Module):
    """A block that spells p x + sum q f_i as the seed says.

    p       a number
    size    what q is: "number" (0.3), "row" (a parameter), "gate" (per channel, from the state)
    count   how many f_i there are
    seed    of the spelling; None: the plainest
    """

    def __init__(self, p, size, count, seed):
        super().__init__()
        self.p, self.size, self.seed = p, size, seed
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(count))
        self.squeeze = nn.Linear(WIDTH, WIDTH)
        self.row = nn.Parameter(torch.linspace(0.2, 0.4, WIDTH))

    def slopes(self, x):
        return [torch.tanh(layer(x)) for layer in self.layers]

    def factor(self, x):
        return {"number": lambda: 0.3, "row": lambda: self.row, "gate": lambda: self.gate(x)}[self.size]()

    def gate(self, x):
        return torch.sigmoid(self.squeeze(x.mean(1, keepdim=True)))

    def forward(self, x):
        q, slopes = self.factor(x), self.slopes(x)
        if self.seed is None:
            return self.p * x + q * sum(slopes)
        choose = random.Random(self.seed)
        parts = [(1.0, total([(q, f) for f in slopes], choose))] if choose.random() < 0.5 else [(q, f) for f in slopes]
        return total([(self.p, x), *parts], choose)


def total(parts, choose):
    """The sum of coefficients times things, spelled at random."""
    parts = list(parts)
    choose.shuffle(parts)
    if choose.random() < 0.2:
        turned = [(c if isinstance(c, float) else c[:, None] if c.ndim == 1 else c.mT, v.mT) for c, v in parts]
        return total(turned, choose).mT
    if choose.random() < 0.2:  # a part is cut in two
        c, v = parts.pop()
        parts += [(0.25 * c, v), (0.75 * c, v)] if choose.random() < 0.5 else [(3 * c, v), (-2 * c, v)]
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
    return choose.choice(ways)()


def network(p, size, count, seed):
    torch.manual_seed(1)
    blocks = [Nested(p, size, count, None if seed is None else 10 * seed + k) for k in range(BLOCKS)]
    return nn.Sequential(*blocks).double(), torch.randn(4, TOKENS, WIDTH, dtype=torch.float64)
