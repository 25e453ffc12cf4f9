"""TNS with gradients: the indices are those of a trace, and the term acts as if it stood in the loss."""

import contextlib
import dataclasses

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import netbridge as nb
import odelab as ol
from netbridge import data, train


def small(controller="constant", depth=20, seed=0, **options):
    torch.manual_seed(seed)
    return nb.resnet(depth, 10, controller, widths=(4, 4, 8), **options)


def images(n=6, seed=0):
    return torch.randn(n, 3, 8, 8, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("of", ["slope", "increment"])
@pytest.mark.parametrize("controller", ["constant", "se", "stepnet"])
def test_the_indices_are_those_that_a_trace_counts(of, controller):
    net, x = small(controller).eval(), images()
    outputs, nsi, stage = nb.nsi_with_gradients(net, x, of)
    record = nb.trace(net, x, of=of).counted()
    np.testing.assert_allclose(nsi.detach().numpy(), record.nsi, rtol=1e-5)
    assert stage.tolist() == record.stage.tolist()
    assert torch.equal(outputs, net(x))


def test_steps_within_a_layer_are_counted_as_a_trace_counts_them():
    net, x = small(depth_factor=2).eval(), images()
    record = nb.trace(net, x).counted()
    np.testing.assert_allclose(nb.nsi_with_gradients(net, x)[1].detach().numpy(), record.nsi, rtol=1e-5)


def gradients(net):
    return [p.grad.clone() for p in net.parameters() if p.grad is not None]


@pytest.mark.parametrize("mu", ["sample", "dataset"])
@pytest.mark.parametrize("weight", [0.3, -0.3])
def test_the_term_acts_as_if_it_stood_in_the_loss(mu, weight):
    net, x, labels = small().double(), images().double(), torch.arange(6)
    with nb.stiffness_term(net, weight, mu=mu):
        answers = net(x)
        F.cross_entropy(answers, labels).backward()
    carried = gradients(net)
    net.zero_grad(set_to_none=True)
    outputs, nsi, stage = nb.nsi_with_gradients(net, x)
    (F.cross_entropy(outputs, labels) + weight * ol.tns(nsi, stage, mu).mean()).backward()
    assert len(carried) == len(gradients(net))
    for ours, theirs in zip(carried, gradients(net), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)
    assert torch.equal(answers, outputs)


def test_its_gradient_is_that_of_differences():
    net, x = small().double().eval(), images().double()
    weight = net.stages[1].blocks[1].branch.conv1.weight

    def tns():
        _, nsi, stage = nb.nsi_with_gradients(net, x)
        return ol.tns(nsi, stage).mean()

    tns().backward()
    way = torch.randn(weight.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    values = []
    for step in (1e-6, -1e-6):
        with torch.no_grad():
            weight += step * way
        values.append(tns().item())
        with torch.no_grad():
            weight -= step * way
    assert (values[0] - values[1]) / 2e-6 == pytest.approx(float((weight.grad * way).sum()), rel=1e-5)


def test_without_weight_in_evaluation_and_afterwards_nothing_is_added():
    net, x = small(), images()

    def gradients_of(weight, training):
        net.train(training).zero_grad()
        with nb.stiffness_term(net, weight):
            net(x).square().mean().backward()
        return gradients(net)

    for weight, training in ((0.0, True), (5.0, False)):
        plain = gradients_of(0.0, training)
        assert all(torch.equal(a, b) for a, b in zip(gradients_of(weight, training), plain, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(gradients_of(5.0, True), gradients_of(0.0, True), strict=True))
    assert not net._forward_hooks
    assert all(stage.observation is None for stage in net.stages)
    with nb.stiffness_term(net, 5.0), torch.no_grad():
        assert torch.equal(net.eval()(x), net(x))


@pytest.mark.parametrize(("weight", "sign"), [(1.0, -1), (-1.0, +1)])
def test_descending_the_term_alone_moves_tns(weight, sign):
    net, x = small(seed=3), images(20)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02)
    values = []
    for _ in range(8):
        optimizer.zero_grad()
        with nb.stiffness_term(net, weight):
            (0.0 * net(x)).sum().backward()
        optimizer.step()
        _, nsi, stage = nb.nsi_with_gradients(net, x)
        values.append(ol.tns(nsi, stage).mean().item())
    assert sign * (values[-1] - values[0]) > 0.05 * values[0]


def test_a_training_feels_it_and_without_weight_does_not():
    digits, recipe = data.load("digits"), train.recipe("digits", epochs=1)
    some = {"train_images": digits.train_images[:384], "train_labels": digits.train_labels[:384]}
    digits = dataclasses.replace(digits, **some)
    weights = []
    for weight in (None, 0.0, 0.1):
        net = small(seed=3)
        with contextlib.nullcontext() if weight is None else nb.stiffness_term(net, weight):
            train.train(net, digits, recipe, quiet=True, device="cpu")
        weights.append(net.head.fc.weight.detach())
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_in_half_precision_the_indices_are_single():
    net, x = small(), images()
    with torch.autocast("cpu", dtype=torch.bfloat16), nb.stiffness_term(net, 0.1):
        net(x).float().square().mean().backward()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        nsi = nb.nsi_with_gradients(net, x)[1]
    assert nsi.dtype == torch.float32
    assert all(bool(torch.isfinite(gradient).all()) for gradient in gradients(net))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: nb.nsi_with_gradients(small(), images(), "both"), ValueError, "`of` must be"),
        (lambda: nb.nsi_with_gradients(len, images()), TypeError, "`net` must be a torch module"),
        (lambda: nb.nsi_with_gradients(torch.nn.Linear(8, 8), images()), ValueError, "no residual blocks"),
        (lambda: nb.nsi_with_gradients(small(depth=8), images()), ValueError, "one block in every stage"),
    ],
)
def test_what_cannot_be_measured_is_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()
