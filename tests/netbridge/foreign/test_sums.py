"""Networks as people write them: sums and factors in all spellings, and passes that differ from the first."""

import copy
import itertools

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import netbridge as nb
import odelab as ol
from tests.netbridge.foreign.residual import WIDTH, Base, literal, stack


@pytest.fixture
def x():
    return torch.randn(6, WIDTH)


# passes that differ from the first


class FirstCall(Base):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls == 1:
            x.abs()
        x = x + self.branch(x)
        y = torch.tanh(x)
        return torch.maximum(torch.maximum(x, y), y)


class EveryOther(Base):
    """Does something more in every second pass."""

    calls = 0

    def forward(self, x):
        type(self).calls += 1
        if type(self).calls % 2:
            x.abs()
        return x + self.branch(x)


class Chunked(Base):
    def forward(self, x):
        return x + torch.cat([self.branch(part) for part in x.split(4)])


class BySize(Base):
    def forward(self, x):
        y = (
            self.branch(x)
            if len(x) > 5
            else torch.tanh(F.linear(x, self.a.weight, self.a.bias).abs() * self.a(x).sign())
        )
        return x + y


@pytest.mark.parametrize("images", [1, 4, 5, 8, 16, 130])
@pytest.mark.parametrize("block", [FirstCall, Chunked, BySize])
def test_every_batch_gets_the_numbers_of_the_formula(block, images):
    net, x = stack(block), torch.randn(images, WIDTH)
    np.testing.assert_allclose(nb.trace(net, x).nsi, literal(net, x), rtol=1e-5)
    np.testing.assert_allclose(nb.trace(net, x, batch_size=3).nsi, literal(net, x), rtol=1e-5)


def test_a_network_that_never_does_the_same_twice_is_refused_or_right(x):
    net = stack(EveryOther, 1)
    with pytest.raises(ValueError, match="4 passes of one batch went different ways"):
        nb.trace(net, x)


# one function, one index, however it is written


class Spelled(nn.Module):
    """x + h tanh(a(x)), h = 0.1, written in one of many ways."""

    def __init__(self, how):
        super().__init__()
        self.how = how
        self.a = nn.Linear(WIDTH, WIDTH)
        self.h, self.one, self.row = (nn.Parameter(0.1 * torch.ones(size)) for size in ((), (1,), (WIDTH,)))

    def branch(self, x):
        return torch.tanh(self.a(x))

    def forward(self, x):
        return WAYS[self.how](self, x, self.branch(x))


WAYS = {
    "0.1 * y": lambda s, x, y: x + 0.1 * y,
    "y * 0.1": lambda s, x, y: y * 0.1 + x,
    "y / 10": lambda s, x, y: x + y / 10,
    "div": lambda s, x, y: x + torch.div(y, 10.0),
    "alpha": lambda s, x, y: torch.add(x, y, alpha=0.1),
    "method alpha": lambda s, x, y: x.add(y, alpha=0.1),
    "in place": lambda s, x, y: x.clone().add_(y.mul_(0.1)),
    "scalar": lambda s, x, y: x + s.h * y,
    "row": lambda s, x, y: x + s.row * y,
    "twice": lambda s, x, y: x + (s.h / 0.5) * (y * 0.5),
    "two factors": lambda s, x, y: x + 2 * (s.row * y) / 2,
    "divisor": lambda s, x, y: x + y / (1 / s.row),
    "live": lambda s, x, y: x + (y * 0 + 0.1) * y,
    "minus": lambda s, x, y: x - 0.1 * (-y),
    "minus minus": lambda s, x, y: x - (-0.1) * y,
    "sub alpha": lambda s, x, y: torch.sub(x, y, alpha=-0.1),
    "addcmul": lambda s, x, y: torch.addcmul(x, y, s.row),
    "addcmul value": lambda s, x, y: torch.addcmul(x, s.one, y, value=1.0),
    "addcdiv": lambda s, x, y: torch.addcdiv(x, y, 1 / s.row),
    "sum": lambda s, x, y: sum([x, 0.1 * y]),
    "stack": lambda s, x, y: torch.stack([x, 0.1 * y]).sum(0),
    "stack, last axis": lambda s, x, y: torch.stack([x, y * s.h], -1).sum(-1),
    "keyword": lambda s, x, y: torch.add(input=x, other=y * s.h),
    "layout": lambda s, x, y: x + (s.row * y).unflatten(1, (2, 4)).flatten(1),
    "dropout": lambda s, x, y: x + F.dropout(y * 0.1, 0.5, s.training),
}


@pytest.mark.parametrize("how", WAYS)
def test_constant_factors_are_step_sizes_however_they_are_spelled(how, x):
    torch.manual_seed(2)
    net = nn.Sequential(*[Spelled(how) for _ in range(3)]).eval()
    wanted = literal(net, x)
    both = nb.trace(net, x, of=("slope", "increment"))
    np.testing.assert_allclose(both["slope"].nsi, wanted, rtol=1e-5)
    np.testing.assert_allclose(both["increment"].nsi, 0.1 * wanted, rtol=1e-4)
    (run,) = nb.trace(net, x, keep=True)
    h = run.h.reshape(*run.h.shape, *[1] * (run.slope.ndim - run.h.ndim))
    np.testing.assert_allclose(run.u[1:], run.u[:-1] + h * run.slope, atol=1e-6)


class Sum(Base):
    def __init__(self, how=None):
        super().__init__()
        self.b = nn.Linear(WIDTH, WIDTH)
        self.how = how

    def forward(self, x):
        return SUMS[self.how][0](self, x, self.branch(x))


def shown(x, change):
    change(x)
    return x


def added(x, view, y):
    x += y
    return view


SUMS = {
    "lerp": (lambda s, x, y: torch.lerp(x, y, 0.25), lambda s, x: s.branch(x) - x, 0.25),
    "lerp from the branch": (lambda s, x, y: torch.lerp(y, x, 0.25), lambda s, x: s.branch(x) - x, 0.75),
    "lerp in place": (lambda s, x, y: x.clone().lerp_(x + y, 0.25), lambda s, x: s.branch(x), 0.25),
    "in double precision": (lambda s, x, y: (x.double() + y.double()).float(), lambda s, x: s.branch(x), 1.0),
    "three": (lambda s, x, y: x + y - s.b(x), lambda s, x: s.branch(x) - s.b(x), 1.0),
    "stack of three": (
        lambda s, x, y: torch.stack([y, x, s.b(x)]).sum(0),
        lambda s, x: s.branch(x) + s.b(x),
        1.0,
    ),
    "in place": (lambda s, x, y: y.add_(x).sub_(s.b(x)), lambda s, x: s.branch(x) - s.b(x), 1.0),
    "product": (lambda s, x, y: torch.addcmul(x, y, s.b(x)), lambda s, x: s.branch(x) * s.b(x), 1.0),
    "minus": (lambda s, x, y: x - y, lambda s, x: s.branch(x), -1.0),
    "minus a minus": (lambda s, x, y: y - (-x), lambda s, x: s.branch(x), 1.0),
    "into the factor": (lambda s, x, y: x + (0 * y + 0.25).mul_(y), lambda s, x: s.branch(x), 0.25),
    "like the state": (lambda s, x, y: x + (0.25 * y).type_as(x).view_as(x).to(x), lambda s, x: s.branch(x), 0.25),
    "properties": (lambda s, x, y: x + (0.25 * y).data[:, None].mT.mT.squeeze(1), lambda s, x: s.branch(x), 0.25),
    "typed": (lambda s, x, y: x + (0.25 * y).type(torch.float64).cpu().float(), lambda s, x: s.branch(x), 0.25),
    # What is changed in place is changed for everything that shows its memory.
    "in a view": (
        lambda s, x, y: shown(x.clone(), lambda x: x[:, None].flatten(1).add_(y)),
        lambda s, x: s.branch(x),
        1.0,
    ),
    "in another shape": (
        lambda s, x, y: (x.unflatten(-1, (2, 4)) + 0.5 * y.unflatten(-1, (2, 4))).flatten(-2),
        lambda s, x: s.branch(x),
        0.5,
    ),
    "under a view": (lambda s, x, y: added(u := x.clone(), u.view(-1), y).view_as(x), lambda s, x: s.branch(x), 1.0),
    # A cast to whole numbers is no cast of one function to itself: what stands before it is not the slope.
    "to": (lambda s, x, y: x + 0.5 * (3 * y).to(torch.int32), lambda s, x: (3 * s.branch(x)).trunc(), 0.5),
    "to and back": (lambda s, x, y: x + (3 * y).to(torch.int64).to(x), lambda s, x: (3 * s.branch(x)).trunc(), 1.0),
    "int": (lambda s, x, y: x + 0.5 * (3 * y).int(), lambda s, x: (3 * s.branch(x)).trunc(), 0.5),
    "type": (lambda s, x, y: x + (3 * y).type(torch.int16), lambda s, x: (3 * s.branch(x)).trunc(), 1.0),
    "type_as": (lambda s, x, y: x + (3 * y).type_as(torch.arange(1)), lambda s, x: (3 * s.branch(x)).trunc(), 1.0),
    "bool": (lambda s, x, y: x + 0.5 * (3 * y).relu().to(torch.bool), lambda s, x: (s.branch(x) > 0) * 1.0, 0.5),
    "floor": (
        lambda s, x, y: x + torch.div(3 * y, 1, rounding_mode="floor"),
        lambda s, x: (3 * s.branch(x)).floor(),
        1.0,
    ),
    # Factors that no product spells belong to the slope.
    "diagonal": (lambda s, x, y: x + y @ torch.diag(s.b.bias), lambda s, x: s.branch(x) * s.b.bias, 1.0),
    "einsum": (lambda s, x, y: x + torch.einsum("nc,c->nc", y, s.b.bias), lambda s, x: s.branch(x) * s.b.bias, 1.0),
    "where": (lambda s, x, y: x + torch.where(s.b.bias > 0, y, 0 * y), lambda s, x: s.branch(x) * (s.b.bias > 0), 1.0),
}


@pytest.mark.parametrize("how", SUMS)
def test_sums_are_seen_however_they_are_written(how, x):
    torch.manual_seed(2)
    net = nn.Sequential(*[Sum(how) for _ in range(3)])
    _, slope, size = SUMS[how]
    record = nb.trace(net, x)
    np.testing.assert_allclose(record.nsi, literal(net, x, slope), rtol=1e-5)
    np.testing.assert_allclose(record.step_sizes, size)
    assert record.stage.tolist() == [0, 0, 0]


def copied(x, y):
    x.copy_(x + y)
    return x


def assigned(x, y):
    x[:] = x + y
    return x


def assigned_everywhere(x, y):
    x[...] = torch.add(x, y)
    return x


@pytest.mark.parametrize("change", [copied, assigned, assigned_everywhere])
def test_a_state_whose_memory_takes_the_next_one_has_moved(change, x):
    class Copying(Base):
        def forward(self, x):
            return change(x, self.branch(x))

    net = stack(Copying)
    slope, increment = nb.trace(net, x, of=("slope", "increment"))
    np.testing.assert_allclose(slope.nsi, literal(stack(Base), x), rtol=1e-5)
    np.testing.assert_allclose(increment.nsi, slope.nsi, rtol=1e-5)


def test_a_branch_of_one_number_for_a_whole_map_is_named():
    class Context(nn.Module):
        """As in GCNet: what is added is the same at every place."""

        def __init__(self, centred=False):
            super().__init__()
            self.f, self.centred = nn.Conv2d(3, 3, 1), centred

        def forward(self, x):
            mean = x.mean((2, 3), keepdim=True)
            return x - mean if self.centred else x + torch.tanh(self.f(mean))

    class Local(nn.Module):
        def __init__(self):
            super().__init__()
            self.f = nn.Conv2d(3, 3, 1)

        def forward(self, x):
            return x + torch.tanh(self.f(x))

    images = torch.randn(2, 3, 4, 4)
    with pytest.warns(UserWarning, match=r"without sums in \['1'\].* or which are broadcast"):
        assert nb.trace(nn.Sequential(Local(), Context(), Local()), images).names == ("0", "2")
    assert nb.trace(nn.Sequential(Local(), Context(centred=True), Local()), images).names == ("0", "2")  # not a word


class OutOfSight(Base):
    """Its activation is no torch function."""

    def branch(self, x):
        return torch.from_numpy(np.tanh(self.a(x).detach().numpy()))

    def forward(self, x):
        return x + torch.sigmoid(x.mean(1, keepdim=True)) * self.branch(x)


class HalfOutOfSight(OutOfSight):
    def forward(self, x):
        return x + torch.tanh(self.a(x)) + self.branch(x)


@pytest.mark.parametrize("block", [OutOfSight, HalfOutOfSight])
def test_a_branch_that_torch_does_not_show_is_refused_and_measured_at_its_ends(block, x):
    net = stack(block)
    for blocks in (None, block):
        with pytest.raises(ValueError, match=r"adds or multiplies, in '0', what comes from no function of torch's"):
            nb.trace(net, x, of="slope", blocks=blocks)
    record = nb.trace(net, x, blocks=block)
    assert record.of == "increment"
    np.testing.assert_allclose(record.nsi, literal(net, x, lambda block, x: block(x) - x), rtol=1e-5)


def test_a_gate_that_torch_does_not_show_is_a_step_size_all_the_same(x):
    class Gated(Base):
        def forward(self, x):
            y = self.branch(x)
            return x + y * torch.from_numpy(y.mean(1, keepdim=True).detach().numpy() + 1.0)

    net = stack(Gated)
    np.testing.assert_allclose(nb.trace(net, x).nsi, literal(net, x), rtol=1e-5)


def test_the_index_of_a_state_that_is_multiplied_is_relative_to_the_state(x):
    """f + 2 x = 2 (x + f / 2): the step size is 1/2, and nothing opens."""

    class Doubled(Base):
        def forward(self, x):
            return torch.add(self.branch(x), x, alpha=2)

    net = stack(Doubled)
    slope, increment = both = nb.trace(net, x, of=("slope", "increment"))
    np.testing.assert_allclose(slope.nsi, literal(net, x), rtol=1e-5)
    np.testing.assert_allclose(increment.nsi, literal(net, x, lambda block, x: block(x) - x), rtol=1e-5)
    np.testing.assert_allclose(both.step_sizes, 0.5)
    assert both.first.tolist() == [True, False, False]


@pytest.mark.parametrize(
    "change",
    [lambda x: x.to(torch.int64), torch.round, torch.abs, lambda x: x * x],
    ids=["cast", "round", "abs", "square"],
)
def test_a_state_that_is_changed_on_its_way_is_no_shortcut(change, x):
    class Changed(Base):
        def forward(self, x):
            return change(x) + self.branch(x)

    with pytest.raises(ValueError, match="no residual blocks that could be seen"):
        nb.trace(stack(Changed), x)


def test_a_shortcut_as_long_as_its_branch_is_the_one_without_an_activation(x):
    class Halved(Base):
        def shortcut(self, x):
            return F.pad(x[:, ::2], (0, WIDTH // 2))

        def forward(self, x):
            return self.branch(x) + self.shortcut(x)

    net = nn.Sequential(Base(), Halved(), Base())
    record = nb.trace(net, x)
    assert record.first.tolist() == [True, True, False]
    with torch.no_grad():
        state = net[0](x)
        wanted = ol.nsi(net[1].shortcut(state), net[1].branch(state))
    np.testing.assert_allclose(record.nsi[:, 1], wanted, rtol=1e-6)


def test_blocks_like_the_found_ones_without_a_step_are_named(x):
    class Sometimes(Base):
        def __init__(self):
            super().__init__()
            self.hidden = False

        def forward(self, x):
            if self.hidden:
                return torch.einsum("kij->ij", torch.stack([x, self.branch(x)]))
            return x + self.branch(x)

    net = stack(Sometimes, 4)
    nb.trace(net, x)
    net[2].hidden = True
    with pytest.warns(UserWarning, match=r"without the blocks \['2'\].* class Sometimes"):
        assert nb.trace(net, x).names == ("0", "1", "3")


UNEXPLAINED = {
    "addmm": lambda f, x: torch.addmm(x, torch.tanh(x), f.weight),
    "index_add": lambda f, x: x.index_add(0, torch.arange(len(x)), torch.tanh(f(x))),
    "cat": lambda f, x: torch.cat([x[None], torch.tanh(f(x))[None]]).sum(0),
    "mean": lambda f, x: 2 * torch.stack([x, torch.tanh(f(x))]).mean(0),
    "rows beside the images": lambda f, x: folded(f, x.unflatten(1, (2, -1)).flatten(0, 1)).view_as(x),
}


def folded(f, rows):
    return rows + torch.tanh(rows @ f.weight[:4, :4])


@pytest.mark.parametrize("how", UNEXPLAINED)
def test_sums_that_are_no_known_steps_are_named(how, x):
    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            self.f = nn.Linear(WIDTH, WIDTH)

        def forward(self, x):
            return UNEXPLAINED[how](self.f, x)

    torch.manual_seed(1)
    net = nn.Sequential(Base(), Other(), Base())
    with pytest.warns(UserWarning, match=r"without sums in \['1'\]"):
        assert nb.trace(net, x).names == ("0", "2")


class Recalling(nn.Module):
    """Steps x + f(x) into which the first state comes again, in one of several ways."""

    def __init__(self, update):
        super().__init__()
        self.layers, self.update = stack(lambda: nn.Linear(WIDTH, WIDTH)), update

    def forward(self, first):
        x = first
        for layer in self.layers:
            x = self.update(x, first, lambda u, layer=layer: torch.tanh(layer(u)))
        return x


BEHIND = {
    "the first state": lambda x, first, f: x + f(x) + 0.1 * first,
    "a constant": lambda x, first, f: x + f(x) + 0.1,
    "what was computed of the first state": lambda x, first, f: x + f(x) - torch.relu(first),
}
MIXED = {
    "APPNP with a skip": lambda x, first, f: x + (f(x) + 0.1 * first),
    "the first state ahead": lambda x, first, f: 0.1 * first + x + f(x),
    "GCNII": lambda x, first, f: x + f(0.9 * x + 0.1 * first),
}


@pytest.mark.parametrize("how", BEHIND)
def test_what_is_added_behind_a_step_is_told(how, x):
    net = Recalling(BEHIND[how])
    with pytest.warns(UserWarning, match="behind the sums of the steps .* something else is added"):
        found = nb.trace(net, x)
    assert len(found.names) == 3
    last = net.layers[2]
    with torch.no_grad():
        states = [x]
        for layer in net.layers:
            states.append(net.update(states[-1], x, lambda u, layer=layer: torch.tanh(layer(u))))
        np.testing.assert_allclose(found.nsi[:, 2], ol.nsi(states[2], torch.tanh(last(states[2]))), rtol=1e-5)


@pytest.mark.parametrize("how", MIXED)
def test_a_first_state_that_is_mixed_into_later_ones_is_no_state_of_theirs(how, x):
    """Only the first of the three steps starts from the state that comes in again."""
    net = Recalling(MIXED[how])
    with pytest.warns(UserWarning, match=r"without sums in \['Recalling'\]: they mix an earlier state"):
        found = nb.trace(net, x)
    assert found.names == ("(1)",)


class Greedy(Base):
    """Writes its sum into what it was given."""

    def forward(self, x):
        x += self.branch(x)
        return x


@pytest.mark.parametrize("scale", [1.0, 1e-30])
def test_a_network_may_overwrite_its_images(scale, x):
    """Numbers near the limits of single precision take a second pass, for which the images must be what they were."""
    net, images = stack(Greedy), scale * x
    for block in net:
        nn.init.zeros_(block.a.bias)
    before = images.clone()
    wanted = literal(copy.deepcopy(net).double(), before.double())
    np.testing.assert_allclose(nb.trace(net, images).nsi, wanted, rtol=1e-4)
    assert torch.equal(images, before)
    states = nb.block_states(net, images, blocks=Greedy)
    assert torch.equal(states["0"], before)
    assert torch.equal(images, before)


class TokensFirst(nn.Module):
    """Works on (tokens, images, features) inside or not, with one token more than it is given."""

    def __init__(self, swapped):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.layers = nn.ModuleList(Base() for _ in range(3))
        self.swapped = swapped

    def forward(self, x):
        x = torch.cat([self.first.expand(len(x), 1, WIDTH), x], 1)
        x = x.transpose(0, 1) if self.swapped else x
        for layer in self.layers:
            x = layer(x)
        return x.mean(0 if self.swapped else 1)


@pytest.mark.parametrize(("images", "tokens"), [(1, 4), (4, 3), (4, 4), (5, 4), (5, 5), (6, 4)])
@pytest.mark.parametrize("of", ["slope", "increment"])
def test_images_may_stand_along_another_axis_inside(images, tokens, of):
    """Also where there are as many tokens as images."""
    inside, outside = TokensFirst(True), TokensFirst(False)
    x = torch.randn(images, tokens, WIDTH)
    np.testing.assert_allclose(nb.trace(inside, x, of=of).nsi, nb.trace(outside, x, of=of).nsi, rtol=1e-5)


def test_as_many_tokens_as_images_do_no_harm_behind_them():
    net, x = stack(Base), torch.randn(5, 4, WIDTH)
    joined = nn.Sequential(nn.ZeroPad2d((0, 0, 0, 1)), net)  # five tokens, and five images in the first pass
    np.testing.assert_allclose(nb.trace(joined, x).nsi, literal(net, joined[0](x)), rtol=1e-5)


class PicksTheLast(Base):
    """Its new state is the last of a stack, as a solver returns its states: the samples stand along the second axis."""

    def forward(self, x):
        return torch.stack([x, x + self.branch(x)])[-1]


def test_an_index_ahead_of_the_samples_keeps_them(x):
    net = stack(PicksTheLast)
    np.testing.assert_allclose(nb.trace(net, x).nsi, literal(net, x), rtol=1e-6)


class TakesAMask(Base):
    """Its sum is one that a trace does not see, so that it is measured at its ends."""

    def forward(self, state, mask=None):
        return torch.einsum("kij->ij", torch.stack([state, mask * self.branch(state)]))


class GivesTheMaskFirst(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(TakesAMask() for _ in range(3))

    def forward(self, x):
        for block in self.blocks:
            x = block(mask=torch.ones(len(x), 1), state=x)
        return x


def test_the_state_of_a_block_is_the_first_that_its_forward_takes(x):
    net = GivesTheMaskFirst().eval()
    wanted = literal(net.blocks, x, TakesAMask.branch, lambda block, x: block(x, torch.ones(len(x), 1)))
    np.testing.assert_allclose(nb.trace(net, x, of="increment", blocks=TakesAMask).nsi, wanted, rtol=1e-6)
    states = nb.block_states(net, x, blocks=TakesAMask)
    assert torch.equal(states["blocks.0"], x)


# branches that see something beside the state


class Conditioned(nn.Module):
    """Two inputs, a state and a context: attention to the context, then a perceptron shifted and gated by it."""

    def __init__(self):
        super().__init__()
        self.start = nn.Linear(WIDTH, WIDTH)
        self.cross = nn.ModuleList(nn.MultiheadAttention(WIDTH, 2, batch_first=True) for _ in range(2))
        self.mlp = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2))
        self.modulate = nn.Linear(WIDTH, 2 * WIDTH)

    def forward(self, x, context):
        x, self.states, self.slopes = self.start(x), [], []
        shift, gate = self.modulate(context.mean(1, keepdim=True)).chunk(2, dim=-1)
        for cross, mlp in zip(self.cross, self.mlp, strict=True):
            for slope, size in (
                (lambda u, f=cross: f(u, context, context)[0], 1.0),
                (lambda u, f=mlp: torch.tanh(f(u) + shift), gate),
            ):
                f = slope(x)
                self.states.append(x), self.slopes.append(f)
                x = x + size * f
        return x


class Decoding(Conditioned):
    """The context is computed from the same input, by residual steps, after the first state."""

    def forward(self, x):
        context = torch.relu(x[:, :2] @ self.start.weight) + 1.0
        return super().forward(x, context)


@pytest.mark.parametrize("decoding", [False, True])
def test_a_branch_may_see_something_else_beside_the_state(decoding):
    torch.manual_seed(0)
    net = (Decoding() if decoding else Conditioned()).double().eval()
    tokens, context = torch.randn(6, 5, WIDTH, dtype=torch.float64), torch.randn(6, 3, WIDTH, dtype=torch.float64)
    batch = tokens if decoding else [(tokens, context)]
    record = nb.trace(net, batch, call=None if decoding else lambda net, batch: net(*batch))
    with torch.no_grad():
        net(tokens) if decoding else net(tokens, context)
    wanted = torch.stack([ol.nsi(x, f) for x, f in zip(net.states, net.slopes, strict=True)], 1)
    np.testing.assert_allclose(record.nsi, wanted, rtol=1e-12)
    assert len(set(record.stage)) == 1


def test_every_step_of_torchs_decoder_is_found():
    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.transformer = nn.Transformer(WIDTH, 2, 1, 2, 16, batch_first=True)

        def forward(self, x):
            return self.transformer(x, x[:, :3].flip(1))

    record = nb.trace(Decoder(), torch.randn(4, 5, WIDTH))
    assert [name.partition("layers.")[2] for name in record.names] == [
        *("0 (1)", "0 (2)"),
        *("0 (1)", "0 (2)", "0 (3)", "1 (1)", "1 (2)", "1 (3)"),
    ]


class Recalibrated(Base):
    """Multiplies the sum by a gate that is computed from the state, behind the sum."""

    def forward(self, x):
        return (x + self.branch(x)) * torch.sigmoid(x.mean(1))[:, None]


def test_a_layout_of_a_gate_behind_the_sum_is_none_of_the_state(x):
    net = stack(Recalibrated)
    states = [x]
    for block in net:
        states.append(block(states[-1]).detach())
    moved = [((new - old).norm(dim=1) / old.norm(dim=1)).numpy() for old, new in itertools.pairwise(states)]
    np.testing.assert_allclose(nb.trace(net, x, of="increment").nsi, np.stack(moved, 1), rtol=1e-5)


# stages


class Windowed(nn.Module):
    """Attention on (B, H, W, C), a perceptron on (B, H W, C), as in Swin; one halving between two stages."""

    def __init__(self):
        super().__init__()
        self.mix = nn.ModuleList(nn.Linear(c, c) for c in (4, 4, 8, 8))
        self.mlp = nn.ModuleList(nn.Linear(c, c) for c in (4, 4, 8, 8))
        self.halve = nn.Linear(16, 8)

    def forward(self, x):
        side = 4
        for i, (mix, mlp) in enumerate(zip(self.mix, self.mlp, strict=True)):
            if i == 2:
                x = self.halve(x.reshape(len(x), 2, 2, 2, 2, 4).transpose(2, 3).reshape(len(x), 2, 2, 16))
                side = 2
            x = x + torch.tanh(mix(x))
            x = x.flatten(1, 2)
            x = x + torch.tanh(mlp(x))
            x = x.unflatten(1, (side, side))
        return x.mean((1, 2))


def test_a_change_of_layout_opens_no_stage():
    record = nb.trace(Windowed(), torch.randn(3, 4, 4, 4))
    assert record.stage.tolist() == [0] * 4 + [1] * 4
    assert record.first.tolist() == [True, False, False, False] * 2
