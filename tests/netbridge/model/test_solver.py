"""Stages as runs of the solver: what another integrate does, what is observed, other methods, refined grids."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import netbridge as nb
from netbridge.model import solve
from netbridge.step_sizes.base import UNIT
from odelab import RK4, core
from odelab.methods import explicit as methods
from odelab.methods.tableau import Method
from tests.netbridge import networks

SMALL = {"depth": 14, "widths": (4, 8, 8)}


def test_another_integrate_is_another_network(images, monkeypatch):
    net = networks.lively(nb.resnet(**SMALL)).eval()
    x = torch.rand(1, 4, 8, 8)
    before, block_before = net(images), net.blocks[0](x)
    genuine, calls = core.integrate, []

    def halved(*arguments):
        calls.append(arguments)
        status, state, *rest = genuine(*arguments)
        return status, state._replace(u=0.5 * state.u), *rest

    monkeypatch.setattr(core, "integrate", halved)
    after = net(images)
    assert len(calls) == 6  # one a block
    assert not torch.allclose(before, after)
    assert torch.equal(net.blocks[0](x), 0.5 * block_before)

    def no_step(rhs, params, t, u, slope, *rest):
        return u, slope, [slope], [slope], False

    monkeypatch.setattr(core, "integrate", lambda step, *rest: genuine(no_step, *rest))
    still = net(images)
    features = networks_features(net, images)
    assert torch.equal(still, net.head(features))


def networks_features(net, images):
    """Where the solver does not move at all: stem and shortcuts."""
    x = net.stem(images)
    for block in net.blocks:
        x = block.shortcut(x)
    return x


def test_a_constant_scales_increments_and_not_slopes(images):
    def steps(value):
        net = nb.swap(base, nb.controller("constant", value=value))
        kept = []
        with torch.no_grad(), net.observed(lambda carry, *step: kept.append(step)):
            net(images)
        return kept

    base = networks.lively(nb.resnet(depth=8, widths=(4, 4, 4), post_activation=False)).eval()
    (_, _, _, h1, u1, _, slope1, new1), (_, _, _, h3, u3, _, slope3, new3) = steps(1.0)[0], steps(0.25)[0]
    assert torch.equal(slope1, slope3)
    assert torch.equal(u1, u3)
    assert torch.allclose(new3 - u3, 0.25 * (new1 - u1), atol=1e-6)
    assert (h1, h3) == (1.0, 0.25)
    assert (float(h1), abs(h1), h1 * 2.0, 2.0 * h1, torch.as_tensor(h1).item()) == (1.0, 1.0, 2.0, 2.0, 1.0)
    assert isinstance(h1, float)


@given(
    seed=st.integers(0, 2**32 - 1),
    h=st.one_of(st.just(UNIT), st.floats(-4, 4, width=32), st.sampled_from([(3, 1, 1), (2, 3, 1, 1), (2, 3, 5, 5)])),
    state=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
    slope=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
)
def test_the_step_in_place_is_the_solvers_own_to_the_bit(seed, h, state, slope):
    generator = torch.Generator().manual_seed(seed)
    u = torch.randn(2, 3, 5, 5, generator=generator).to(state)
    f = torch.randn(2, 3, 5, 5, generator=generator).to(slope)
    h = torch.randn(h, generator=generator) if isinstance(h, tuple) else h
    wanted, *_ = methods.EULER.step(None, None, 0, u.clone(), f.clone(), 1, h)
    kept = u.clone()
    got, *_ = solve.euler_in_place(None, None, 0, u, f.clone(), 1, h)
    assert got.dtype == wanted.dtype
    assert torch.equal(got, wanted)
    assert torch.equal(u, kept)


@pytest.mark.parametrize("controller", nb.controllers())
@pytest.mark.parametrize("arguments", [{}, {"post_activation": False}, {"depth_factor": 2}, {"method": "RK4"}], ids=str)
def test_inference_and_a_pass_with_gradients_are_the_same_to_the_bit(controller, arguments, images):
    chosen = nb.asr("se") if controller == "asr" else controller
    net = networks.lively(nb.resnet(14, widths=(16, 16, 16), controller=chosen, **arguments)).eval()
    kept = images.clone()
    wanted = net(images)
    with torch.inference_mode():
        assert torch.equal(net(images), wanted)
    assert torch.equal(images, kept)


def test_observing_changes_nothing_and_sees_every_block(images):
    net = networks.lively(nb.resnet(**SMALL, controller="se")).eval()
    with torch.no_grad():
        plain = net(images)
        with net.observed(lambda carry, memory, t, dt, *rest: [*carry, (memory.stage, t, dt)], []) as seen:
            watched = net(images)
        again = net(images)
    assert torch.equal(plain, watched)
    assert torch.equal(plain, again)
    assert seen.carry == [(0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 1, 1), (2, 0, 1), (2, 1, 1)]


def test_observed_slopes_are_the_branches(images):
    net = networks.lively(nb.resnet(**SMALL, controller="se")).eval()
    kept = []
    with torch.no_grad(), net.observed(lambda carry, memory, t, dt, h, u, s, f, new: kept.append((h, u, f, new))):
        net(images)
    x = net.stem(images)
    with torch.no_grad():
        for block, (h, u, f, new) in zip(net.blocks, kept, strict=True):
            assert torch.equal(u, block.shortcut(x))
            assert torch.equal(f, block.branch(x))
            assert torch.equal(h, block.controller(u, f))
            x = torch.relu(u + h * f)
            assert torch.equal(x, new)


@pytest.mark.parametrize("watch", ["block.branch", "block.branch.bn2", "everywhere"])
def test_a_hook_sees_the_slope_and_not_the_sum_formed_over_it(watch, images):
    net = networks.lively(nb.resnet(**SMALL)).eval()
    block = net.blocks[1]
    seen = []
    target = {"block.branch": block.branch, "block.branch.bn2": block.branch.bn2}.get(watch)
    keep = lambda module, inputs, output: seen.append(output) if module in (block.branch, target) else None  # noqa: E731
    handle = (
        torch.nn.modules.module.register_module_forward_hook(keep)
        if target is None
        else target.register_forward_hook(keep)
    )
    try:
        with torch.no_grad():
            net(images)
    finally:
        handle.remove()
    with torch.no_grad():
        assert torch.equal(seen[-1], block.branch(net.blocks[0](net.stem(images))))


@pytest.mark.parametrize("arguments", [{}, {"controller": "dia"}, {"method": "RK4"}, {"depth_factor": 2}], ids=str)
@pytest.mark.parametrize("gradients", [False, True])
def test_hooks_on_blocks_fire(arguments, gradients, images):
    net = networks.lively(nb.resnet(**SMALL, **arguments)).eval()
    with torch.set_grad_enabled(gradients):
        wanted = net(images)
        went_in, came_out = [], []
        handles = [block.register_forward_pre_hook(lambda m, a: went_in.append(a[0])) for block in net.blocks]
        handles += [block.register_forward_hook(lambda m, a, out: came_out.append(out)) for block in net.blocks]
        assert torch.equal(net(images), wanted)
        assert torch.equal(went_in[0], net.stem(images))
        assert all(out is x for out, x in zip(came_out[:-1], went_in[1:], strict=True))
        assert torch.equal(net.head(came_out[-1]), wanted)
        for handle in handles:
            handle.remove()
        assert len(came_out) == len(net.blocks)
        assert torch.equal(net(images), wanted)


def test_a_block_is_taken_out_by_a_hook(images):
    net = networks.lively(nb.resnet(**SMALL)).eval()
    without = copy.deepcopy(net)
    del without.stages[0].blocks[1]
    with torch.no_grad():
        handle = net.blocks[1].register_forward_hook(lambda module, inputs, output: inputs[0])
        assert torch.equal(net(images), without(images))
        handle.remove()
        assert not torch.equal(net(images), without(images))
        net.blocks[1].register_forward_pre_hook(lambda module, inputs: torch.zeros_like(inputs[0]))
        assert torch.equal(net(images), without.head(after(net.blocks[2:], net.blocks[1](0 * net.stem(images)))))


def after(blocks, x):
    for block in blocks:
        x = block(x)
    return x


def test_backward_hooks_on_blocks_see_the_gradients_of_states(images):
    net = networks.lively(nb.resnet(**SMALL)).eval()
    seen, states = {}, []
    for i, block in enumerate(net.blocks):
        block.register_full_backward_hook(lambda m, before, behind, i=i: seen.update({i: (before[0], behind[0])}))
    net(images).square().sum().backward()
    plain = copy.deepcopy(net)
    for block in plain.blocks:
        block._backward_hooks.clear()
        block.register_forward_hook(lambda m, a, out: states.append(out))
    out = plain(images).square().sum()
    for state in states:
        state.retain_grad()
    out.backward()
    for i in range(len(net.blocks)):
        assert torch.equal(seen[i][1], states[i].grad)
        assert i == 0 or torch.equal(seen[i][0], states[i - 1].grad)


def test_hooks_on_stages_and_blocks_alone(images):
    net = networks.lively(nb.resnet(**SMALL)).eval()
    seen = []
    handle = net.stages[0].register_forward_hook(lambda module, inputs, output: seen.append((inputs[0], output)))
    with torch.no_grad():
        net(images)
        handle.remove()
        ((x, y),) = seen
        for block in net.stages[0].blocks:
            x = block(x)
    assert torch.equal(x, y)


def rk4_by_hand(f, u, h):
    k1 = f(u)
    k2 = f(u + h * (0.5 * k1))
    k3 = f(u + h * (0.5 * k2))
    k4 = f(u + h * k3)
    return u + h * (1 / 6 * k1 + 1 / 3 * k2 + 1 / 3 * k3 + 1 / 6 * k4)


@pytest.mark.parametrize("factor", [1, 3])
def test_rk4_and_depth_factor_by_hand(factor, images):
    net = networks.lively(nb.resnet(**SMALL, method=RK4, depth_factor=factor)).double().eval()
    x = net.stem(images.double())
    for number, block in enumerate(net.blocks):
        if number in (2, 4):
            x = torch.relu(block.shortcut(x) + block.branch(x))  # a change of shape is one plain step
            continue
        for _ in range(factor):
            x = torch.relu(rk4_by_hand(block.branch, x, 1.0 / factor))
    assert networks.relative_error(net(images.double()), net.head(x)) < 1e-14
    with torch.no_grad():
        assert networks.relative_error(net(images.double()), net.head(x)) < 1e-14


def test_interpolated_weights_by_hand(images):
    net = nb.resnet(20, widths=(4, 4, 4), method="MIDPOINT", weights="interpolated").double().eval()
    networks.lively(net)
    stage, x = net.stages[0], torch.randn(2, 4, 8, 8, dtype=torch.float64)
    wanted = x
    for i, block in enumerate(stage.blocks):
        after = stage.blocks[min(i + 1, 2)]
        middle = nb.Branch(4, 4, 1, bottleneck=False, post_activation=True).double().eval()
        right = after.branch.state_dict()
        half = {k: 0.5 * (v + right[k]) if v.is_floating_point() else v for k, v in block.branch.state_dict().items()}
        middle.load_state_dict(half)
        wanted = torch.relu(wanted + middle(wanted + 0.5 * block.branch(wanted)))
    assert networks.relative_error(stage(x), wanted) < 1e-14
    shared = nb.resnet(20, widths=(4, 4, 4), weights="interpolated").double().eval()
    plain = nb.resnet(20, widths=(4, 4, 4)).double().eval()
    plain.load_state_dict(shared.state_dict())
    assert torch.equal(shared(images.double()), plain(images.double()))  # Euler sees whole layers only


def test_refined_grids_converge_to_the_ode_net():
    images = torch.randn(1, 3, 8, 8)
    config = {"depth": 20, "widths": (4, 4, 4), "post_activation": False, "weights": "interpolated"}
    exact = networks.lively(nb.resnet(**config, solver="dopri5", tolerance=1e-7)).double().eval()
    errors = {}
    for method, factor in (("EULER", 4), ("EULER", 16), ("RK4", 4)):
        net = nb.resnet(**config, method=method, depth_factor=factor).double().eval()
        net.load_state_dict(exact.state_dict())
        with torch.no_grad():
            errors[method, factor] = networks.relative_error(net(images.double()), exact(images.double()))
    assert errors["EULER", 16] < errors["EULER", 4] / 3
    assert errors["RK4", 4] < 1e-3 < errors["EULER", 4]


def test_an_ode_net_trains_and_can_be_observed(images):
    net = nb.resnet(14, widths=(4, 4, 4), controller="se", solver="dopri5")
    with net.observed(
        lambda carry, memory, t, dt, h, u, slopes, f, new: [*carry, (memory.stage, t, u, f, new)], []
    ) as seen:
        net(images).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    assert [step[:2] for step in seen.carry] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    _, _, u, f, new = seen.carry[1]
    assert torch.allclose(torch.relu(u + f), new, atol=1e-6)


def test_a_method_of_ones_own(images):
    ralston = Method("RALSTON", order=2, a=[[], ["2/3"]], b=["1/4", "3/4"])
    net = networks.lively(nb.resnet(**SMALL, method=ralston)).double().eval()
    again = nb.resnet(**SMALL, method=methods.HEUN).double().eval()
    again.load_state_dict(net.state_dict())
    x = images.double()
    assert net.config["method"]["b"] == ["1/4", "3/4"]
    assert not torch.allclose(net(x), again(x))
    block = net.blocks[0]
    u = net.stem(x)
    k = block.branch(u)
    wanted = torch.relu(u + 0.25 * k + 0.75 * block.branch(u + 2 / 3 * k))
    u = [u]
    net.stages[0].blocks = net.stages[0].blocks[:1]
    assert networks.relative_error(net.stages[0](u[0]), wanted) < 1e-14
