"""`nb.diagnose`: what it says of networks whose stiffness is known, and its page."""

import time

import numpy as np
import pytest
import torch
from torch import nn

import netbridge as nb


class Linear(nn.Module):
    """x + A x with a diagonal A: a mode of rate -a is a step beyond Euler's limit where a is above 2."""

    def __init__(self, *rates):
        super().__init__()
        self.branch = nn.Linear(len(rates), len(rates), bias=False)
        self.branch.weight = nn.Parameter(torch.diag(-torch.tensor(rates)))

    def forward(self, x):
        return x + self.branch(x)


@pytest.fixture(scope="module")
def linear():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(3, 3), Linear(0.1, 0.2, 0.3), Linear(0.1, 0.5, 4.0), Linear(0.5, 0.5, 1.0), nn.Linear(3, 2)
    )
    return nb.diagnose(net, torch.randn(5, 3))


def test_the_stable_step_of_a_linear_block_is_two_over_its_fastest_rate(linear):
    assert list(linear.stable_step.values()) == pytest.approx([2.0 / 0.3, 2.0 / 4.0, 2.0], rel=1e-5)
    assert linear.stiff_blocks == ("2",)
    assert linear.sentences[0].startswith("1 of 3 measured blocks")
    assert linear.limits["2"].growth == pytest.approx(3.0)  # |1 - 4|
    assert "Constant step sizes of 0.5 in place of 1 would bring 2 within the limit" in linear.sentences[3]


@pytest.mark.parametrize("controller", ["constant", "se"])
def test_limits_are_those_of_all_eigenvalues_to_two_digits(controller):
    torch.manual_seed(0)
    net, images = nb.resnet(14, widths=(4, 4, 4), controller=controller).eval(), torch.randn(1, 3, 16, 16)
    found, states = nb.diagnose(net, images), nb.block_states(net, images)
    assert found.limits
    for name, limit in found.limits.items():
        values = nb.block_spectrum(net.get_submodule(name), states[name], "increment", "full", gate="frozen").values
        damped = values[(values.real < 0) & (np.abs(values.imag) <= -values.real)]
        assert limit.settled
        assert limit.stable_step == pytest.approx((-2 * damped.real / np.abs(damped) ** 2).min(), rel=0.02)
        assert limit.growth == pytest.approx(max(1.0, np.abs(1 + values[values.real <= 0]).max()), rel=0.02)


def test_a_branch_that_maps_equal_features_to_zero_has_limits():
    """A normalisation of layers takes away what all features share: the Jacobian times ones is 0, and it is not."""
    torch.manual_seed(0)
    found = nb.diagnose(nb.vit(16, depth=1, features=16, heads=2).eval(), torch.randn(1, 3, 16, 16))
    assert all(np.isfinite(step) for step in found.stable_step.values())


def test_blocks_whose_modes_all_grow_have_no_limit(tmp_path):
    net = nn.Sequential(Linear(-0.1, -0.2), Linear(-0.3, -0.4), Linear(-0.1, 0.0))
    found = nb.diagnose(net, torch.randn(3, 2))
    assert set(found.stable_step.values()) == {float("inf")}
    assert "none has a mode that decays faster than it turns" in found.sentences[0]
    assert found.report(tmp_path).is_file()


def test_a_swap_of_the_step_sizes_for_ones_is_measured():
    """With h = 1/2 the limit of h f is twice that of f."""
    torch.manual_seed(0)
    net = nb.resnet(14, widths=(4, 4, 4), controller="constant(0.5)").eval()
    found = nb.diagnose(net, torch.randn(2, 3, 8, 8))
    assert found.with_ones.keys() == found.limits.keys()
    for name, limit in found.with_ones.items():
        assert found.stable_step[name] == pytest.approx(2 * limit.stable_step, rel=1e-3)
    count = sum(limit.stable_step < 1.0 for limit in found.with_ones.values())
    assert f"{count} of {len(found.limits)} blocks would be beyond the limit" in found.sentences[3]


def test_blocks_that_are_not_reached_in_time_are_named():
    found = nb.diagnose(nb.resnet(14, widths=(4, 4, 4)), torch.randn(1, 3, 8, 8), allowed=1e-9)
    assert not found.limits
    assert "longer than the 1e-09 seconds of `allowed`" in found.sentences[-1]


@pytest.mark.slow
def test_a_resnet20_takes_seconds_and_its_page_is_small(tmp_path):
    net = nb.pretrained("cifar10/resnet20-se-seed0")
    start = time.process_time()
    found = nb.diagnose(net, torch.randn(16, 3, 32, 32))
    assert time.process_time() - start < 10.0
    page = found.report(tmp_path)
    assert page.stat().st_size < 500_000
    assert page.read_text(encoding="utf-8").count("<img") == 4


def test_its_page_and_table_have_a_row_per_block(linear, tmp_path):
    page = linear.report(tmp_path / "out").read_text(encoding="utf-8")
    assert page.count("<img") == 3
    assert "http" not in page
    table = linear.table()
    assert {len(column) for column in table.values()} == {3}
    assert linear._repr_html_().count("<img") == 1


def test_what_a_network_does_not_have_is_said_in_words():
    torch.manual_seed(0)
    net = nb.resnet(14, widths=(4, 4, 4), controller="se")
    found = nb.diagnose(net, torch.randn(4, 3, 8, 8))
    assert "the increment is not defined where a block changes the shape" in found.sentences[-1]
    assert set(found.not_measured) == {"stages.1.blocks.0", "stages.2.blocks.0"}
    assert "step sizes are" in found.sentences[2]
    assert "TNS by the slope is" in found.sentences[4]


def test_it_takes_images_in_batches_as_a_trace_does():
    net, images = nn.Sequential(Linear(0.1, 0.2), Linear(0.1, 4.0)), torch.randn(4, 2)
    batches = [(images[:2], torch.zeros(2)), (images[2:], torch.zeros(2))]
    assert nb.diagnose(net, batches).stable_step == nb.diagnose(net, images).stable_step


def test_no_number_of_states_is_refused():
    with pytest.raises(ValueError, match="`states`"):
        nb.diagnose(nb.resnet(8), torch.randn(1, 3, 8, 8), states=0)


class Twice(Linear):
    """Two steps of size 0.3 in one module, as a transformer's layer has: together they are no step of Euler's."""

    def forward(self, x):
        for _ in range(2):
            x = x + 0.3 * self.branch(x)
        return x


def test_no_limit_is_told_of_a_module_that_takes_several_steps():
    found = nb.diagnose(nn.Sequential(Twice(1.0, 9.0), Twice(0.5, 9.0)), torch.randn(3, 2))
    assert (found.limits, found.not_measured["0"]) == ({}, "it takes several steps in one pass")
    assert "not known" in found.sentences[3]


def test_a_wrapped_network_is_diagnosed_as_the_one_inside():
    net, images = nb.resnet(14, widths=(4, 4, 4), controller="constant(0.5)"), torch.randn(2, 3, 8, 8)
    assert nb.diagnose(nn.DataParallel(net), images).sentences == nb.diagnose(net, images).sentences


def test_batches_that_come_only_once_are_enough():
    net, images = nn.Sequential(Linear(0.1, 0.2), Linear(0.1, 4.0)), torch.randn(4, 2)
    assert nb.diagnose(net, iter(images.split(2))).stable_step == nb.diagnose(net, images).stable_step


def test_nothing_is_said_of_the_order_of_equal_indices():
    """A ReZero network starts with step sizes of 0, by which no block changes the state."""
    blocks = [nn.Linear(3, 3) for _ in range(5)]

    class Zero(nn.Module):
        def __init__(self, branch):
            super().__init__()
            self.branch, self.scale = branch, nn.Parameter(torch.zeros(()))

        def forward(self, x):
            return x + self.scale * self.branch(x)

    found = nb.diagnose(nn.Sequential(*map(Zero, blocks)), torch.randn(3, 3))
    assert "too few blocks" in found.sentences[1]


def test_step_sizes_that_move_within_their_mean_are_not_called_constants():
    torch.manual_seed(0)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.branch, self.gate = nn.Conv2d(4, 4, 1), nn.Linear(4, 4)

        def forward(self, x):
            """Step sizes that are shared out between channels: their mean is 1/4 for every image, each moves."""
            h = torch.softmax(9.0 * self.gate(x.mean((2, 3))), 1)
            return x + h[:, :, None, None] * torch.tanh(self.branch(x))

    said = nb.diagnose(nn.Sequential(Block(), Block()), torch.randn(4, 4, 3, 3)).sentences[2]
    assert "step sizes are 0.25 to 0.25" in said
    assert "`nb.gates` shows whether" in said
