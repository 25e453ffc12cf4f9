"""Networks that were always read rightly, each of which says itself what its states and slopes are.

A block calls `note(state, slope)` where it takes its step, which does nothing while it is traced. So the second reading
is of the very maps, at every scale of the data, in every precision, with one image and with several.
"""

import contextlib

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import checkpoint

import netbridge as nb

WIDTH, BLOCKS = 6, 3
NOTED: list = []
LISTENING: list = []


def note(state, slope):
    """Notes the norms of both, sample by sample, and returns the slope."""
    if LISTENING:
        wide = torch.promote_types(state.dtype, torch.float64)
        NOTED.append([torch.linalg.vector_norm(v.detach().to(wide).flatten(1), dim=1) for v in (slope, state)])
    return slope


class Block(nn.Module):
    def __init__(self, how, number):
        super().__init__()
        self.how = how
        self.a, self.b, self.c = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.norm, self.drop = nn.LayerNorm(WIDTH), nn.Dropout(0.3)
        self.row, self.alpha = nn.Parameter(torch.linspace(0.2, 0.7, WIDTH)), nn.Parameter(torch.tensor(0.3 * number))
        self.weighted = parametrizations.weight_norm(nn.Linear(WIDTH, WIDTH))
        self.spectral = parametrizations.spectral_norm(nn.Linear(WIDTH, WIDTH))
        self.attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.memory = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.quantised = torch.ao.nn.quantized.FloatFunctional()

    def forward(self, x):
        return self.how(self, x)

    def f(self, x):
        return torch.tanh(self.a(x))

    def attend(self, x, memory):
        return self.attention(x, memory, memory, need_weights=False)[0]


def assigned(s, x):
    y = x + note(x, s.f(x))
    x[:] = y
    return x


def in_place(s, x):
    x += note(x, s.f(x))
    return F.relu_(x)


def into_memory(s, x):
    out = torch.empty_like(x)
    torch.add(x, note(x, s.f(x)), out=out)
    return out


def parts(s, x):
    found = [s.f(x), torch.sin(s.b(x)), s.c(x)]
    note(x, found[0] + found[1] + found[2])
    return found


def two_steps(s, x):
    x = x + note(x, s.attend(y := s.norm(x), y))
    return x + note(x, s.b(F.gelu(s.a(s.norm(x)))))


RIGHT = {
    "post-activation": lambda s, x: torch.relu(x + note(x, s.f(x))),
    "pre-activation": lambda s, x: x + note(x, s.a(torch.relu(s.norm(x)))),
    "post-norm": lambda s, x: s.norm(x + note(x, s.f(x))),
    "in place": in_place,
    "add_": lambda s, x: x.clone().add_(note(x, s.f(x))),
    "branch in place": lambda s, x: note(x, s.f(x)).clone().add_(x),
    "assigned": assigned,
    "into memory": into_memory,
    "layer scale": lambda s, x: x + s.row * note(x, s.f(x)),
    "drop path": lambda s, x: x + F.dropout(note(x, s.drop(s.f(x))), 0.2, s.training),
    "rezero": lambda s, x: x + s.alpha * note(x, s.f(x)),
    "skip init": lambda s, x: x + 0.2 * note(x, s.f(x / 1.1)) * s.alpha,
    "minus": lambda s, x: x - note(x, s.f(x)),
    "half of a sum": lambda s, x: 0.5**0.5 * (x + note(x, s.f(x))),
    "three branches": lambda s, x: x + (p := parts(s, x))[0] + p[1] + p[2],
    "sum of a list": lambda s, x: sum([x, *parts(s, x)]),
    "stack": lambda s, x: torch.stack([x, *parts(s, x)]).sum(0),
    "checkpoint": lambda s, x: x + note(x, checkpoint(s.f, x, use_reentrant=False)),
    "functional": lambda s, x: s.quantised.add(x, note(x, s.f(x))),
    "weight norm": lambda s, x: x + note(x, torch.tanh(s.weighted(x))),
    "spectral norm": lambda s, x: x + note(x, torch.tanh(s.spectral(x))),
    "where": lambda s, x: x + note(x, torch.where((y := s.a(x)) > 0, y, 0.1 * y)),
    "detached": lambda s, x: x.detach() + note(x, s.f(x)),
    "clamped": lambda s, x: x + note(x, s.a(x).clamp(-1, 1).nan_to_num()),
    "inner residual": lambda s, x: x + note(x, s.f(x + torch.sin(s.b(x)))),
    "attention and perceptron": two_steps,
    "parallel attention": lambda s, x: x + note(x, s.attend(y := s.norm(x), y) + s.f(y)),
    "residual LSTM": lambda s, x: x + note(x, s.memory(x)[0]),
}
NO_HALVES = {"residual LSTM", "spectral norm"}  # which torch itself rounds differently from pass to pass, or refuses


@contextlib.contextmanager
def listening():
    NOTED.clear()
    LISTENING.append(True)
    try:
        yield
    finally:
        LISTENING.clear()


def network(name, dtype):
    torch.manual_seed(4)
    return nn.Sequential(*[Block(RIGHT[name], number) for number in range(BLOCKS)]).to(dtype).eval()


FORMS = [
    (name, dtype)
    for name in RIGHT
    for dtype in (torch.float64, torch.float32, torch.bfloat16)
    if dtype != torch.bfloat16 or name not in NO_HALVES
]
OFTEN = [(torch.float64, 3), (torch.bfloat16, 1)]


@pytest.mark.parametrize(
    ("name", "dtype", "images"),
    [
        pytest.param(*form, images, marks=() if (form[1], images) in OFTEN else pytest.mark.slow)
        for form in FORMS
        for images in (1, 3)
    ],
)
def test_what_was_right_is_what_the_network_says_itself(name, dtype, images):
    net = network(name, dtype)
    for scale in (1e-3, 1.0, 1e3):
        torch.manual_seed(6)
        x = (scale * torch.randn(3, 4, WIDTH, dtype=torch.float64)).to(dtype)[:images]
        with torch.no_grad(), listening():
            net(x.clone())
        wanted = torch.stack([slope / state for slope, state in NOTED], 1)
        # a norm of n numbers sums n squares in at least single precision; a sum of maps is rounded once an element
        norms = torch.promote_types(dtype, torch.float32)
        bound = 4 * x[0].numel() * torch.finfo(norms).eps + 4 * torch.finfo(dtype).eps
        np.testing.assert_allclose(nb.trace(net, x).nsi, wanted, rtol=bound)
