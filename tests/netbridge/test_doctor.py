"""`nb.diagnose`: what it says of networks whose stiffness is known, and its page."""

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
    assert list(linear.stable_step.values()) == pytest.approx(
        [2.02 / 0.3, 2.02 / 4.0, 2.02], rel=1e-4
    )  # |R| may be 1.02
    assert linear.stiff_blocks == ("2",)
    assert linear.sentences[0].startswith("1 of 3 measured blocks")


def test_its_page_and_table_have_a_row_per_block(linear, tmp_path):
    page = linear.report(tmp_path / "out").read_text(encoding="utf-8")
    assert page.count("<img") == 2
    assert "http" not in page
    table = linear.table()
    assert {len(column) for column in table.values()} == {3}
    assert linear._repr_html_().count("<img") == 1


def test_what_a_network_does_not_have_is_said_in_words():
    torch.manual_seed(0)
    net = nb.resnet(14, widths=(4, 4, 4), controller="se")
    found = nb.diagnose(net, torch.randn(4, 3, 8, 8))
    assert "the increment is not defined where a block changes the shape" in found.sentences[4]
    assert set(found.not_measured) == {"stages.1.blocks.0", "stages.2.blocks.0"}
    assert "step sizes are" in found.sentences[2]
    assert "TNS by the slope is" in found.sentences[3]


def test_it_takes_images_in_batches_as_a_trace_does():
    net, images = nn.Sequential(Linear(0.1, 0.2), Linear(0.1, 4.0)), torch.randn(4, 2)
    batches = [(images[:2], torch.zeros(2)), (images[2:], torch.zeros(2))]
    assert nb.diagnose(net, batches).stable_step == nb.diagnose(net, images).stable_step


def test_no_number_of_states_is_refused():
    with pytest.raises(ValueError, match="`states`"):
        nb.diagnose(nb.resnet(8), torch.randn(1, 3, 8, 8), states=0)
