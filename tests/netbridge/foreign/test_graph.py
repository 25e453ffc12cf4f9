"""Other people's networks: their blocks are found, and their indices are those taken by hooks on their own modules."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import netbridge as nb
import odelab as ol
from netbridge.foreign.graph import Graph, stages
from netbridge.foreign.operations import Operation
from netbridge.foreign.vocabulary import describe
from tests.netbridge.foreign import networks as foreign

CASES = {
    "vision basic": lambda: foreign.VisionResNet(),
    "vision bottleneck": lambda: foreign.VisionResNet(foreign.VisionBottleneck),
    "timm": lambda: foreign.TimmResNet(),
    "timm with attention": lambda: foreign.TimmResNet(foreign.TimmSE),
    "by hand, option A": lambda: foreign.HandResNet(),
    "by hand, projections": lambda: foreign.HandResNet(lambda *sizes: foreign.HandBlock(*sizes, option="B")),
    "pre-activation": lambda: foreign.HandResNet(foreign.HandPreBlock),
    "unreadable": lambda: foreign.Branching(),
}
LAST = {
    foreign.VisionBasic: "bn2",
    foreign.VisionBottleneck: "bn3",
    foreign.TimmBlock: "bn2",
    foreign.HandBlock: "bn2",
    foreign.HandPreBlock: "conv2",
}


def watched(net, modules, images):
    """What goes into and comes out of modules, copied as it passes."""
    seen, handles = {}, []
    for module in modules:
        handles.append(module.register_forward_pre_hook(lambda m, args: seen.__setitem__((m, "in"), args[0].clone())))
        handles.append(module.register_forward_hook(lambda m, args, out: seen.__setitem__((m, "out"), out.clone())))
    with torch.no_grad():
        net(images)
    for handle in handles:
        handle.remove()
    return seen


def by_hooks(net, images):
    """(slope, increment) indices of a convolutional stand-in from its modules' inputs and outputs."""
    blocks = [module for module in net.modules() if type(module) in LAST]
    parts = [getattr(block, LAST[type(block)]) for block in blocks]
    shortcuts = [getattr(block, "downsample", None) or getattr(block, "shortcut", None) for block in blocks]
    seen = watched(net, [*blocks, *parts, *(s for s in shortcuts if s)], images)
    slope, increment = [], []
    for block, part, shortcut in zip(blocks, parts, shortcuts, strict=True):
        x, y = seen[block, "in"], seen[block, "out"]
        slope.append(ol.nsi(seen[shortcut, "out"] if shortcut else x, seen[part, "out"]))
        increment.append(ol.nsi(x, y - x) if x.shape == y.shape else torch.full((len(x),), torch.nan))
    return torch.stack(slope, 1).double().numpy(), torch.stack(increment, 1).double().numpy()


@pytest.fixture(params=CASES)
def convolutional(request):
    torch.manual_seed(0)
    return foreign.shaken(CASES[request.param]())


def test_both_indices_are_those_of_hooks(convolutional, images):
    slope, increment = by_hooks(convolutional, images)
    for of, wanted in (("slope", slope), ("increment", increment)):
        record = nb.trace(convolutional, images, of=of, batch_size=3)
        np.testing.assert_allclose(record.nsi, wanted, rtol=1e-5)
        assert record.names == tuple(n for n, m in convolutional.named_modules() if type(m) in LAST)
        opens = np.isnan(increment[0])
        opens[0] = True
        assert (record.first == opens).all()
        assert (np.diff(record.stage) == opens[1:]).all()
    assert nb.trace(convolutional, images).of == "slope"


def test_our_network_in_foreign_hands_gives_the_same_indices(public_or_random, images):
    """The same weights, once as a run of the solver and once as found by detection in a network written by hand."""
    net, twin = public_or_random
    ours, theirs = nb.trace(net, images), nb.trace(twin, images)
    np.testing.assert_allclose(theirs.nsi, ours.nsi, rtol=1e-5)
    assert theirs.stage.tolist() == ours.stage.tolist()
    assert theirs.first.tolist() == ours.first.tolist()


@pytest.fixture
def public_or_random():
    from tests.netbridge.networks import lively, plain_twin

    net = lively(nb.resnet(depth=20, widths=(4, 8, 8))).eval()
    return net, plain_twin(net)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("of", ["slope", "increment"])
def test_transformers_make_two_steps_a_block(images, of, in_place):
    net = foreign.Transformer(in_place=in_place).eval()
    seen = watched(net, [m for b in net.blocks for m in (b.norm1, b.attn, b.norm2, b.mlp)], images)
    wanted = [
        ol.nsi(seen[norm, "in"], seen[branch, "out"])
        for block in net.blocks
        for norm, branch in ((block.norm1, block.attn), (block.norm2, block.mlp))
    ]
    record = nb.trace(net, images, of=of)
    np.testing.assert_allclose(record.nsi, torch.stack(wanted, 1), rtol=1e-4)
    assert record.names[:3] == ("blocks.0 (1)", "blocks.0 (2)", "blocks.1 (1)")
    assert record.stage.tolist() == [0] * 6
    assert record.first.tolist() == [True] + [False] * 5


def test_two_branches_in_parallel_are_one_step(images):
    net = foreign.Transformer(block=foreign.ParallelBlock).eval()
    seen = watched(net, [m for b in net.blocks for m in (b, b.attn, b.mlp)], images)
    wanted = [ol.nsi(seen[b, "in"], seen[b.attn, "out"] + seen[b.mlp, "out"]) for b in net.blocks]
    record = nb.trace(net, images)
    assert record.names == ("blocks.0", "blocks.1", "blocks.2")
    np.testing.assert_allclose(record.nsi, torch.stack(wanted, 1), rtol=1e-4)


@pytest.mark.parametrize("norm_first", [True, False])
def test_torch_encoders_hide_their_additions_from_fx_but_not_from_watching(norm_first):
    net = foreign.TorchEncoder(norm_first).eval()
    tokens = torch.randn(4, 7, 12)
    slope, increment = (nb.trace(net, tokens, of=of) for of in ("slope", "increment"))
    assert slope.names == increment.names == tuple(f"encoder.layers.{i} ({j})" for i in (0, 1) for j in (1, 2))
    layers = net.encoder.layers
    seen = watched(net, [m for layer in layers for m in (layer.norm1, layer.norm2, layer.linear2)], tokens)
    first = layers[0]
    if norm_first:  # x' = x + mlp(ln(x)): the second step of a layer starts where its second norm looks
        wanted = ol.nsi(seen[first.norm2, "in"], seen[first.linear2, "out"])
        np.testing.assert_allclose(increment.nsi, slope.nsi, rtol=1e-4)
    else:  # the normalisation after the addition belongs to the step
        wanted = ol.nsi(seen[first.norm1, "out"], seen[first.linear2, "out"])
        x, y = seen[first.norm1, "out"], seen[first.norm2, "out"]
        np.testing.assert_allclose(increment.nsi[:, 1], ol.nsi(x, y - x), rtol=1e-4)
    np.testing.assert_allclose(slope.nsi[:, 1], wanted, rtol=1e-4)


def test_zero_initialised_branches_have_no_stiffness(images):
    assert (nb.trace(foreign.TimmResNet(zero=True).eval(), images).nsi == 0).all()


def test_kept_maps_of_others_are_trajectories_too(images):
    net = foreign.TimmResNet(foreign.TimmSE).eval()
    runs = nb.trace(net, images, keep=True, batch_size=3)
    assert [run.u.shape for run in runs] == [(3, 4, 8, 32, 32), (3, 4, 16, 16, 16)]
    for run, shape in zip(runs, [(2, 4, 8, 1, 1), (2, 4, 16, 1, 1)], strict=True):
        assert run.h.shape == shape
        np.testing.assert_allclose(run.u[1:], np.maximum(run.u[:-1] + run.h * run.slope, 0), atol=1e-5)


class TestBlocks:
    def test_named_blocks_are_a_choice_of_columns(self, images):
        net = foreign.shaken(foreign.VisionResNet(counts=(3, 2)))
        every = nb.trace(net, images)
        for blocks in (["layer2.1", "layer1.1"], [net.layer1[1], net.layer2[1]]):
            some = nb.trace(net, images, blocks=blocks)
            assert some.names == ("layer1.1", "layer2.1")
            np.testing.assert_array_equal(some.nsi, every.nsi[:, [1, 4]])
            assert not some.first.any()
        np.testing.assert_array_equal(nb.trace(net, images, blocks=foreign.VisionBasic).nsi, every.nsi)
        assert nb.trace(net, images, blocks="layer1").names == ("layer1.0", "layer1.1", "layer1.2")

    def test_blocks_that_hide_their_branch_are_watched_at_their_ends(self, images):
        net = foreign.shaken(foreign.HandResNet(Opaque))
        record = nb.trace(net, images, blocks=Opaque)
        assert record.of == "increment"
        assert record.first.tolist() == [True, False, False, True, False]
        assert np.isnan(record.nsi).any(0).tolist() == [False, False, False, True, False]
        torch.testing.assert_close(record.nsi[:, 1], by_ends(net, net.layer1[1], images))
        with pytest.raises(ValueError, match=r"`of` = 'slope' needs the branch .* inside 'layer1.0' no residual"):
            nb.trace(net, images, of="slope", blocks=Opaque)
        with pytest.raises(ValueError, match=r"no residual blocks that could be seen"):
            nb.trace(net, images)

    def test_blocks_that_do_not_exist_are_named(self, images):
        net = foreign.VisionResNet()
        with pytest.raises(ValueError, match=r"`blocks` names 'layer9.0', which `net` does not have; it has \['conv1'"):
            nb.trace(net, images, blocks=["layer9.0"])
        with pytest.raises(ValueError, match=r"`blocks` is empty"):
            nb.trace(net, images, blocks=[])


class Opaque(foreign.HandBlock):
    """Its forward is a single torch function as far as anybody can see."""

    def forward(self, x):
        return Hidden.apply(x, super().forward)


class Hidden(torch.autograd.Function):
    @staticmethod
    def forward(context, x, function):
        with torch._C.DisableTorchFunction():
            return function(x)


def by_ends(net, block, images):
    seen = watched(net, [block], images)
    return ol.nsi(seen[block, "in"], seen[block, "out"] - seen[block, "in"]).double().numpy()


def test_a_network_without_residual_blocks_says_what_was_looked_for(images):
    with pytest.raises(ValueError, match=r"`net` \(Plain\) has no residual blocks .* sums of shortcut\(x\) and"):
        nb.trace(foreign.Plain(), images)


def test_a_pass_that_goes_another_way_is_read_anew(images):
    class Fickle(foreign.HandResNet):
        def forward(self, x):
            return super().forward(x[:, :, ::2, ::2] if float(x.mean()) > 1.0 else x)

    net = foreign.shaken(Fickle())
    record = nb.trace(net, [images, images + 5.0])
    np.testing.assert_allclose(record.nsi[:4], nb.trace(net, images).nsi, rtol=1e-6)
    np.testing.assert_allclose(record.nsi[4:], by_hooks(net, images + 5.0)[0], rtol=1e-5)


def test_a_pass_with_other_steps_is_refused(images):
    class Shorter(foreign.HandResNet):
        def forward(self, x):
            if float(x.mean()) > 1.0:
                return self.linear(F.avg_pool2d(self.layer2(F.relu(self.bn1(self.conv1(x)))), 16).flatten(1))
            return super().forward(x)

    with pytest.raises(ValueError, match=r"`net` did something else with these images than with the first ones"):
        nb.trace(foreign.shaken(Shorter()), [images, images + 5.0])


class TestGraph:
    """The rules on graphs written down by hand; shape (5, 4) throughout, 5 images."""

    def graph(self, *operations, outputs=None):
        listed = [Operation("input", (), shape=(5, 4))]
        for name, *inputs in operations:
            pair = (inputs[0], inputs[1] if len(inputs) > 1 else None)
            listed.append(Operation(name, tuple(inputs), pair, (5, 4)))
        return Graph(listed, outputs or [len(listed) - 1])

    def test_a_step_is_a_sum_of_a_state_and_what_comes_from_it(self):
        (step,) = self.graph(("linear", 0), ("linear", 1), ("add", 2, 1)).steps()
        assert (step.addition, step.shortcut.path, step.state, step.identity) == (3, (1,), 1, True)

    def test_an_activation_after_a_sum_belongs_to_the_step(self):
        first, second = self.graph(("f", 0), ("add", 1, 0), ("relu", 2), ("f", 3), ("add", 3, 4), ("relu", 5)).steps()
        assert (first.after, second.state, second.after) == (3, 3, 6)

    def test_after_the_last_sum_of_a_pre_activation_network_comes_the_head(self):
        steps = self.graph(
            ("f", 0), ("add", 0, 1), ("f", 2), ("add", 2, 3), ("batch_norm", 4), ("relu", 5), ("linear", 6)
        ).steps()
        assert [step.after for step in steps] == [2, 4]

    def test_sums_inside_a_branch_are_no_steps(self):
        (step,) = self.graph(("f", 0), ("g", 1), ("add", 1, 2), ("f", 3), ("add", 4, 0)).steps()
        assert step.addition == 5

    def test_a_skip_around_a_chain_of_steps_is_no_step(self):
        chain = [("f", 0), ("f", 1), ("add", 1, 2), ("f", 3), ("add", 3, 4), ("f", 5), ("add", 6, 1)]
        assert [step.addition for step in self.graph(*chain).steps()] == [3, 5]

    def test_dropout_and_identity_are_seen_through(self):
        (step,) = self.graph(("f", 0), ("dropout", 1), ("identity", 0), ("add", 2, 3)).steps()
        assert (step.state, step.shortcut.path) == (0, (1,))

    def test_a_gate_is_what_a_branch_is_multiplied_by(self):
        (step,) = self.graph(("f", 0), ("g", 1), ("sigmoid", 2), ("mul", 3, 1), ("add", 4, 0)).steps()
        assert step.branches[0].place == (4, (1,))
        assert [(factor.place, factor.live) for factor in step.factors] == [((4, (0,)), True)]

    def test_a_gate_of_an_element_by_itself_is_an_activation(self):
        (step,) = self.graph(("f", 0), ("sigmoid", 1), ("mul", 2, 1), ("add", 3, 0)).steps()
        assert step.branches[0].place == (4, (0,))
        assert step.factors == ()

    def test_a_product_of_two_halves_is_no_gate(self):
        (step,) = self.graph(("f", 0), ("g", 0), ("mul", 1, 2), ("add", 3, 0)).steps()
        assert step.factors == ()

    def test_sums_of_two_long_branches_or_of_constants_are_no_steps(self):
        assert self.graph(("f", 0), ("relu", 1), ("g", 0), ("relu", 3), ("add", 2, 4)).steps() == []
        assert self.graph(("f", 0), ("add", 1, 1)).steps() == []

    def test_what_leads_to_no_output_is_no_step(self):
        assert self.graph(("f", 0), ("add", 0, 1), ("g", 0), outputs=[3]).steps() == []

    def test_a_projection_opens_a_stage(self):
        steps = self.graph(("f", 0), ("add", 0, 1), ("f", 2), ("relu", 3), ("f", 4), ("p", 2), ("add", 5, 6)).steps()
        assert [step.identity for step in steps] == [True, False]
        assert stages(steps) == ([0, 1], [True, True])

    def test_spellings_of_one_operation(self):
        assert {describe(name, (), {})[0] for name in ("add", "iadd", "__add__", "__iadd__", "add_", "__radd__")} == {
            "add"
        }
        assert {describe(name, (), {})[0] for name in ("relu", "ReLU", "relu_")} == {"relu"}


def test_arguments_beyond_the_images_keep_their_defaults(images):
    class Optional(foreign.HandResNet):
        def forward(self, x, scale=None):
            return super().forward(x if scale is None else x * scale)

    assert nb.trace(foreign.shaken(Optional()), images).nsi.shape == (4, 5)


def test_several_outputs_do_not_hide_the_blocks(images):
    class Pyramid(foreign.HandResNet):
        def forward(self, x):
            x = torch.relu(self.bn1(self.conv1(x)))
            low = self.layer1(x)
            return {"low": low, "high": self.layer2(low)}

    assert nb.trace(foreign.shaken(Pyramid()), images).nsi.shape == (4, 5)


def test_a_module_of_nothing_but_a_sum(images):
    class Sum(nn.Module):
        def forward(self, x):
            return x + torch.tanh(x)

    record = nb.trace(Sum(), images)
    assert record.names == ("(1)",)
    np.testing.assert_allclose(record.nsi[:, 0], ol.nsi(images, torch.tanh(images)), rtol=1e-6)


class Part(nn.Module):
    """A branch as a class of its own."""

    def __init__(self, features=4):
        super().__init__()
        self.inner, self.outer = nn.Linear(features, 7), nn.Linear(7, features)

    def forward(self, x):
        return self.outer(torch.tanh(self.inner(x)))


class Reversible(nn.Module):
    """Two halves of a state change in turns (RevNet)."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Part(), Part()

    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        a = a + self.first(b)
        b = b + self.second(a)
        return torch.cat([a, b], 1)


def ratios(pairs):
    return torch.stack([f.norm(dim=1) / u.norm(dim=1) for f, u in pairs], 1).detach().double().numpy()


def test_halves_of_a_state_that_change_in_turns_are_two_steps():
    torch.manual_seed(0)
    net, x = nn.Sequential(nn.Linear(3, 8), Reversible(), Reversible()).double().eval(), torch.randn(5, 3).double()
    state, pairs = net[0](x), []
    for block in net[1:]:
        a, b = state.chunk(2, dim=1)
        middle = a + block.first(b)
        pairs += [(block.first(b), a), (block.second(middle), b)]
        state = block(state)
    record = nb.trace(net, x)
    assert record.names == ("1 (1)", "1 (2)", "2 (1)", "2 (2)")
    np.testing.assert_allclose(record.nsi, ratios(pairs), rtol=1e-12)


def by_momentum(u, parts):
    v = torch.zeros_like(u)
    for part in parts:
        v = 0.9 * v + 0.1 * part(u)
        u = u + v
    return u


def by_leapfrog(u, parts):
    before = u
    for part in parts:
        before, u = u, 2 * u - before + 0.01 * part(u)
    return u


def by_two_streams(u, parts):
    other = torch.tanh(u)
    for part in parts:
        f = part(u)
        u, other = u + 0.5 * other + f, other + 0.1 * f
    return u + other


class Integrator(nn.Module):
    def __init__(self, scheme):
        super().__init__()
        self.stem, self.parts, self.scheme = nn.Linear(3, 4), nn.ModuleList([Part() for _ in range(3)]), scheme

    def forward(self, x):
        return self.scheme(self.stem(x), self.parts)


@pytest.mark.parametrize("scheme", [by_momentum, by_leapfrog, by_two_streams])
def test_branches_that_are_no_part_of_a_step_are_named(scheme):
    torch.manual_seed(0)
    net = Integrator(scheme).eval()
    with pytest.warns(UserWarning, match=r"without \['parts.1', 'parts.2'\]: like branches .* of the class Part"):
        record = nb.trace(net, torch.randn(5, 3))
    assert len(record.names) == 1


class InSlices(Part):
    def forward(self, x):
        y, z = super().forward(x), x.clone()
        z[:, :2] += y[:, :2]
        z[:, 2:] += y[:, 2:]
        return z


def test_steps_that_change_a_slice_of_the_state_are_named():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), InSlices(), InSlices()).eval()
    with pytest.warns(UserWarning, match=r"\['1', '2'\] change a slice of their state"):
        nb.trace(net, torch.randn(5, 3))


@pytest.mark.parametrize("made", [torch.zeros_like, torch.ones_like, lambda x: x.new_full((4,), 0.3)])
def test_what_takes_only_a_shape_from_the_state_is_a_constant(made):
    class Scaled(Part):
        def forward(self, x):
            return x + (0.5 + made(x)) * super().forward(x)

    torch.manual_seed(0)
    net, x = nn.Sequential(Scaled(), Scaled()).double().eval(), torch.randn(5, 4).double()
    record = nb.trace(net, x)
    np.testing.assert_allclose(record.nsi[:, :1], ratios([(Part.forward(net[0], x), x)]), rtol=1e-12)
    assert record.step_sizes.min() == record.step_sizes.max() == pytest.approx(0.5 + float(made(x).flatten()[0]))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_states_have_complex_norms(dtype):
    class Rotation(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4, 4, dtype=dtype) / 3)

        def forward(self, x):
            return x + torch.tanh(x @ self.weight)

    torch.manual_seed(0)
    net, x = nn.Sequential(Rotation(), Rotation()).eval(), torch.randn(5, 4, dtype=dtype)
    slopes = [torch.tanh(x @ net[0].weight), torch.tanh(net[0](x) @ net[1].weight)]
    wanted = ratios(zip(slopes, [x, net[0](x)], strict=True))
    for of in ("slope", "increment"):
        np.testing.assert_allclose(nb.trace(net, x, of=of).nsi, wanted, rtol=100 * torch.finfo(dtype).eps)
    np.testing.assert_allclose(nb.trace(net, 1e30 * x).nsi[:, 0], 0.0, atol=1e-25)


def test_what_a_modules_own_hooks_compute_belongs_to_the_module():
    torch.manual_seed(0)
    net = nn.Sequential(*[nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(3)])
    for block in net:
        block.register_forward_hook(lambda _, args, out: args[0] + out)
    x = torch.randn(3, 6)
    record = nb.trace(net, x)
    assert record.names == ("0", "1", "2")
    np.testing.assert_allclose(record.nsi[:, 0], ol.nsi(x, net[0][1](net[0][0](x))).detach(), rtol=1e-6)
    assert all(len(block._forward_hooks) == 1 and not block._forward_pre_hooks for block in net)


def test_a_module_with_hooks_may_copy_itself_while_it_is_watched():
    class Copying(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(6, 6)
            self.inner.register_forward_hook(lambda module, args, out: None)

        def forward(self, x):
            return x + copy.deepcopy(self.inner)(x)

    torch.manual_seed(0)
    assert nb.trace(nn.Sequential(Copying(), Copying()), torch.randn(3, 6)).names == ("0", "1")


MOMENTA = {  # from a state, the one before it and f(state)
    "heavy ball": lambda x, before, f: (x + f(x)) + 0.9 * (x - before),
    "Nesterov": lambda x, before, f: (v := x + 0.9 * (x - before)) + f(v),
}


@pytest.mark.filterwarnings("ignore:behind the sums")
@pytest.mark.parametrize("move", MOMENTA.values(), ids=MOMENTA.keys())
def test_what_subtracts_an_earlier_state_is_no_mean_of_stages(move):
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.f = nn.Linear(6, 6)

        def forward(self, x):
            f = lambda x: 0.5 * torch.tanh(self.f(x))  # noqa: E731
            before, x = x, x + f(x)
            for _ in range(2):
                before, x = x, move(x, before, f)
            return x

    torch.manual_seed(0)
    record = nb.trace(Shared(), torch.randn(3, 6))
    np.testing.assert_allclose(record.step_sizes, 0.5 * np.ones((3, 3)))


@pytest.mark.filterwarnings("ignore:behind the sums")
def test_a_long_run_of_means_is_read_step_by_step():
    """Each state is a mean of two earlier ones: taken apart whole, its terms double in number from state to state."""

    class Means(nn.Module):
        def __init__(self):
            super().__init__()
            self.f = nn.Linear(6, 6)

        def forward(self, x):
            before, x = x, x + torch.tanh(self.f(x))
            for _ in range(13):
                before, x = x, 0.5 * before + 0.5 * (x + torch.tanh(self.f(x)))
            return x

    torch.manual_seed(0)
    assert len(nb.trace(Means(), torch.randn(3, 6)).names) == 14
