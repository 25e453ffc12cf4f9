"""Spectra of blocks: a reduced matrix has the eigenvalues of the whole Jacobian; what cannot be reduced is said."""

import functools

import hypothesis
import hypothesis.strategies as some
import numpy as np
import pytest
import scipy.sparse.linalg
import torch
from scipy.optimize import linear_sum_assignment
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.utils import parametrizations

import netbridge as nb
import odelab
from netbridge.spectrum.anatomy import anatomy
from netbridge.spectrum.chain import NotAChain, chain_of, convolution_of, is_reducible
from netbridge.spectrum.reduction import convolution_matrix
from tests.netbridge.foreign import networks as foreign
from tests.netbridge.networks import lively

CONTROLLERS = ("constant", "se", "eca", "srm", "sge", "cbam", "ie", nb.asr("se"), nb.controller("constant", value=-0.5))


def block_of(controller="constant", bottleneck=False, post_activation=True, width=4, seed=0):
    """An inner block of a small network, with weights as after training."""
    torch.manual_seed(seed)
    options = {"bottleneck": bottleneck, "post_activation": post_activation, "controller": controller}
    net = nb.resnet(depth=20 if bottleneck else 14, widths=(width,) * 3, family="cifar", **options)
    return lively(net, seed).double().eval().stages[1].blocks[1]


def state_of(block, size=(4, 5), seed=0, post_activation=True):
    channels = block.branch.layers[0][0].in_channels
    x = torch.randn((1, channels, *size), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x.relu() if post_activation else x


def dense(function, x):
    J = torch.autograd.functional.jacobian(lambda u: function(u.clone()), x)
    return J.reshape(-1, x.numel()).numpy()


def distance(values, wanted):
    """The largest distance in the best pairing; a defective eigenvalue is known to the root of the precision only."""
    apart = np.abs(values[:, None] - wanted[None])
    return apart[linear_sum_assignment(apart)].max()


def agrees(spectrum, J):
    wanted = np.linalg.eigvals(J)
    size = np.abs(wanted).max()
    assert spectrum.n == len(wanted)
    assert distance(spectrum.values, wanted) <= 1e-5 * size
    assert abs(spectrum.max_re - wanted.real.max()) <= 1e-6 * size
    assert abs(spectrum.min_re - wanted.real.min()) <= 1e-6 * size
    assert abs(spectrum.values.sum() - np.trace(J)) <= 1e-10 * size * len(J)
    assert abs((spectrum.values**2).sum() - np.trace(J @ J)) <= 1e-9 * size**2 * len(J)


def departure(J):
    """Henrici's departure from normality, relative to the norm."""
    square = np.square(J).sum()
    return np.sqrt(max(0.0, 1.0 - np.square(np.abs(np.linalg.eigvals(J))).sum() / square))


class TestReducedMatrices:
    @hypothesis.given(
        controller=some.sampled_from(CONTROLLERS),
        bottleneck=some.booleans(),
        post_activation=some.booleans(),
        part=some.sampled_from(["residual", "block"]),
        size=some.sampled_from([(2, 3), (4, 4), (7, 6)]),
        seed=some.integers(0, 1000),
    )
    @hypothesis.settings(deadline=None, max_examples=25)
    def test_say_how_far_the_whole_jacobian_is_from_normal(
        self, controller, bottleneck, post_activation, part, size, seed
    ):
        """Not how far the reduced matrix is, whose norm is another one (0.776 where 0.896 is true)."""
        block = block_of(controller, bottleneck, post_activation, 4, seed)
        x = state_of(block, (2, 3) if bottleneck else size, seed, post_activation)
        J = dense(block.branch if part == "residual" else block, x)
        assert nb.block_spectrum(block, x, part).non_normality == pytest.approx(departure(J), abs=1e-6)

    @pytest.mark.parametrize("part", ["residual", "block"])
    @pytest.mark.parametrize("bias", [0.0, -1.0])
    def test_count_signs_in_single_precision_as_in_double(self, part, bias):
        block = block_of(width=8, seed=3)
        block.branch.bn1.bias.data.add_(bias)
        x = state_of(block, (8, 8), 3)
        rough, exact = (nb.block_spectrum(block, x, part, dtype=dtype) for dtype in (torch.float32, torch.float64))
        assert (rough.negative, rough.zero, rough.positive) == (exact.negative, exact.zero, exact.positive)

    @hypothesis.given(
        controller=some.sampled_from(CONTROLLERS),
        bottleneck=some.booleans(),
        post_activation=some.booleans(),
        part=some.sampled_from(["residual", "block"]),
        width=some.integers(2, 4).map(lambda w: 2 * w),
        size=some.tuples(some.integers(2, 4), some.integers(2, 4)),
        seed=some.integers(0, 1000),
        bias=some.sampled_from([-2.0, 0.0, 2.0]),
    )
    @hypothesis.settings(deadline=None, max_examples=40)
    def test_have_the_eigenvalues_of_the_whole_jacobian(
        self, controller, bottleneck, post_activation, part, width, size, seed, bias
    ):
        if bottleneck:
            width, size = 4, (min(size[0], 3), min(size[1], 3))
        block = block_of(controller, bottleneck, post_activation, width, seed)
        block.branch.layers[0][1].bias.data.add_(bias)  # most units dead, half of them, hardly any
        x = state_of(block, size, seed, post_activation)
        agrees(nb.block_spectrum(block, x, part), dense(block.branch if part == "residual" else block, x))

    @hypothesis.given(part=some.sampled_from(["residual", "block"]), seed=some.integers(0, 100), post=some.booleans())
    @hypothesis.settings(deadline=None, max_examples=15)
    def test_give_the_same_ends_without_being_formed(self, part, seed, post):
        block = block_of(seed=seed, post_activation=post)
        x = state_of(block, (5, 6), seed, post)
        full, ends = (nb.block_spectrum(block, x, part, values) for values in ("full", "extremes"))
        hypothesis.assume(ends.how == "arnoldi")  # a few active units are solved whole
        assert ends.n == full.n
        for name in ("max_re", "min_re", "spectral_radius"):
            assert abs(getattr(ends, name) - getattr(full, name)) <= 1e-8 * full.spectral_radius

    def test_count_exact_zeros_and_ones(self):
        """Dead outputs are zeros of the block, live outputs over dead hidden units ones."""
        block, x = block_of(), state_of(block_of())
        hidden = (block.branch.bn1(block.branch.conv1(x)) > 0).sum().item()
        alive = (block(x) > 0).sum().item()
        branch, whole = nb.block_spectrum(block, x), nb.block_spectrum(block, x, "block")
        assert (branch.values == 0).sum() == x.numel() - hidden
        assert (whole.values == 0).sum() == x.numel() - alive
        assert hidden < alive
        assert (whole.values == 1).sum() == alive - hidden
        assert whole.zero == pytest.approx(1 - alive / x.numel())

    def test_stand_for_blocks_that_are_dead_throughout(self):
        block, x = block_of(), state_of(block_of())
        block.branch.bn1.bias.data.fill_(-1e3)
        branch, whole = nb.block_spectrum(block, x), nb.block_spectrum(block, x, "block")
        assert (branch.values == 0).all()
        assert set(whole.values) <= {0.0, 1.0}
        block.branch.bn2.bias.data.fill_(-1e3)
        assert (nb.block_spectrum(block, x, "block").values == 0).all()

    def test_stay_exact_when_normalisations_are_folded_away(self):
        net = lively(nb.resnet(depth=14, widths=(4, 4, 4))).double().eval()
        x = state_of(net.blocks[1])
        wanted = nb.block_spectrum(net.blocks[1], x, "block").values
        got = nb.block_spectrum(nb.fold(net).blocks[1], x, "block").values
        assert distance(got, wanted) < 1e-10

    def test_single_precision_is_near_double(self):
        block, x = block_of(), state_of(block_of())
        rough, exact = (nb.block_spectrum(block, x, "block", dtype=dtype) for dtype in (torch.float32, torch.float64))
        assert rough.values.dtype == np.complex64
        assert distance(rough.values, exact.values) < 1e-3
        assert (rough.values == 0).sum() == (exact.values == 0).sum()


class TestGates:
    @pytest.mark.parametrize("controller", ["se", "stepnet", "sge"])
    def test_frozen_gates_are_held_at_their_value(self, controller):
        block = block_of(controller)
        x = state_of(block)
        with torch.no_grad():
            h = block.controller(x, block.branch(x))
        frozen = nb.block_spectrum(block, x, "block", gate="frozen")
        agrees(frozen, dense(lambda u: torch.relu(u + h * block.branch(u)), x))
        assert distance(nb.block_spectrum(block, x, "block", gate=h).values, frozen.values) < 1e-12
        assert distance(nb.block_spectrum(block, x, "block").values, frozen.values) > 1e-3

    @pytest.mark.parametrize("post_activation", [True, False])
    @pytest.mark.parametrize("controller", ["constant", "se", "stepnet", "sge"])
    def test_the_increment_is_the_step_size_times_the_branch(self, controller, post_activation):
        """Its eigenvalues are the h lambda of a step; nothing is said of shortcut and final ReLU."""
        block = block_of(controller, post_activation=post_activation)
        x = state_of(block, post_activation=post_activation)
        with torch.no_grad():
            h = torch.as_tensor(block.controller(x, block.branch(x)))
        live = dense(lambda u: block.controller(u, block.branch(u)) * block.branch(u), x)
        agrees(nb.block_spectrum(block, x, "increment"), live)
        frozen = nb.block_spectrum(block, x, "increment", gate="frozen")
        agrees(frozen, dense(lambda u: h * block.branch(u), x))
        assert nb.block_spectrum(block, x, "increment").non_normality == pytest.approx(departure(live), abs=1e-6)
        ends = nb.block_spectrum(block, x, "increment", "extremes", "frozen")
        assert ends.min_re == pytest.approx(frozen.min_re, abs=1e-7)
        J = nb.block_operator(block, x, "increment").dense()
        np.testing.assert_allclose(J, live, atol=1e-12)

    @pytest.mark.parametrize("how", [lambda y, g: y * g, lambda y, g: 0.3 * y, lambda y, g: -(y * g)])
    def test_the_increment_of_somebody_elses_block(self, how):
        block = foreign.shaken(Factored(how)).double()
        x = torch.rand(1, 4, 4, 5, dtype=torch.float64)
        agrees(nb.block_spectrum(block, x, "increment"), dense(lambda u: block(u) - u, x))

    def test_eigenvalues_of_the_increment_follow_a_constant_step_size(self):
        block = block_of()
        x = state_of(block)
        whole = nb.block_spectrum(block, x).values
        assert distance(nb.block_spectrum(block, x, "increment", gate=-0.3).values, -0.3 * whole) < 1e-6
        assert distance(nb.block_spectrum(block, x, "increment").values, whole) < 1e-12

    def test_a_given_step_size_is_used(self):
        block = block_of()
        x = state_of(block)
        half = nb.block_spectrum(block, x, "block", gate=0.5)
        agrees(half, dense(lambda u: torch.relu(u + 0.5 * block.branch(u)), x))
        with pytest.raises(ValueError, match=r"`gate` must be 'live', 'frozen', or a step size that broadcasts"):
            nb.block_spectrum(block, x, "block", gate=torch.ones(7))

    @pytest.mark.slow
    @pytest.mark.parametrize("post_activation", [True, False])
    def test_gates_that_see_the_state_are_differentiated_as_a_whole(self, post_activation):
        """StepNet; its dead outputs are exact zeros all the same."""
        block = block_of("stepnet", post_activation=post_activation)
        x = state_of(block, (5, 6), post_activation=post_activation)
        agrees(nb.block_spectrum(block, x, "block"), dense(block, x))
        ends = nb.block_spectrum(block, x, "block", "extremes")
        wanted = np.linalg.eigvals(dense(block, x)).real
        assert abs(ends.max_re - wanted.max()) < 1e-8
        assert abs(ends.min_re - wanted.min()) < 1e-8


class TestForeignBlocks:
    @pytest.mark.parametrize("part", ["residual", "block"])
    @pytest.mark.parametrize(
        "make",
        [
            lambda: foreign.VisionBasic(4, 4),
            lambda: foreign.VisionBottleneck(16, 4),
            lambda: foreign.TimmBlock(4, 4),
            lambda: foreign.TimmBlock(4, 4, attn=foreign.TimmSE),
            lambda: foreign.HandBlock(4, 4),
            lambda: foreign.HandPreBlock(4, 4),
        ],
    )
    def test_are_taken_apart_and_reduced(self, make, part):
        torch.manual_seed(0)
        block = foreign.shaken(make()).double()
        x = torch.rand(1, 16 if isinstance(block, foreign.VisionBottleneck) else 4, 4, 4, dtype=torch.float64)
        parts = anatomy(block, x)
        assert parts.layers is not None, parts.reason
        agrees(nb.block_spectrum(block, x, part), dense(parts.branch if part == "residual" else block, x))

    @pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated")
    @pytest.mark.parametrize(
        "wrap", [parametrizations.weight_norm, parametrizations.spectral_norm, nn.utils.weight_norm]
    )
    def test_are_reduced_where_their_weights_are_computed(self, wrap):
        torch.manual_seed(0)
        block = foreign.shaken(lively(foreign.VisionBasic(4, 4))).double()
        wrap(block.conv1)
        x = torch.randn(1, 4, 4, 5, dtype=torch.float64)
        spectrum = nb.block_spectrum(block, x, "block")
        agrees(spectrum, dense(block, x))
        assert is_reducible(anatomy(block, x).layers)

    @pytest.mark.parametrize(
        "layer", [nn.LeakyReLU(0.3), nn.GELU(), nn.MaxPool2d(3, 1, 1), nn.ReflectionPad2d(0)], ids=str
    )
    def test_with_other_layers_are_not_reduced(self, layer):
        class Own(foreign.HandPreBlock):
            def forward(self, x):
                return x + self.conv2(self.layer(self.conv1(x)))

        torch.manual_seed(0)
        block = foreign.shaken(Own(4, 4)).double()
        block.layer = layer
        x = torch.randn(1, 4, 4, 5, dtype=torch.float64)
        assert len(anatomy(block, x).layers) > 0
        agrees(nb.block_spectrum(block, x, "block"), dense(block, x))

    def test_a_gate_can_be_frozen(self):
        torch.manual_seed(0)
        block = foreign.shaken(foreign.TimmBlock(4, 4, attn=foreign.TimmSE)).double()
        x = torch.rand(1, 4, 4, 4, dtype=torch.float64)
        parts = anatomy(block, x)
        f = parts.branch(x)
        h = (block.se(f) / f).detach()
        agrees(
            nb.block_spectrum(block, x, "block", gate="frozen"),
            dense(lambda u: torch.relu(u + h * parts.branch(u)), x),
        )

    @pytest.mark.parametrize("values", ["full", "extremes"])
    def test_transformers_are_differentiated_automatically(self, values):
        torch.manual_seed(0)
        block = foreign.EncoderBlock(8).double().eval()
        x = torch.randn(1, 6, 8, dtype=torch.float64)
        for part, function in (("block", block), ("residual", lambda u: block(u) - u)):
            spectrum = nb.block_spectrum(block, x, part, values)
            wanted = np.linalg.eigvals(dense(function, x))
            assert abs(spectrum.max_re - wanted.real.max()) < 1e-9
            assert abs(spectrum.min_re - wanted.real.min()) < 1e-9


class TestWholeJacobians:
    @pytest.mark.parametrize("part", ["residual", "block"])
    @pytest.mark.parametrize("gate", ["live", "frozen"])
    def test_products_are_those_of_the_dense_matrix(self, part, gate):
        """By a chain of convolutions where the gate is held, by automatic differentiation where it is not."""
        block = block_of("se", seed=3)
        x = state_of(block, seed=3)
        operator = nb.block_operator(block, x, part, gate)
        h = block.controller(x, block.branch(x)).detach() if gate == "frozen" and part == "block" else None
        function = block.branch if part == "residual" else block
        if h is not None:
            function = lambda u: torch.relu(u + h * block.branch(u))  # noqa: E731
        J = dense(function, x)
        v = np.random.default_rng(3).standard_normal(len(J))
        np.testing.assert_allclose(operator.matvec(v), J @ v, atol=1e-10)
        np.testing.assert_allclose(operator.rmatvec(v), J.T @ v, atol=1e-10)

    @pytest.mark.parametrize(
        ("controller", "part"), [("constant", "block"), ("se", "residual"), ("stepnet", "block"), ("dia", "residual")]
    )
    def test_norms_are_those_of_the_dense_matrix(self, controller, part):
        block = block_of(controller, seed=2)
        x = state_of(block, seed=2)
        J = dense(block.branch if part == "residual" else block, x)
        operator = nb.block_operator(block, x, part)
        symmetric = np.linalg.eigvalsh((J + J.T) / 2)
        assert odelab.log_norm(operator) == pytest.approx(symmetric[-1], abs=1e-8)
        assert odelab.soderlind(operator) == pytest.approx((symmetric[0] + symmetric[-1]) / 2, abs=1e-8)
        largest = scipy.sparse.linalg.svds(scipy.sparse.linalg.aslinearoperator(operator), 1)[1][0]
        assert largest == pytest.approx(np.linalg.norm(J, 2), rel=1e-8)
        spectrum = nb.block_spectrum(block, x, part)
        assert symmetric[-1] >= spectrum.max_re - 1e-9
        assert largest >= spectrum.spectral_radius - 1e-9

    def test_a_branch_that_does_not_follow_its_state_has_no_derivative(self):
        class Still(foreign.HandBlock):
            def forward(self, x):
                return super().forward(x.detach()) - x.detach() + x

        block = lively(Still(3, 3, 1)).double().eval()
        v = np.random.default_rng(0).standard_normal(48)
        for part, wanted in (("increment", 0 * v), ("block", v)):
            operator = nb.block_operator(block, torch.randn(1, 3, 4, 4), part)
            np.testing.assert_allclose(operator.matvec(v), wanted, atol=1e-14)
            np.testing.assert_allclose(operator.rmatvec(v), wanted, atol=1e-14)

    @hypothesis.given(seed=some.integers(0, 1000), part=some.sampled_from(["residual", "block"]))
    @hypothesis.settings(deadline=None, max_examples=10)
    def test_the_transpose_is_the_transpose(self, seed, part):
        block = block_of("se", seed=seed)
        operator = nb.block_operator(block, state_of(block, seed=seed), part)
        v, w = np.random.default_rng(seed).standard_normal((2, operator.shape[0]))
        assert np.dot(operator.matvec(v), w) == pytest.approx(np.dot(v, operator.rmatvec(w)), abs=1e-9)

    @pytest.mark.parametrize("controller", ["dia", nb.asr("dia")])
    @pytest.mark.parametrize("values", ["full", "extremes"])
    @pytest.mark.parametrize("gate", ["live", "frozen"])
    def test_a_controller_that_the_stage_owns_is_cast_with_the_block(self, controller, values, gate):
        torch.manual_seed(0)
        net = lively(nb.resnet(depth=14, widths=(4, 4, 4), controller=controller)).eval()
        block, x = net.stages[1].blocks[1], torch.rand(1, 4, 5, 5)
        single = nb.block_spectrum(block, x, "block", values, gate)
        double = nb.block_spectrum(net.double().stages[1].blocks[1], x.double(), "block", values, gate)
        assert single.max_re == pytest.approx(double.max_re, abs=1e-9)
        assert next(net.parameters()).dtype == torch.float64

    @pytest.mark.parametrize(
        ("values", "part", "ours"),
        [("full", "residual", True), ("full", "block", False), ("extremes", "block", True)],
    )
    def test_fused_attention_is_differentiated_on_the_cpu(self, values, part, ours):
        class Attention(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.LayerNorm(8)
                self.attention = nb.SelfAttention(8) if ours else nn.MultiheadAttention(8, 2, batch_first=True)

            def forward(self, x):
                y = self.norm(x)
                return x + (self.attention(y) if ours else self.attention(y, y, y, need_weights=False)[0])

        torch.manual_seed(0)
        block, x = Attention().double().eval(), torch.randn(1, 6, 8, dtype=torch.float64)
        with sdpa_kernel(SDPBackend.MATH):
            J = dense(block, x) - (np.eye(48) if part == "residual" else 0)
        wanted = np.linalg.eigvals(J).real
        found = nb.block_spectrum(block, x, part, values)
        assert found.max_re == pytest.approx(wanted.max(), abs=1e-9)
        assert found.min_re == pytest.approx(wanted.min(), abs=1e-9)


class Factored(foreign.HandBlock):
    """x + how(branch, gate), without a ReLU behind."""

    def __init__(self, how, unreadable=False):
        super().__init__(4, 4, 1)
        self.how, self.unreadable = how, unreadable

    def branch(self, x):
        return self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))

    def gate(self, y):
        return torch.sigmoid(y.mean((2, 3), keepdim=True))

    def forward(self, x):
        if self.unreadable and x.mean() > 1e9:  # Python decides by the numbers: torch.fx cannot read this
            return x
        y = self.branch(x)
        added = self.how(y, self.gate(y))
        return torch.sub(x, added) if self.how in SUBTRACTED else x + added


class Followed(Factored):
    def forward(self, x):
        return torch.tanh(super().forward(x))


class Rows(nn.Module):
    """As in ConvNeXt: channels last in the branch, a scale per channel, channels first again."""

    def __init__(self, readable):
        super().__init__()
        self.norm, self.linear, self.readable = nn.LayerNorm(4), nn.Linear(4, 4), readable
        self.gamma = nn.Parameter(torch.tensor([0.1, -0.2, 0.3, 0.5]))

    def branch(self, x):
        return torch.tanh(self.linear(self.norm(x.permute(0, 2, 3, 1)))).permute(0, 3, 1, 2)

    def forward(self, x):
        if not self.readable and x.mean() > 1e9:
            return x
        y = torch.tanh(self.linear(self.norm(x.permute(0, 2, 3, 1))))
        return x + (self.gamma * y).permute(0, 3, 1, 2)


ROW = torch.tensor([0.1, 0.2, 0.3, -0.4], dtype=torch.float64)[:, None, None]
SUBTRACTED = [minus := lambda y, g: 0.5 * y]
SIZES = {
    "number": (lambda y, g: 0.1 * y, lambda y, g: torch.full_like(y, 0.1)),
    "row": (lambda y, g: ROW * y, lambda y, g: ROW.expand(y.shape)),
    "quotient": (lambda y, g: y / 4, lambda y, g: torch.full_like(y, 0.25)),
    "gate": (lambda y, g: y * g, lambda y, g: g),
    "two": (lambda y, g: 0.5 * (y * g), lambda y, g: 0.5 * g),
    "sign": (lambda y, g: torch.neg(y * g), lambda y, g: -g),
    "in place": (lambda y, g: y.mul_(g).mul_(0.5), lambda y, g: 0.5 * g),
    "dropout": (lambda y, g: nn.functional.dropout(g * y, 0.5, training=False) / 2, lambda y, g: g / 2),
    "row behind": (lambda y, g: (ROW * y).flatten(2).unflatten(2, (4, 5)), lambda y, g: ROW.expand(y.shape)),
    "minus": (minus, lambda y, g: torch.full_like(y, -0.5)),
}


class TestFactorsOfOthers:
    @pytest.mark.parametrize("how", [lambda y, g: -y, lambda y, g: -(y * g), lambda y, g: (-y) * g])
    def test_a_sign_belongs_to_the_branch(self, how):
        torch.manual_seed(0)
        block = foreign.shaken(Factored(how)).double()
        x = torch.rand(1, 4, 4, 5, dtype=torch.float64)
        wanted = np.linalg.eigvals(dense(block, x)).real
        found = nb.block_spectrum(block, x, "block")
        assert found.max_re == pytest.approx(wanted.max(), abs=1e-9)
        assert found.min_re == pytest.approx(wanted.min(), abs=1e-9)
        assert nb.step_error(block, x).isfinite().all()

    @pytest.mark.parametrize("unreadable", [False, True])
    @pytest.mark.parametrize(("how", "size"), SIZES.values(), ids=SIZES)
    def test_branch_and_step_size_are_those_of_a_trace(self, how, size, unreadable):
        torch.manual_seed(0)
        block = foreign.shaken(Factored(how, unreadable)).double()
        x = torch.rand(1, 4, 4, 5, dtype=torch.float64)
        f = block.branch(x)
        h = size(f, block.gate(f)).detach()
        agrees(nb.block_spectrum(block, x), dense(block.branch, x))
        agrees(nb.block_spectrum(block, x, "increment"), dense(lambda u: block(u) - u, x))
        agrees(nb.block_spectrum(block, x, "block"), dense(block, x))
        if not unreadable:
            agrees(nb.block_spectrum(block, x, "block", gate="frozen"), dense(lambda u: u + h * block.branch(u), x))
        record = nb.trace(nn.Sequential(block), x)
        assert record.nsi.item() == pytest.approx(float(odelab.nsi(x, f.detach())), rel=1e-12)
        assert record.step_sizes.item() == pytest.approx(float(h.mean()), rel=1e-12)

    @pytest.mark.parametrize("measure", [functools.partial(nb.block_spectrum, part="block"), nb.step_error])
    def test_a_gate_that_cannot_be_told_apart_is_not_called_frozen(self, measure):
        block, x = foreign.shaken(Followed(lambda y, g: y * g)), torch.rand(1, 4, 4, 5)
        if measure is nb.step_error:  # of h f, which is known here; what follows is not
            block = nn.Sequential(block, block)
        with pytest.raises(ValueError, match=r"`gate` must be .live. .* (something follows|2 residual steps)"):
            measure(block, x, gate="frozen")

    @pytest.mark.parametrize("readable", [False, True])
    def test_a_factor_in_another_layout_is_taken_out(self, readable):
        torch.manual_seed(0)
        block = foreign.shaken(Rows(readable)).double()
        x = torch.rand(1, 4, 3, 5, dtype=torch.float64)
        agrees(nb.block_spectrum(block, x, "increment"), dense(lambda u: block(u) - u, x))
        agrees(nb.block_spectrum(block, x), dense(block.branch, x))
        if readable:
            half = nb.block_spectrum(block, x, "block", gate=0.5)
            agrees(half, dense(lambda u: u + 0.5 * block.branch(u), x))


class KeepsAMean(foreign.HandBlock):
    """Keeps a running mean of what it sees in a buffer that its first pass makes."""

    def forward(self, x):
        if not hasattr(self, "mean"):
            self.register_buffer("mean", torch.ones(4, 1, 1, dtype=x.dtype))
        self.mean.mul_(0.9).add_(x.mean((0, 2, 3))[:, None, None], alpha=0.1)
        return super().forward(x)


class TestHooks:
    """A hook that returns another tensor is a part of the function whose Jacobian is asked for."""

    @pytest.mark.parametrize("where", ["", "branch", "branch.bn1", "branch.bn2"])
    @pytest.mark.parametrize("before", [False, True])
    def test_on_a_block_of_ours(self, where, before):
        block = block_of()
        x = state_of(block)
        module = block.get_submodule(where)
        if before:
            module.register_forward_pre_hook(lambda module, inputs: (1.5 * inputs[0], *inputs[1:]))
        else:
            module.register_forward_hook(lambda module, inputs, output: 2 * output)
        agrees(nb.block_spectrum(block, x, "block"), dense(block, x))
        if where:
            agrees(nb.block_spectrum(block, x), dense(block.branch, x))

    @pytest.mark.parametrize("where", ["", "bn2", "conv1"])
    def test_on_somebody_elses_block(self, where):
        torch.manual_seed(0)
        block = foreign.shaken(foreign.HandBlock(4, 4)).double()
        x = torch.rand(1, 4, 4, 5, dtype=torch.float64)
        block.get_submodule(where).register_forward_hook(lambda module, inputs, output: 2 * output)
        agrees(nb.block_spectrum(block, x, "block"), dense(block, x))

    def test_a_layer_with_a_forward_of_its_own_is_no_layer_of_torchs(self):
        block = block_of()
        x = state_of(block)
        norm = block.branch.bn1
        norm.forward = lambda u: 2 * nn.BatchNorm2d.forward(norm, u)
        agrees(nb.block_spectrum(block, x), dense(block.branch, x))

    def test_a_block_that_keeps_something_is_differentiated_as_a_whole(self):
        torch.manual_seed(0)
        block = foreign.shaken(KeepsAMean(4, 4)).double()
        x = torch.rand(1, 4, 4, 5, dtype=torch.float64)
        found = nb.block_spectrum(block, x, "block")
        assert not hasattr(block, "mean")
        agrees(found, dense(block, x))


class TestDownSampling:
    @pytest.mark.parametrize("part", ["residual", "block"])
    @pytest.mark.parametrize("ours", [True, False])
    def test_has_singular_values_and_no_eigenvalues(self, part, ours):
        torch.manual_seed(0)
        if ours:
            block = lively(nb.resnet(depth=14, widths=(4, 8, 8), shortcut="B")).double().eval().stages[1].blocks[0]
            branch = block.branch
        else:
            block = foreign.shaken(foreign.HandBlock(4, 8, 2)).double()
            branch = anatomy(block, torch.rand(1, 4, 6, 6, dtype=torch.float64)).branch
        x = torch.rand(1, 4, 6, 6, dtype=torch.float64)
        spectrum = nb.block_spectrum(block, x, part)
        wanted = np.linalg.svd(dense(branch if part == "residual" else block, x), compute_uv=False)
        np.testing.assert_allclose(spectrum.singular_values, wanted, atol=1e-12)
        assert spectrum.values is None
        assert "72 x 144 map is not square" in str(spectrum)
        few = nb.block_spectrum(block, x, part, "extremes", k=3)
        np.testing.assert_allclose(few.singular_values, wanted[:3], rtol=1e-8)

    def test_between_spaces_of_one_size_has_no_eigenvalues_either(self):
        block = foreign.shaken(foreign.HandBlock(4, 16, 2)).double()
        with pytest.raises(ValueError, match=r"maps \(4, 4, 4\) to \(16, 2, 2\): a Jacobian between different spaces"):
            nb.block_spectrum(block, torch.rand(1, 4, 4, 4, dtype=torch.float64))


class TestConvolutionMatrices:
    @hypothesis.given(
        kernel=some.tuples(some.integers(1, 3), some.integers(1, 3)),
        stride=some.tuples(some.integers(1, 3), some.integers(1, 3)),
        padding=some.tuples(some.integers(0, 2), some.integers(0, 2)),
        dilation=some.integers(1, 2),
        groups=some.sampled_from([1, 2, 4]),
        size=some.tuples(some.integers(5, 8), some.integers(5, 8)),
        seed=some.integers(0, 1000),
    )
    @hypothesis.settings(deadline=None, max_examples=60)
    def test_do_what_the_convolution_does(self, kernel, stride, padding, dilation, groups, size, seed):
        torch.manual_seed(seed)
        conv = nn.Conv2d(4, 8, kernel, stride, padding, dilation, groups, bias=False).double()
        x = torch.randn(1, 4, *size, dtype=torch.float64)
        placed, y = convolution_of(conv, torch.float64), conv(x).detach()
        matrix = convolution_matrix(placed, size)
        np.testing.assert_allclose(matrix @ x.flatten().numpy(), y.flatten().numpy(), atol=1e-12)
        w = torch.randn_like(y)
        adjoint = placed.adjoint(w, size).flatten().numpy()
        np.testing.assert_allclose(matrix.T @ w.flatten().numpy(), adjoint, atol=1e-12)
        rows, columns = np.random.default_rng(seed).random(matrix.shape[0]) < 0.5, np.arange(matrix.shape[1]) % 3 == 0
        part = convolution_matrix(placed, size, rows, columns)
        np.testing.assert_array_equal(part.toarray(), matrix.toarray()[rows][:, columns])


class TestChains:
    def test_fold_what_they_are_made_of(self):
        torch.manual_seed(0)
        layers = [nn.BatchNorm2d(3), nn.ReLU(), nn.Conv2d(3, 4, 3, padding="same"), nn.BatchNorm2d(4), nn.Dropout()]
        branch = foreign.shaken(nn.Sequential(*layers, nn.ReLU(), nn.Conv2d(4, 3, 1, bias=False))).double()
        x = torch.randn(2, 3, 5, 5, dtype=torch.float64)
        y = x
        chain = chain_of(branch, torch.float64)
        for layer in chain:
            y = layer(y)
        assert [type(layer).__name__ for layer in chain] == ["Scaling", "Relu", "Convolution", "Relu", "Convolution"]
        torch.testing.assert_close(y, branch(x), rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize(
        ("module", "reason"),
        [
            (nn.Hardshrink(), "a Hardshrink is neither"),
            (nn.LayerNorm(3), "a LayerNorm is neither"),
            (nn.BatchNorm2d(3, track_running_stats=False), "a BatchNorm2d is neither"),
            (nn.InstanceNorm2d(3), "a InstanceNorm2d is neither"),
        ],
    )
    def test_end_at_anything_else(self, module, reason):
        with pytest.raises(NotAChain, match=reason):
            chain_of(nn.Sequential(module).eval(), torch.float64)


def test_states_of_every_block(images):
    net = lively(nb.resnet(depth=14, widths=(4, 4, 4))).eval()
    states = nb.block_states(net, images)
    assert list(states) == net.block_names
    with torch.no_grad():
        x = net.stem(images)
        for name, block in zip(net.block_names, net.blocks, strict=True):
            torch.testing.assert_close(states[name], x)
            x = block(x)
    other = foreign.shaken(foreign.VisionResNet())
    assert list(nb.block_states(other, images)) == ["layer1.0", "layer1.1", "layer2.0", "layer2.1"]
    assert list(nb.block_states(other, images, "layer2.1")) == ["layer2.1"]
    assert nb.block_states(net.train(), images).keys() == states.keys()
    assert net.training


def test_steps_in_the_networks_own_forward_have_no_block(images):
    class Bare(nn.Module):
        def __init__(self):
            super().__init__()
            self.convs = nn.ModuleList(nn.Conv2d(3, 3, 3, padding=1) for _ in range(2))

        def forward(self, x):
            for conv in self.convs:
                x = x + torch.tanh(conv(x))
            return x

    with pytest.raises(ValueError, match=r"`net` takes the steps \['\(1\)', '\(2\)'\] in its own forward"):
        nb.block_states(Bare(), images)
    assert list(nb.block_states(Bare(), images, ["convs.0"])) == ["convs.0"]


def test_the_block_itself_is_left_alone(images):
    block = block_of("se")
    x = state_of(block)
    before = [tensor.clone() for tensor in block.state_dict().values()]
    nb.block_spectrum(block.float().train(), x.float().numpy(), "block")
    assert block.training
    assert next(block.parameters()).dtype == torch.float32
    assert all(torch.equal(a.float(), b.float()) for a, b in zip(before, block.state_dict().values(), strict=True))


def test_what_cannot_be_asked_is_refused():
    block, x = block_of(), state_of(block_of())
    for arguments, match in (
        ((block, x, "branch"), r"`part` must be one of \('residual', 'increment', 'block'\), got 'branch'"),
        ((block, x, "block", "some"), r"`values` must be one of .* got 'some'"),
        ((block, torch.cat([x, x])), r"`x` must be one state, \(1, ...\), got shape \(2, 4, 4, 5\)"),
        ((block, x * torch.nan), r"`x` must be finite"),
        ((block, x, "block", "full", float("nan")), r"`gate` must be .*: it holds NaN or infinity"),
    ):
        with pytest.raises(ValueError, match=match):
            nb.block_spectrum(*arguments)
    with pytest.raises(TypeError, match=r"`block` must be a torch module"):
        nb.block_spectrum("layer1.0", x)
    with pytest.raises(ValueError, match=r"`dtype` must be torch.float32 or torch.float64, got torch.float16"):
        nb.block_spectrum(block, x, dtype=torch.float16)
    huge = foreign.EncoderBlock(64).double().eval()
    with pytest.raises(ValueError, match=r"would form a Jacobian of 32768 x 32768 \(8 GiB\).* use values=\"extremes\""):
        nb.block_spectrum(huge, torch.randn(1, 512, 64), "block", "full")
