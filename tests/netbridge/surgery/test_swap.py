"""Swapping: the branches stay, the controller changes, and the way back is the identity."""

import logging

import hypothesis
import hypothesis.strategies as some
import pytest
import torch

import netbridge as nb
from tests.netbridge import networks

KINDS = [
    "constant",
    "se",
    "eca",
    "srm",
    "ie",
    "iebn",
    "sge",
    "dia",
    "stepnet",
    nb.asr("se"),
    nb.asr("dia"),
    nb.asr(None),
]


def small(controller, **more):
    return networks.lively(nb.resnet(14, controller=controller, widths=(16, 16, 32), shortcut="B", **more)).eval()


def same(one, other):
    left, right = one.state_dict(), other.state_dict()
    return list(left) == list(right) and all(torch.equal(left[name], right[name]) for name in left)


@hypothesis.settings(deadline=None, max_examples=20)
@hypothesis.given(first=some.sampled_from(KINDS), second=some.sampled_from(KINDS), share=some.booleans())
def test_swap_and_swap_back_is_the_identity(first, second, share):
    net = small(first)
    images = torch.randn(2, 3, 16, 16)
    there = nb.swap(net, second, share=share)
    back = nb.swap(there, net, share=share)
    assert same(back, net)
    assert back.config == net.config
    with torch.no_grad():
        assert torch.equal(back(images), net(images))


@pytest.mark.parametrize("first", ["se", "iebn", nb.asr("dia", beside="dia")], ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_swapped_network_is_one_built_so(kind, first):
    net = small(first)
    swapped = nb.swap(net, kind)
    built = nb.resnet(14, controller=kind, widths=(16, 16, 32), shortcut="B")
    assert list(swapped.state_dict()) == list(built.state_dict())
    assert swapped.config == built.config
    built.load_state_dict(swapped.state_dict())
    with torch.no_grad():
        x = torch.randn(2, 3, 16, 16)
        assert torch.equal(built.eval()(x), swapped(x))
    ours, theirs = (dict(n.named_parameters()) for n in (net, swapped))
    branches = [name for name in ours if (".branch." in name or "shortcut" in name) and "instance" not in name]
    assert all(torch.equal(ours[name], theirs[name]) for name in branches)
    assert len(branches) == 6 * 6 + 2 * 3


def test_controllers_come_from_a_network_and_branches_from_the_other():
    net = small("se")
    there = nb.swap(net, "constant")
    with torch.no_grad():
        there.blocks[0].branch.conv1.weight.mul_(2.0)
        net.blocks[0].controller.excite[0].weight.fill_(3.0)
    back = nb.swap(there, net)
    assert torch.equal(back.blocks[0].branch.conv1.weight, 2.0 * net.blocks[0].branch.conv1.weight)
    assert torch.equal(back.blocks[0].controller.excite[0].weight, net.blocks[0].controller.excite[0].weight)
    with torch.no_grad():
        back.blocks[0].controller.excite[0].weight.zero_()
    assert bool((net.blocks[0].controller.excite[0].weight == 3.0).all())
    alike = nb.swap(net, net, share=True)
    assert alike.blocks[0].branch.conv1.weight is net.blocks[0].branch.conv1.weight
    assert alike.blocks[0].controller.excite[0].weight is not net.blocks[0].controller.excite[0].weight


def test_a_network_holds_no_network_it_came_from():
    assert set(vars(nb.swap(small("se"), "eca"))) == set(vars(small("se")))


def test_copies_are_apart_and_shared_branches_are_one():
    net = small("constant")
    copied, shared = nb.swap(net, "se"), nb.swap(net, "se", share=True)
    with torch.no_grad():
        net.blocks[0].branch.conv1.weight.zero_()
        net.blocks[0].branch.bn1.running_mean.fill_(7.0)
    assert copied.blocks[0].branch.conv1.weight.abs().sum() > 0
    assert shared.blocks[0].branch.conv1.weight is net.blocks[0].branch.conv1.weight
    assert shared.blocks[0].branch.bn1.running_mean is net.blocks[0].branch.bn1.running_mean
    assert shared.blocks[0].branch is not net.blocks[0].branch


def test_shared_branches_under_iebn_leave_the_original_plain():
    net = small("constant")
    x = torch.randn(2, 3, 16, 16)
    before = net(x)
    other = nb.swap(net, "iebn", share=True)
    assert torch.equal(net(x), before)
    assert not torch.allclose(other(x), before)
    assert other.blocks[0].branch.bn1.weight is net.blocks[0].branch.bn1.weight


def test_on_some_blocks_others_keep_what_they_have():
    net = small("se")
    mixed = nb.swap(nb.swap(net, "eca", on=[1, 4]), "dia", on=[2, 3])
    assert [c if isinstance(c, str) else c["name"] for c in mixed.config["controllers"]] == [
        "se",
        "eca",
        "dia",
        "dia",
        "eca",
        "se",
    ]
    assert torch.equal(mixed.blocks[0].controller.excite[0].weight, net.blocks[0].controller.excite[0].weight)
    assert [list(stage.shared) for stage in mixed.stages] == [[], ["dia"], []]
    assert [list(stage.shared) for stage in nb.swap(mixed, "constant").stages] == [[], [], []]
    built = nb.resnet(14, controller="dia", widths=(16, 16, 32), on=[2, 3])
    assert [list(stage.shared) for stage in built.stages] == [[], ["dia"], []]
    assert len(list(nb.swap(net, "stepnet").parameters())) == len(list(nb.swap(net, "constant").parameters())) + 3 * 5


def test_precision_device_and_mode_follow(images):
    net = small("constant").double().train()
    swapped = nb.swap(net, nb.asr("dia", beside="se"))
    assert {p.dtype for p in swapped.parameters()} == {torch.float64}
    assert all(module.training for module in swapped.modules())
    net.normalisation, net.about = {"mean": [0.0], "std": [1.0]}, {"seed": 3}
    assert nb.swap(net, "se").about == {"seed": 3}
    assert nb.swap(nb.swap(net, "se"), "constant").normalisation == net.normalisation
    with torch.device("meta"):
        hollow = nb.resnet(14)
    assert all(p.is_meta for p in nb.swap(hollow, "se").parameters())
    for training in (True, False):
        there = nb.swap(small("se").train(not training), "constant").train(training)
        assert {module.training for module in nb.swap(there, small("se")).modules()} == {training}
    assert {p.dtype for p in nb.swap(net, small("se")).parameters()} == {torch.float64}


def test_iebn_says_what_it_is(caplog):
    with caplog.at_level(logging.WARNING, "netbridge"):
        nb.swap(small("constant"), "iebn")
    assert "iebn modifies the branch" in caplog.text


def test_swap_refuses():
    with pytest.raises(TypeError, match=r"`net` must be a network of nb.resnet.* got Linear"):
        nb.swap(torch.nn.Linear(1, 1), "se")
    with pytest.raises(ValueError, match=r"`controller` must be one of .* got 'senet'"):
        nb.swap(small("se"), "senet")
    with pytest.raises(ValueError, match="'iebn' lives in batch normalisations, which `fold` took away"):
        nb.swap(nb.fold(small("constant")), "iebn")
    with pytest.raises(ValueError, match="`on` must name blocks 0 to 5"):
        nb.swap(small("se"), "eca", on=[6])
    with pytest.raises(ValueError, match=r"`controller` is a network with \[3, 3, 3\] blocks per stage"):
        nb.swap(small("se"), nb.resnet(20))
