"""What a trace decided can be read, is kept with the record, and can be decided otherwise."""

import inspect

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import netbridge as nb
import odelab as ol

WIDTH = 6


class Block(nn.Module):
    """x + scale * (gate of the features' mean) * swish(b(x)), with swish by hand."""

    def __init__(self, out=WIDTH):
        super().__init__()
        self.a, self.b = nn.Linear(WIDTH, 1), nn.Linear(WIDTH, out)
        self.scale = nn.Parameter(torch.full((out,), 0.5))
        self.short = nn.Identity() if out == WIDTH else nn.Linear(WIDTH, out)

    def forward(self, x):
        gate, y = torch.sigmoid(self.a(x)), self.b(x)
        y = y * torch.sigmoid(y)
        return self.short(x) + self.scale * (gate * y)


class Bilinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return x + F.relu(self.a(x)) * self.b(x)


def line_of(kind, text):
    lines, start = inspect.getsourcelines(kind.forward)
    return f"test_explain.py:{start + next(k for k, line in enumerate(lines) if text in line)}"


@pytest.fixture
def x():
    torch.manual_seed(0)
    return torch.randn(4, WIDTH)


def network(*blocks):
    torch.manual_seed(1)
    return nn.Sequential(*[block() for block in blocks]).eval()


def test_what_torch_alone_calls_has_no_line(x):
    first, second = nb.explain(network(lambda: nn.Linear(WIDTH, WIDTH), Block, Block), x).steps
    assert first.state == f"linear in 0  (N, {WIDTH})"
    assert second.line.endswith(line_of(Block, "return"))


def test_every_step_is_explained_by_its_lines(x):
    explanation = nb.explain(network(Block, Block, lambda: Block(4)), x)
    first, second, last = explanation.steps
    assert [step.name for step in explanation.steps] == ["0", "1", "2"]
    assert first.line.endswith(line_of(Block, "return"))
    assert first.code.startswith("return self.short(x) + self.scale")
    assert [factor.what for factor in second.counted] == ["1.scale", "sigmoid in 1"]
    assert [factor.reason for factor in second.counted] == ["parameter", "fewer numbers than the branch"]
    (left,) = second.left
    assert left.line.endswith(line_of(Block, "y * torch"))
    assert left.reason.startswith("activation")
    assert (first.opening, second.opening) == ("the first step", "")
    assert last.opening.startswith("the shortcut is linear in 2.short")
    for text in ("1.scale", "fewer numbers", "activation", "axis 0", "opening      no"):
        assert text in str(explanation)


def test_a_decision_that_could_be_another_is_a_note_and_an_argument(x, tmp_path):
    net = network(Bilinear, Bilinear, Bilinear)
    record, where = nb.trace(net, x), line_of(Bilinear, "return")
    (note,) = record.notes
    assert where in note
    assert "factors=" in note
    assert "1 note" in repr(record)
    assert nb.Record.load(record.save(tmp_path / "record.npz")).notes == record.notes
    assert record.counted().notes == record.notes
    np.testing.assert_allclose(record.step_sizes, 1.0)
    with torch.no_grad():
        f, g = F.relu(net[0].a(x)), net[0].b(x)
    for what, slope, size in (("left", g, f), ("right", f, g), ("slope", f * g, torch.ones_like(f))):
        chosen = nb.trace(net, x, factors={where: what})
        np.testing.assert_allclose(chosen.nsi[:, 0], ol.nsi(x, slope), rtol=1e-5)
        np.testing.assert_allclose(chosen.step_sizes[:, 0], size.mean(1), rtol=1e-5, atol=1e-7)


def test_a_factor_may_be_made_a_part_of_the_slope(x):
    net = network(Block, Block, Block)
    chosen = nb.trace(net, x, factors={line_of(Block, "return"): "slope"})
    with torch.no_grad():
        np.testing.assert_allclose(chosen.nsi[:, 0], ol.nsi(x, net[0](x) - x), rtol=1e-5)
    np.testing.assert_allclose(chosen.step_sizes, 1.0)
    alone = nb.trace(net, x, factors={"1": "slope"}).step_sizes
    assert (alone[:, 1] == 1.0).all()
    assert (alone[:, [0, 2]] != 1.0).all()


def test_a_function_decides_product_by_product(x):
    net, line = network(Block, Block, Block), line_of(Block, "return")
    seen = set()

    def decide(module, where):
        seen.add((module, where.rpartition("/")[2]))
        return "slope" if module == "1" and where.endswith(line) else None

    found, wanted = nb.trace(net, x, factors=decide), nb.trace(net, x)
    with torch.no_grad():
        state = net[0](x)
        np.testing.assert_allclose(found.nsi[:, 1], ol.nsi(state, net[1](state) - state), rtol=1e-5)
    assert (found.step_sizes[:, 1] == 1.0).all()
    np.testing.assert_array_equal(found.nsi[:, [0, 2]], wanted.nsi[:, [0, 2]])
    assert ("2", line) in seen
    with pytest.raises(ValueError, match="`factors` must say one of"):
        nb.trace(net, x, factors=lambda module, where: "gate")


def test_every_row_of_our_networks_says_what_its_block_is():
    net, images = nb.resnet(14, controller="se"), torch.randn(3, 3, 16, 16)
    explanation, record = nb.explain(net, images), nb.trace(net, images)
    assert tuple(step.name for step in explanation.steps) == record.names
    assert [bool(step.opening) for step in explanation.steps] == record.first.tolist()
    second = explanation.steps[1]
    assert second.slope == ("Branch in stages.0.blocks.1.branch  (N, 16, 16, 16)",)
    assert second.code == "a step of EULER"
    assert second.counted[0][:2] == ("SE in stages.0.blocks.1.controller", "(N, 16, 1, 1)")
    assert explanation.steps[2].opening.startswith("the shortcut is Padding")
    (plain,) = nb.explain(nb.resnet(8, controller="constant(0.5)"), images).steps[0].counted
    assert (plain.what, plain.reason) == ("0.5", "a constant")


class Between(nn.Module):
    """A residual step, a solver of torchdiffeq, and another residual step."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        torchdiffeq = pytest.importorskip("torchdiffeq")
        x = x + torch.tanh(self.a(x))
        x = torchdiffeq.odeint(lambda t, y: torch.tanh(self.a(y)), x, torch.linspace(0, 1, 3), method="midpoint")[-1]
        return x + torch.tanh(self.a(x))


def test_every_step_of_a_solver_has_a_row(x):
    net = network(Between)
    explanation, record = nb.explain(net, x), nb.trace(net, x)
    assert tuple(step.name for step in explanation.steps) == record.names
    first, *solver, last = explanation.steps
    assert [step.counted[0][::3] for step in solver] == [("0.5", "the solver's step")] * 2
    assert [step.opening for step in solver] == ["the first step of a solver", ""]
    assert (first.opening, last.opening) == ("the first step", "behind the steps of a solver")


def test_the_weights_of_a_tableau_are_numbers_and_a_parameter_is_named_behind_a_layout(x):
    (step, *_) = nb.explain(Flow("RK4", 2), x).steps
    assert step.counted[-1][::3] == ("1 + 2 + 2 + 1", "weights of a tableau")

    class Scaled(Block):
        def forward(self, x):
            return x + self.scale.reshape(1, -1) * torch.tanh(self.b(x))

    (factor,) = nb.explain(network(Scaled), x).steps[0].counted
    assert factor[::3] == ("0.scale", "parameter")


def test_a_gate_says_why_it_counts(x):
    class Gated(Block):
        def forward(self, x):
            return x + torch.sigmoid(self.a(x)) * torch.tanh(self.b(x))

    (factor,) = nb.explain(network(Gated), x).steps[0].counted
    assert factor[::3] == ("sigmoid in 0", "fewer numbers than the branch")


class Scaled(nn.Module):
    """x + h f(x), h a number for each feature that no * multiplies with."""

    def __init__(self, product):
        super().__init__()
        self.product, self.f = product, nn.Linear(WIDTH, WIDTH)
        self.h = nn.Parameter(torch.rand(WIDTH))
        self.scale = nn.Conv2d(WIDTH, WIDTH, 1, groups=WIDTH, bias=False)

    def forward(self, x):
        return x + self.product(self, torch.tanh(self.f(x)))


UNSPELLED = {
    "matmul with h": lambda s, f: f @ torch.diag(s.h),
    "einsum with h": lambda s, f: torch.einsum("nc,c->nc", f, s.h),
    "conv2d with scale.weight": lambda s, f: s.scale(f[:, :, None, None]).flatten(1),
    "conv1d with h": lambda s, f: F.conv1d(f[..., None], s.h[:, None, None], groups=WIDTH)[..., 0],
    "": lambda s, f: nn.functional.linear(f, torch.eye(WIDTH)),  # as every layer of torch
}


@pytest.mark.parametrize("what", UNSPELLED)
def test_a_product_that_no_operator_spells_is_named_beside_the_slope_that_it_belongs_to(x, what):
    (step,) = nb.explain(Scaled(UNSPELLED[what]), x).steps
    assert not step.counted
    assert [one.what for one in step.left] == ([what] if what else [])
    assert all("no * spells" in one.reason for one in step.left)


def test_steps_stages_and_openings_may_be_chosen(x):
    net = network(*[Block] * 4)
    every = nb.trace(net, x)
    some = nb.trace(net, x, steps=["1", "3"])
    assert some.names == ("1", "3")
    np.testing.assert_array_equal(some.nsi, every.nsi[:, [1, 3]])
    assert nb.trace(net, x, stage=[0, 0, 1, 1]).stage.tolist() == [0, 0, 1, 1]
    opened = nb.trace(net, x, first={"2": True})
    assert (opened.first.tolist(), opened.stage.tolist()) == ([True, False, True, False], [0, 0, 1, 1])


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"factors": {"nowhere.py:1": "slope"}}, "`factors` names 'nowhere.py:1', where there is none; there are"),
        ({"factors": {"0": "gate"}}, "`factors` must say one of"),
        ({"factors": 5}, "`factors` must be a dictionary or a function of module and line, got 5"),
        ({"steps": ["7"]}, "`steps` names '7', where there is none; there are"),
        ({"stage": [0, 0]}, "`stage` must have one entry for each of the 4 steps, got 2"),
        ({"first": {"9": True}}, "`first` names '9', which is no step"),
        ({"batch_axis": -1}, "`batch_axis` must be a whole number from 0 on"),
        ({"batch_axis": True}, "`batch_axis` must be a whole number from 0 on, got True"),
        ({"batch_axis": 9}, "`batch_axis` = 9: no tensor of a batch has so many axes"),
    ],
)
def test_a_choice_of_what_is_not_there_is_refused(chosen, words, x):
    with pytest.raises(ValueError, match=words):
        nb.trace(network(*[Block] * 4), x, **chosen)


# samples


def test_tokens_are_no_samples_where_torchs_own_layers_say_so():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 12, batch_first=True)
    outside = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    inside = nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, 2, 12), 2, enable_nested_tensor=False).eval()
    inside.load_state_dict(outside.state_dict())
    x = torch.randn(3, 7, WIDTH)
    wanted = nb.trace(outside, x)
    for found in (nb.trace(inside, x.transpose(0, 1)), nb.trace(inside, x.transpose(0, 1), batch_axis=1)):
        np.testing.assert_allclose(found.nsi, wanted.nsi, rtol=1e-5)
    assert any("batch_first" in note for note in nb.trace(inside, x.transpose(0, 1)).notes)


class Tokens(nn.Module):
    """Attention over the first axis, by hand: no layer says along which axis the samples stand."""

    def __init__(self):
        super().__init__()
        self.f = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        y = self.f(x).transpose(0, 1)
        return x + ((y @ y.mT).softmax(-1) @ y).transpose(0, 1)


def test_rows_that_depend_on_each_other_are_asked_about():
    net, x = network(Tokens, Tokens, Tokens), torch.randn(7, 3, WIDTH)
    with pytest.raises(ValueError, match=r"of one row depend on other rows.* batch_axis=1 says so"):
        nb.trace(net, x)
    record = nb.trace(net, x, batch_axis=1)
    with torch.no_grad():
        wanted = ol.nsi(x.transpose(0, 1), (net[0](x) - x).transpose(0, 1))
    np.testing.assert_allclose(record.nsi[:, 0], wanted, rtol=1e-5)


class Nodes(nn.Module):
    """A step on the nodes of a graph."""

    def __init__(self):
        super().__init__()
        self.f = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        near = torch.ones(x.shape[-2], x.shape[-2]).softmax(-1)
        return x + torch.tanh(self.f(near @ x))


def test_nodes_of_a_graph_are_no_samples():
    net, nodes = network(Nodes, Nodes, Nodes), torch.randn(10, WIDTH)
    with pytest.warns(UserWarning, match="of one row depend on other rows"):
        nb.trace(net, nodes)
    assert len(nb.trace(net, nodes[None]).nsi) == 1
    fixed = nn.Sequential(*[Fixed(torch.rand(10, 10)) for _ in range(2)])
    with pytest.raises(ValueError, match=r"takes all 10 rows together .* nodes of a graph"):
        nb.trace(fixed, nodes)


class Fixed(nn.Module):
    def __init__(self, near):
        super().__init__()
        self.near, self.f = near, nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return x + torch.tanh(self.f(self.near @ x))


# the theorist's first experiment


METHODS = {
    "Euler": lambda f, x, h: x + h * f(x),
    "midpoint": lambda f, x, h: x + h * f(x + h / 2 * f(x)),
    "RK4": lambda f, x, h: rk4(f, x, h),
}


def rk4(f, x, h):
    k1 = f(x)
    k2 = f(x + h / 2 * k1)
    k3 = f(x + h / 2 * k2)
    k4 = f(x + h * k3)
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


class Flow(nn.Module):
    """u' = tanh(a u) from 0 to 1 by a method in some steps, all with the same weights."""

    def __init__(self, method, steps):
        super().__init__()
        torch.manual_seed(2)
        self.a, self.method, self.steps = nn.Linear(WIDTH, WIDTH), METHODS[method], steps

    def forward(self, x):
        for _ in range(self.steps):
            x = self.method(lambda u: torch.tanh(self.a(u)), x, 1 / self.steps)
        return x


def test_one_right_hand_side_has_one_index_whatever_method_solves_it(x):
    """Within the difference of the solutions, which is of the order of the step: RK4 was 6 times stiffer once."""
    steps, x = 8, x.double()
    exact = nb.trace(Flow("RK4", 8 * steps).double(), x)
    np.testing.assert_allclose(exact.step_sizes, 1 / (8 * steps), rtol=1e-6)
    fine = exact.nsi.reshape(len(x), steps, 8).mean(2)  # of the flow, over each of the steps
    errors = {}
    for method in METHODS:
        record = nb.trace(Flow(method, steps).double(), x)
        np.testing.assert_allclose(record.step_sizes, 1 / steps, rtol=1e-6)
        errors[method] = np.abs(record.nsi - fine).max()
    assert errors["Euler"] < 1 / steps
    assert max(errors["midpoint"], errors["RK4"]) < 0.5 / steps


class Centred(nn.Module):
    """x + tanh(f(x - mean)), the mean over the samples or over the features."""

    def __init__(self, dim):
        super().__init__()
        self.f, self.dim = nn.Linear(WIDTH, WIDTH), dim

    def forward(self, x):
        return x + torch.tanh(self.f(x - x.mean(self.dim, keepdim=True)))


def test_a_mean_over_the_samples_couples_them_and_one_over_the_features_does_not(x):
    with pytest.warns(UserWarning, match="of one row depend on other rows"):
        nb.trace(network(lambda: Centred(0), lambda: Centred(0)), x)
    assert nb.trace(network(lambda: Centred(-1), lambda: Centred(-1)), x).notes == ()
