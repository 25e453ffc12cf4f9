"""Gradients of stiffness in anybody's network: those of central differences, and the network as after a plain pass."""

import copy
import dataclasses

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import netbridge as nb
import odelab as ol
from tests.netbridge import networks
from tests.netbridge.foreign import networks as foreign

MAPS, TOKENS = (4, 3, 16, 16), (3, 7, 12)


class LayerNormGate(nn.Module):
    """x + ls * se(f): a parameter and a gate, in-place activations, dropout between them."""

    def __init__(self, width=6):
        super().__init__()
        self.conv, self.scale = nn.Conv2d(width, width, 3, padding=1), nn.Parameter(0.5 * torch.ones(width, 1, 1))
        self.gate, self.act, self.drop = nn.Linear(width, width), nn.ReLU(inplace=True), nn.Dropout(0.2)

    def forward(self, x):
        f = self.drop(self.conv(self.act(self.conv(x))))
        return x + self.scale * (torch.sigmoid(self.gate(f.mean((2, 3))))[:, :, None, None] * f)


class Overwritten(nn.Module):
    """The sum's terms are overwritten after the sum, where their norms have been taken: f by relu_, x by mul_."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(12, 12), nn.Linear(12, 12)

    def forward(self, x):
        f = self.b(self.a(x.clone()).tanh())
        y = x + f
        f.mul_(0.0)
        x.mul_(0.0)
        return y


def hand_made(block, shape):
    stem = nn.Conv2d(3, 6, 1) if len(shape) == 4 else nn.Linear(12, 12)
    return nn.Sequential(stem, *(block() for _ in range(3)))


NETWORKS = {
    "pre-activation by hand": (lambda: foreign.HandResNet(foreign.HandPreBlock), MAPS),
    "in-place ReLU and sum": (foreign.VisionResNet, MAPS),
    "bottlenecks": (lambda: foreign.VisionResNet(foreign.VisionBottleneck, (3, 2)), MAPS),
    "SE and drop path": (lambda: foreign.TimmResNet(foreign.TimmSE), MAPS),
    "gates, scales, dropout": (lambda: hand_made(LayerNormGate, MAPS), MAPS),
    "transformer": (foreign.Transformer, (2, 3, 32, 32)),
    "torch's encoder, norm first": (foreign.TorchEncoder, TOKENS),
    "torch's encoder, norm last": (lambda: foreign.TorchEncoder(norm_first=False, layers=3), TOKENS),
    "torch's modules alone": (
        lambda: nn.Sequential(
            nn.BatchNorm1d(7), *(nn.TransformerEncoderLayer(12, 2, 8, batch_first=True) for _ in "ab")
        ),
        TOKENS,
    ),
    "terms overwritten": (lambda: hand_made(Overwritten, TOKENS), TOKENS),
}


def make(case, training):
    build, shape = NETWORKS[case]
    torch.manual_seed(1)
    net = foreign.shaken(networks.lively(build())).double().train(training)
    return net, torch.randn(shape, dtype=torch.float64)


@pytest.mark.parametrize(
    ("training", "of"),
    [(False, "slope"), (True, "increment")]
    + [pytest.param(*one, marks=pytest.mark.slow) for one in ((False, "increment"), (True, "slope"))],
)
@pytest.mark.parametrize("case", NETWORKS)
def test_gradients_are_those_of_central_differences(case, training, of):
    """Along a random direction in all weights. So short a way crosses no kink of a ReLU; rounding is 1e-9 of it."""
    net, x = make(case, training)
    before, way = copy.deepcopy(net.state_dict()), {}
    for name, parameter in net.named_parameters():
        way[name] = torch.randn(parameter.shape, dtype=torch.float64)

    def measure(t=0.0):
        net.load_state_dict({name: value + t * way.get(name, 0) for name, value in before.items()})
        torch.manual_seed(5)
        _, nsi, stage = nb.nsi_with_gradients(net, x, of)
        return ol.tns(nsi, stage).mean() + nsi.mean()

    measure().backward()
    slope = sum(float((p.grad * way[name]).sum()) for name, p in net.named_parameters() if p.grad is not None)
    with torch.no_grad():
        quotient = (measure(1e-7).item() - measure(-1e-7).item()) / 2e-7
    assert quotient == pytest.approx(slope, rel=1e-6)
    assert abs(slope) > 1e-4


@pytest.mark.parametrize("of", ["slope", "increment"])
@pytest.mark.parametrize("case", NETWORKS)
def test_the_indices_are_those_that_a_trace_counts(case, of):
    net, x = make(case, training=False)
    outputs, nsi, stage = nb.nsi_with_gradients(net, x, of)
    record = nb.trace(net, x, of=of).counted()
    np.testing.assert_allclose(nsi.detach().numpy(), record.nsi, rtol=1e-12)
    assert stage.tolist() == record.stage.tolist()
    assert torch.equal(outputs, net(x))


@pytest.mark.parametrize("case", NETWORKS)
def test_the_network_and_the_generators_are_as_after_a_plain_pass(case):
    net, x = make(case, training=True)
    twin = copy.deepcopy(net)
    torch.manual_seed(3)
    plain = twin(x)
    after = torch.get_rng_state()
    torch.manual_seed(3)
    outputs, *_ = nb.nsi_with_gradients(net, x)
    assert torch.equal(outputs, plain)
    assert torch.equal(torch.get_rng_state(), after)
    assert all(torch.equal(a, b) for a, b in zip(net.state_dict().values(), twin.state_dict().values(), strict=True))
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in net.modules())


@pytest.mark.parametrize("case", NETWORKS)
def test_the_term_acts_as_if_it_stood_in_the_loss(case):
    """Also for another number of images than the term has seen first."""
    net, x = make(case, training=True)
    twin, weight = copy.deepcopy(net), 0.3
    with nb.stiffness_term(net, weight):
        for images in (x, x[:2], x):
            for one in (net, twin):
                one.zero_grad()
                torch.manual_seed(3)
                if one is net:
                    answers = net(images)
                    answers.square().mean().backward()
                else:
                    outputs, nsi, stage = nb.nsi_with_gradients(twin, images)
                    (outputs.square().mean() + weight * ol.tns(nsi, stage).mean()).backward()
            assert torch.equal(answers, outputs)
            for ours, theirs in zip(net.parameters(), twin.parameters(), strict=True):
                torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-9, atol=1e-12)
    assert "forward" not in vars(net)
    assert all(torch.equal(a, b) for a, b in zip(net.state_dict().values(), twin.state_dict().values(), strict=True))


def test_without_weight_in_evaluation_and_afterwards_nothing_is_added():
    net, x = make("pre-activation by hand", training=True)

    def gradients_of(weight, training):
        net.train(training).zero_grad()
        with nb.stiffness_term(net, weight):
            net(x).square().mean().backward()
        return [p.grad.clone() for p in net.parameters()]

    for weight, training in ((0.0, True), (5.0, False)):
        pairs = zip(gradients_of(weight, training), gradients_of(0.0, training), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)
    assert not all(torch.equal(a, b) for a, b in zip(gradients_of(5.0, True), gradients_of(0.0, True), strict=True))


@dataclasses.dataclass
class Answer:
    logits: torch.Tensor
    state: tuple


class Answering(nn.Module):
    """Returns a dictionary of more than one tensor, a list, or a dataclass, of which a loss takes what it wants."""

    def __init__(self, how):
        super().__init__()
        self.body, self.how = hand_made(LayerNormGate, MAPS), how

    def forward(self, x, shift=None):
        x = self.body(x if shift is None else x + shift)
        logits, mean = x.mean((2, 3)), x.mean(1)
        return {"dict": {"logits": logits, "mean": mean}, "list": [mean, logits], "class": Answer(logits, (mean,))}[
            self.how
        ]


@pytest.mark.parametrize("how", ["dict", "list", "class"])
def test_the_term_goes_with_whatever_part_of_the_answer_the_loss_takes(how):
    torch.manual_seed(0)
    net, x = Answering(how).double(), torch.randn(MAPS, dtype=torch.float64)
    _, nsi, stage = nb.nsi_with_gradients(net.eval(), x)
    wanted = torch.autograd.grad(0.1 * ol.tns(nsi, stage).mean(), net.body[1].conv.weight)[0]
    for layer in net.modules():
        layer.training = not isinstance(layer, nn.Dropout)
    picked = [lambda a: a["logits"], lambda a: a["mean"], lambda a: a["mean"].sum() + a["logits"].sum()]
    if how == "list":
        picked = [lambda a: a[0], lambda a: a[1], lambda a: a[0].sum() + a[1].sum()]
    if how == "class":
        picked = [lambda a: a.logits, lambda a: a.state[0], lambda a: a.logits.sum() + a.state[0].sum()]
    for pick in picked:
        net.zero_grad()
        with nb.stiffness_term(net, 0.1):
            (0.0 * pick(net(x, shift=torch.zeros(())))).sum().backward()
        torch.testing.assert_close(net.body[1].conv.weight.grad, wanted, rtol=1e-9, atol=1e-14)


class Caching(nn.Module):
    """Adds what it computes in its first pass only, so that the second pass goes another way than the first."""

    def __init__(self):
        super().__init__()
        self.body, self.drop, self.positions = hand_made(Overwritten, TOKENS), nn.Dropout(0.5), None
        self.norm = nn.BatchNorm1d(7)

    def forward(self, x):
        if self.positions is None:
            self.positions = torch.linspace(0, 1, 7, dtype=x.dtype).cos()[:, None].expand(7, 12).clone()
        return self.body(self.drop(self.norm(x + self.positions)))


def test_a_pass_that_goes_another_way_is_taken_again_from_where_it_began():
    net, x = Caching().double(), torch.randn(TOKENS, dtype=torch.float64)
    twin = copy.deepcopy(net)
    answers = []
    for one in (net, twin):
        torch.manual_seed(0)
        with nb.stiffness_term(one, 0.0 if one is twin else 0.1):
            answers.append([one(x) for _ in range(3)])
    assert all(torch.equal(a, b) for a, b in zip(*answers, strict=True))
    assert torch.equal(net.norm.running_mean, twin.norm.running_mean)
    assert net.norm.num_batches_tracked == 3


class Checkpointed(nn.Module):
    def __init__(self, reentrant):
        super().__init__()
        self.body, self.reentrant = hand_made(Overwritten, TOKENS), reentrant

    def forward(self, x):
        x = self.body[0](x)
        for block in list(self.body)[1:]:
            x = checkpoint(block, x, use_reentrant=self.reentrant)
        return x


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad=True")  # without gradients, as in a trace
@pytest.mark.parametrize("reentrant", [False, True])
def test_what_is_checkpointed_is_refused_in_words(reentrant):
    net, x = Checkpointed(reentrant), torch.randn(TOKENS)
    with pytest.raises(ValueError, match=r"inside torch\.utils\.checkpoint, .*: switch checkpointing off"):
        nb.nsi_with_gradients(net, x)
    with nb.stiffness_term(net, 0.1), pytest.raises(ValueError, match="switch checkpointing off"):
        net(x)


def test_parallel_and_compiled_networks_are_to_be_given_from_inside():
    net, x = make("pre-activation by hand", training=True)
    wrapped = nn.DataParallel(net)
    with pytest.raises(ValueError, match="compiled or parallel"), nb.stiffness_term(wrapped, 0.1):
        pass
    net.compile(backend="eager")
    with pytest.raises(ValueError, match="compiled or parallel"), nb.stiffness_term(net, 0.1):
        pass
    net._compiled_call_impl = None
    plain = nb.nsi_with_gradients(net.eval(), x)[1]
    for other in (wrapped, torch.compile(net, backend="eager")):
        assert torch.equal(nb.nsi_with_gradients(other, x)[1], plain)


def test_zero_initialised_branches_have_a_finite_gradient():
    net = foreign.TimmResNet(zero=True).train()
    _, nsi, stage = nb.nsi_with_gradients(net, torch.randn(MAPS))
    (ol.tns(nsi, stage).mean() + nsi.mean()).backward()
    assert not nsi.any()
    assert all(bool(p.grad.isfinite().all()) for p in net.parameters() if p.grad is not None)


def test_a_copy_made_within_the_context_is_a_network_of_its_own():
    net, x = make("pre-activation by hand", training=True)
    with nb.stiffness_term(net, 0.1):
        average = copy.deepcopy(net).train()
        with torch.no_grad():
            average.conv1.weight.zero_()
        assert not torch.equal(average(x), net(x))


def test_named_blocks_have_gradients_of_their_increments():
    net, x = make("pre-activation by hand", training=False)
    blocks = ["layer1.1", "layer1.2"]
    _, nsi, _ = nb.nsi_with_gradients(net, x, "increment", blocks=blocks)
    record = nb.trace(net, x, of="increment", blocks=blocks).counted()
    np.testing.assert_allclose(nsi.detach().numpy(), record.nsi, rtol=1e-12)
    assert nsi.requires_grad
    net.training = True
    with nb.stiffness_term(net, 0.1, blocks=["layer1"]):
        (0.0 * net(x)).sum().backward()
    assert net.layer1[2].conv1.weight.grad.any()
    assert not net.layer2[1].conv1.weight.grad.any()


@pytest.mark.parametrize(("weight", "sign"), [(1.0, -1), (-1.0, +1)])
def test_descending_the_term_alone_moves_tns(weight, sign):
    net, x = make("transformer", training=False)
    net.training = True  # the network's own switch; its drop paths stay off
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
    values = []
    with nb.stiffness_term(net, weight):
        for _ in range(6):
            optimizer.zero_grad()
            (0.0 * net(x)).sum().backward()
            optimizer.step()
            values.append(nb.trace(net, x).tns().mean())
    assert sign * (values[-1] - values[0]) > 0.05 * values[0]
