"""A grammar of residual networks as people write them, and their indices taken literally by hooks in double precision.

`networks()` is a Hypothesis strategy; `literal` computes what a trace of the network must find. Every block is drawn
from lists of spellings: how the branch is computed, what multiplies it, how it is added, what follows, and what a
forward pass does beside that. Whatever is found by searching longer (`make explore`) belongs here as a spelling.
"""

import hypothesis.strategies as some
import torch
from torch import nn
from torch.nn import functional as F

FEATURES = 6


class Slope(nn.Module):
    """f: what a hook on it sees is the slope."""

    def __init__(self, how):
        super().__init__()
        self.how = how
        self.norm = nn.LayerNorm(FEATURES)
        self.first, self.second = nn.Linear(FEATURES, 9), nn.Linear(9, FEATURES)
        self.table = None

    def forward(self, x):
        return BRANCHES[self.how](self, x)


def perceptron(s, x):
    return s.second(torch.tanh(s.first(s.norm(x))))


def cached(s, x):
    if s.table is None:
        s.table = s.second.weight.t().contiguous()
    return torch.relu(s.first(x)) @ s.table


def attention(s, x):
    tokens = x.reshape(len(x), -1, FEATURES)
    weights = (tokens @ tokens.transpose(1, 2) / FEATURES**0.5).softmax(-1)
    return s.second(F.gelu(s.first(weights @ tokens))).reshape(x.shape)


def gated(s, x):
    inner, gate = s.first(x), torch.sigmoid(s.first(s.norm(x)))
    return s.second(inner * gate)


def ending(s, x, end):
    return end(s.second(torch.tanh(s.first(x))))


BRANCHES = {
    "swish by hand": lambda s, x: ending(s, x, lambda a: a * torch.sigmoid(a)),
    "root mean square by hand": lambda s, x: ending(s, x, lambda a: a * a.pow(2).mean(-1, keepdim=True).rsqrt()),
    "softmax by hand": lambda s, x: ending(s, x, lambda a: a.exp() / a.exp().sum(-1, keepdim=True)),
    "perceptron": perceptron,
    "in place": lambda s, x: s.second(torch.relu_(s.first(x))),
    "cached": cached,
    "chunked": lambda s, x: torch.cat([s.second(torch.tanh(s.first(part))) for part in x.split(2)]),
    "inner residual": lambda s, x: s.second(torch.tanh(s.first(x + torch.tanh(s.norm(x))))),
    "attention": attention,
    "gated inside": gated,
    "branching": lambda s, x: s.second(s.first(x).abs()) if x.mean() > 1e3 else s.second(torch.tanh(s.first(x))),
}

# what multiplies the slope y: (factor as written, its value where all of it is known)
FACTORS = {
    "nothing": lambda b, y: y,
    "number": lambda b, y: 0.3 * y,
    "number behind": lambda b, y: y * 0.3,
    "quotient": lambda b, y: y / 3,
    "scalar": lambda b, y: b.scalar * y,
    "row": lambda b, y: y * b.row,
    "two": lambda b, y: 0.5 * (b.row * y),
    "in place": lambda b, y: y.clone().mul_(b.row),
    "quotient of rows": lambda b, y: y.div(b.row),
    "minus": lambda b, y: -(b.row * y),
    "gate": lambda b, y: (
        y
        * torch.sigmoid(
            b.squeeze(y.flatten(1, -2).mean(1) if y.ndim > 2 else y.mean(1, keepdim=True).expand(-1, FEATURES))
        ).reshape(len(y), *[1] * (y.ndim - 2), -1)
    ),
    "gate in full": lambda b, y: y * torch.sigmoid(b.squeeze(y).mean(-1, keepdim=True)).expand_as(y).contiguous(),
    "gate of ones": lambda b, y: (torch.ones_like(y) * torch.sigmoid(b.squeeze(y).mean(-1, keepdim=True))) * y,
    "gate written twice": lambda b, y: y + y * (torch.sigmoid(b.squeeze(y).mean(-1, keepdim=True)) - 1.0),
    "bounded step": lambda b, y: y / (1.0 + y.norm(dim=-1, keepdim=True)),
    "dropout": lambda b, y: F.dropout(b.row * y, 0.3, b.training),
    "reshaped": lambda b, y: (b.row * y).reshape(len(y), -1).reshape(y.shape),
    "like": lambda b, y: (b.row * y).to(y),
}

# how a branch that is multiplied already is added to the state
SUMS = {
    "x + y": lambda x, y: x + y,
    "y + x": lambda x, y: y + x,
    "x - (-y)": lambda x, y: x - (-y),
    "x - y": lambda x, y: x - y,
    "add": torch.add,
    "alpha": lambda x, y: torch.add(x, y, alpha=0.7),
    "sub alpha": lambda x, y: x.sub(y, alpha=0.7),
    "in place": lambda x, y: x.clone().add_(y),
    "iadd": lambda x, y: iadd(x.clone(), y),
    "branch in place": lambda x, y: iadd(y.clone(), x),
    "addcmul": lambda x, y: torch.addcmul(x, y, torch.full_like(y[:1], 0.6)),
    "sum": lambda x, y: sum([x, y]),
    "stack": lambda x, y: torch.stack([x, y]).sum(0),
    "stack behind": lambda x, y: torch.stack((y, x), dim=1).sum(dim=1),
    "float": lambda x, y: x.to(y.dtype) + y.contiguous(),
    "like": lambda x, y: x + y.type_as(x).view_as(x),
    "reshaped": lambda x, y: (x.flatten(1) + y.flatten(1)).view(x.shape),
    "in a view": lambda x, y: changed(x.clone(), lambda u: u.flatten(1).add_(y.flatten(1))),
}

# what follows the sum
TAILS = {
    "nothing": lambda b, x: x,
    "relu": lambda b, x: torch.relu(x) + 0.0,
    "relu in place": lambda b, x: F.relu(x, inplace=True),
    "norm": lambda b, x: b.norm(x),
}

# what a pass does beside its result
HABITS = {
    "nothing": lambda b, x: None,
    "counts": lambda b, x: setattr(b, "calls", b.calls + 1),
    "first call": lambda b, x: setattr(b, "calls", 1) or x.abs() if b.calls == 0 else None,
    "keeps": lambda b, x: b.kept.append(x),
    "by size": lambda b, x: x.square() if len(x) > 3 else None,
    "draws": lambda b, x: torch.rand(2),
}


def iadd(x, y):
    x += y
    return x


def changed(x, change):
    change(x)
    return x


class Block(nn.Module):
    def __init__(self, spelling):
        super().__init__()
        self.spelling = spelling
        branch, self.factor, self.sum, self.tail, self.habit = spelling
        self.f = Slope(branch)
        self.squeeze, self.norm = nn.Linear(FEATURES, FEATURES), nn.LayerNorm(FEATURES)
        self.scalar = nn.Parameter(torch.tensor(0.4))
        self.row = nn.Parameter(torch.rand(FEATURES) + 0.5)
        self.calls, self.kept = 0, []

    def forward(self, x):
        HABITS[self.habit](self, x)
        return TAILS[self.tail](self, SUMS[self.sum](x, FACTORS[self.factor](self, self.f(x))))


@some.composite
def networks(draw):
    """(network, batch): two to four blocks between two linear layers, on vectors, on tokens or on maps."""
    spelling = some.tuples(*(some.sampled_from(sorted(kind)) for kind in (BRANCHES, FACTORS, SUMS, TAILS, HABITS)))
    spellings = draw(some.lists(spelling, min_size=2, max_size=4))
    shape = draw(some.sampled_from([(), (3,), (2, 4)]))
    images = draw(some.integers(1, 7))
    with torch.random.fork_rng():
        torch.manual_seed(draw(some.integers(0, 1000)))
        blocks = [Block(spelling) for spelling in spellings]
        net = nn.Sequential(nn.Linear(FEATURES, FEATURES), *blocks, nn.Linear(FEATURES, 3)).double()
        return net, torch.randn(images, *shape, FEATURES, dtype=torch.float64)


def literal(net, x) -> torch.Tensor:
    """||f|| / ||x|| of every block, (N, T), from hooks on the blocks and on their slopes."""
    net = net.eval()
    blocks = [module for module in net.modules() if isinstance(module, Block)]
    states, slopes, handles = [], [], []
    for block in blocks:
        handles.append(block.register_forward_pre_hook(lambda m, args: states.append(args[0].clone())))
        handles.append(block.f.register_forward_hook(lambda m, args, out: slopes.append(out.clone())))
    with torch.no_grad():
        net(x)
    for handle in handles:
        handle.remove()
    norms = [[torch.linalg.vector_norm(v.flatten(1), dim=1) for v in values] for values in (slopes, states)]
    return torch.stack([f / u for f, u in zip(*norms, strict=True)], 1)
