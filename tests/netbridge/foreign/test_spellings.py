"""The rule of docs/tracing.md, by function and not by spelling."""

import numpy as np
import pytest
import torch

import netbridge as nb
from tests.netbridge.foreign.spellings import BLOCKS, GROUPS, SPELLINGS, literal, network


@pytest.mark.parametrize(("name", "number"), SPELLINGS)
def test_one_function_has_one_slope_step_size_and_increment(name, number):
    net, x = network(name, number)
    slope, moved, size, output = literal(name, net, x)
    torch.testing.assert_close(net(x), output)  # of the test itself
    both = nb.trace(net, x, of=("slope", "increment"))
    np.testing.assert_allclose(both["slope"].nsi, slope, rtol=1e-5)  # a constant keeps some statistics from zero
    np.testing.assert_allclose(both["increment"].nsi, moved, rtol=1e-7)
    np.testing.assert_allclose(both.step_sizes, size, rtol=1e-7)
    assert both.first.tolist() == [True] + [False] * (BLOCKS - 1)


VARIANTS = {
    "small": {"scale": 1e-3},
    "large": {"scale": 1e3},
    "single": {"dtype": torch.float32},
    "half": {"dtype": torch.bfloat16},
    "one image": {"images": 1},
    "zero": {"zero": True},
}


@pytest.mark.parametrize(
    "variant", [pytest.param(one, marks=pytest.mark.slow) if one in ("small", "single") else one for one in VARIANTS]
)
@pytest.mark.parametrize("name", GROUPS)
def test_what_is_decided_does_not_depend_on_the_numbers(name, variant):
    def decided(number, dtype=torch.float64, scale=1.0, images=3, zero=False):
        net, x = network(name, number, dtype, zero)
        explanation = nb.explain(net, (scale * x)[:images])
        return [
            (step.opening, step.slope, step.counted, tuple(one.reason for one in step.left))
            for step in explanation.steps
        ]

    last = len(GROUPS[name][-1]) - 1
    assert decided(last, **VARIANTS[variant]) == decided(last)
