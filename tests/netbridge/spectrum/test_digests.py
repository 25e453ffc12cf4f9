"""Blocks that compute different things have different digests, and a block has the same one in every process."""

import functools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import netbridge as nb
from netbridge.spectrum.digests import digest_of_block
from tests.clock import HANGS


class Scaled(nn.Module):
    """x + scale conv(act(x)), with settings that no text of a module shows."""

    def __init__(self, scale=0.5, act=torch.relu):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 3, padding=1)
        self.scale, self.act = scale, act

    def forward(self, x):
        return x + self.scale * self.conv(self.act(x))


class Parent(nn.Module):
    """A module that knows the one around it, as some do, outside of the registered ones."""

    def __init__(self, number):
        super().__init__()
        self.child = nn.Identity()
        self.child.around, self.others = (self,), [Scaled(number)]


class Child(Scaled):
    def act_on(self, x):
        return self.act(x)


def ours(controller, depth=14, **options):
    net = nb.resnet(depth, widths=(2, 2, 4), controller=controller, **options)
    return net.get_submodule("stages.0.blocks.1")


def pruned(scale):
    block = Scaled()
    block.conv.register_forward_hook(lambda module, inputs, output: scale * output)
    return block


def replaced(scale):
    block = Scaled()
    block.conv.forward = lambda x: scale * x
    return block


def times(number):
    return lambda x: number * x


BLOCKS = {  # pairs of blocks with the same weights and the same text
    "a number": lambda: (Scaled(0.1), Scaled(0.5)),
    "numbers in a list": lambda: (Scaled([1, 2.0]), Scaled([1, 3.0])),
    "numbers in an array": lambda: (Scaled(np.ones(2)), Scaled(np.zeros(2))),
    "a tensor that is no buffer": lambda: (Scaled(torch.ones(1)), Scaled(torch.zeros(1))),
    "a function of torch's": lambda: (Scaled(act=torch.relu), Scaled(act=torch.tanh)),
    "what a function has closed over": lambda: (Scaled(act=times(2)), Scaled(act=times(3))),
    "a partial function": lambda: (Scaled(act=functools.partial(pow, 2)), Scaled(act=functools.partial(pow, 3))),
    "a module that is not registered": lambda: (Parent(1), Parent(2)),
    "a class above": lambda: (Scaled(), Child()),
    "hooks": lambda: (pruned(2.0), pruned(3.0)),
    "a forward of its own": lambda: (replaced(2.0), replaced(3.0)),
    "heads": lambda: (nb.SelfAttention(4, 1), nb.SelfAttention(4, 2)),
    "heads of torch's": lambda: (nn.MultiheadAttention(4, 1), nn.MultiheadAttention(4, 2)),
    "where a norm stands": lambda: tuple(nn.TransformerEncoderLayer(4, 1, norm_first=first) for first in (True, False)),
    "where a ReLU stands": lambda: (ours("constant"), ours("constant", post_activation=False)),
    "an activation": lambda: (ours(nb.asr("se")), ours(nb.asr("se", activation="tanh"))),
    "inputs": lambda: tuple(ours(nb.controller("stepnet", inputs=inputs)) for inputs in ("now", "next")),
    "a constant's last digits": lambda: tuple(ours(nb.controller("constant", value=one)) for one in (1 / 3, 0.333333)),
}


def made_alike(make, number):
    torch.manual_seed(0)
    blocks = make()
    for block in blocks:
        block.load_state_dict(blocks[0].state_dict())
    return blocks[number]


@pytest.mark.parametrize("name", BLOCKS)
def test_what_the_text_of_a_block_does_not_show_is_told_apart(name):
    one, again, other = (made_alike(BLOCKS[name], number) for number in (0, 0, 1))
    assert digest_of_block(one) == digest_of_block(again)
    assert digest_of_block(one) != digest_of_block(other)


@pytest.mark.slow
def test_a_digest_is_the_same_in_another_process():
    """Sets and addresses, which differ from process to process, do not enter."""
    code = (
        "import torch; from torch import nn\n"
        "from netbridge.spectrum.digests import digest_of_block\n"
        "block = nn.GELU()\n"
        "block.names, block.kept, block.thing = {'a', 'b', 'c'}, object(), nn.ReLU\n"
        "print(digest_of_block(block))\n"
    )
    root = str(Path(__file__).parents[3])
    runs = [
        subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=HANGS).stdout
        for _ in range(2)
    ]
    assert len(runs[0]) == 65
    assert runs[0] == runs[1]


def test_a_survey_does_not_take_the_rows_of_another_factor(tmp_path):
    images = torch.randn(1, 2, 4, 4)
    block = Scaled(1.0).eval()
    found = []
    for block.scale in (1.0, 0.5):
        found.append(nb.block_survey(nn.Sequential(block), images, "increment", blocks=["0"], cache=tmp_path))
    assert found[1]["max_re"][0] == pytest.approx(0.5 * found[0]["max_re"][0], rel=1e-5)
