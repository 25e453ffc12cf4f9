"""p x + sum q f_i in any nesting of sums, products and layouts is p (x + h f) with h = q / p and f = sum f_i."""

import hypothesis
import hypothesis.strategies as some
import numpy as np
import torch

import netbridge as nb
from tests.netbridge.foreign.normal_forms import (
    BLOCKS,
    LEAVES,
    NONE_AT_ZERO,
    POSITIVE,
    SCALES,
    SHAPES,
    SIZES,
    TABLEAUS,
    Form,
    literal,
    network,
)


@some.composite
def forms(draw):
    leaves = draw(
        some.one_of(
            some.lists(some.sampled_from(sorted(LEAVES)), min_size=1, max_size=3).map(tuple),
            some.sampled_from(sorted(TABLEAUS)).map(lambda name: (name,)),
        )
    )
    method = leaves[0] in TABLEAUS
    p = draw(some.sampled_from(SCALES[:3] if method else SCALES))
    size = "number" if method else draw(some.sampled_from(SIZES))
    form = Form(p, size, leaves, draw(some.sampled_from(sorted(SHAPES))), draw(some.booleans()))
    hypothesis.assume(not (form.zero and set(leaves) & NONE_AT_ZERO))
    hypothesis.assume(not (size == "full" and set(leaves) & POSITIVE))
    return form


@hypothesis.given(form=forms(), seed=some.integers(0, 10**6))
@hypothesis.settings(deadline=None, max_examples=25)
def test_every_spelling_of_a_normal_form_is_read_alike(form, seed):
    slope, moved, size, output = literal(form)
    net, x = network(form, seed)
    torch.testing.assert_close(net(x), output)  # of the test itself
    both = nb.trace(net, x, of=("slope", "increment"))
    np.testing.assert_allclose(both["slope"].nsi, slope, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(both["increment"].nsi, moved, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(both.step_sizes, size, rtol=1e-9)
    assert both.first.tolist() == [True] + [False] * (BLOCKS - 1)
