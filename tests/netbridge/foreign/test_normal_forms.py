"""p x + sum q f_i in any nesting of sums, products and layouts is p (x + h f) with h = q / p and f = sum f_i."""

import itertools

import hypothesis
import hypothesis.strategies as some
import numpy as np
import torch

import netbridge as nb
from tests.netbridge.foreign.normal_forms import BLOCKS, SCALES, SIZES, network


@hypothesis.given(
    p=some.sampled_from(SCALES), size=some.sampled_from(SIZES), count=some.integers(1, 3), seed=some.integers(0, 10**6)
)
@hypothesis.settings(deadline=None, max_examples=60)
def test_every_spelling_of_a_normal_form_is_read_alike(p, size, count, seed):
    net, x = network(p, size, count, seed)
    states, slopes, sizes = [x], [], []
    with torch.no_grad():
        for block in network(p, size, count, None)[0]:
            u = states[-1]
            slopes.append(sum(block.slopes(u)))
            sizes.append(torch.as_tensor(block.factor(u), dtype=u.dtype).expand(u.shape).flatten(1).mean(1) / p)
            states.append(block(u))
        torch.testing.assert_close(net(x), states[-1])  # of the test itself
    both = nb.trace(net, x, of=("slope", "increment"))
    norms = [np.stack([v.flatten(1).norm(dim=1).numpy() for v in some], 1) for some in (slopes, states[:-1])]
    moved = np.stack([(b - a).flatten(1).norm(dim=1).numpy() for a, b in itertools.pairwise(states)], 1)
    np.testing.assert_allclose(both["slope"].nsi, norms[0] / norms[1], rtol=1e-9)
    np.testing.assert_allclose(both["increment"].nsi, moved / norms[1], rtol=1e-9)
    np.testing.assert_allclose(both.step_sizes, torch.stack(sizes, 1), rtol=1e-9)
    assert both.first.tolist() == [True] + [False] * (BLOCKS - 1)
