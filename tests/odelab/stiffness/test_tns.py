"""TNS in closed form against its definition, and the laws that its geometry implies."""

import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from odelab.stiffness.tns import TnsParts, delta, stiffness_proportion, tns, tns_parts
from tests.clock import cost

torch = pytest.importorskip("torch")

seeds = st.integers(0, 2**32 - 1)
means = st.sampled_from(["sample", "dataset"])
STAGE = np.array([0, 0, 0, 1, 1, 2, 2, 2])


def batch(seed, samples=5, blocks=8):
    return np.random.default_rng(seed).gamma(2.0, 0.3, (samples, blocks))


def stage_means(nsi, stage, mu):
    """The mean belonging to every index, as Definition 2 says it."""
    columns = [stage == label for label in stage]
    if mu == "dataset":
        return np.stack([np.full(len(nsi), nsi[:, mates].mean()) for mates in columns], 1)
    return np.stack([nsi[:, mates].mean(1) for mates in columns], 1)


def exceeds(nsi, stage, m1, m2, mu):
    """Definition 2, index by index."""
    return nsi >= np.maximum(stage_means(nsi, stage, mu) * (1.0 + m1), m2)


def bounding_box(nsi, stage, mu):
    return float((nsi / stage_means(nsi, stage, mu) - 1.0).max()), float(nsi.max())


def quadrature(nsi, stage, cells, mu="sample"):
    """The double sum of delta over the midpoints of a grid on its bounding box: the check, never the measure."""
    ends = bounding_box(nsi, stage, mu)
    m1, m2 = ((np.arange(cells) + 0.5) * end / cells for end in ends)
    total = 0.0
    for relative in m1:
        reach = np.where(nsi >= stage_means(nsi, stage, mu) * (1.0 + relative), nsi, -1.0).max(1)
        total += (reach[:, None] >= m2).mean(0).sum()
    return total * ends[0] * ends[1] / cells**2


@given(seeds, means)
@settings(deadline=None, max_examples=25)
def test_the_double_sum_of_delta_converges_to_tns(seed, mu):
    nsi = batch(seed)
    exact = tns(nsi, STAGE, mu).mean()
    wide, high = bounding_box(nsi, STAGE, mu)
    for cells in (20, 80, 320):  # a staircase of S steps crosses at most 2 cells a column or row
        assert abs(quadrature(nsi, STAGE, cells, mu) - exact) <= 2.0 * wide * high / cells
    m1, m2 = ((np.arange(40) + 0.5) * end / 40 for end in (wide, high))
    surface = delta(nsi, STAGE, m1[:, None], m2, mu)
    assert surface.sum() * wide * high / 1600 == pytest.approx(quadrature(nsi, STAGE, 40, mu), rel=1e-12)


@given(seeds, means, st.floats(0.0, 2.0), st.floats(0.0, 2.0))
@settings(deadline=None)
def test_delta_and_proportion_are_their_definitions(seed, mu, m1, m2):
    nsi = batch(seed)
    stiff = exceeds(nsi, STAGE, m1, m2, mu)
    assert delta(nsi, STAGE, m1, m2, mu) == stiff.any(1).mean()
    assert stiffness_proportion(nsi, STAGE, m1, m2, mu) == pytest.approx(stiff.mean(), abs=1e-15)


@given(seeds, means)
@settings(deadline=None)
def test_delta_does_not_grow_in_either_argument(seed, mu):
    nsi = batch(seed)
    degrees = np.linspace(0.0, 2.0, 15)
    for surface in (
        delta(nsi, STAGE, degrees[:, None], degrees, mu),
        stiffness_proportion(nsi, STAGE, degrees[:, None], degrees, mu),
    ):
        assert surface.shape == (15, 15)
        assert (np.diff(surface, axis=0) <= 0).all()
        assert (np.diff(surface, axis=1) <= 0).all()


@given(seeds, means, st.floats(0.0, 10.0))
@settings(deadline=None)
def test_theorem_1_delta_vanishes_beyond_the_bounding_box(seed, mu, other):
    """Convergence of the TNS integral. One large argument is enough: no strip remains, as Eq. 22 would leave."""
    nsi = batch(seed)
    wide, high = bounding_box(nsi, STAGE, mu)
    assert delta(nsi, STAGE, wide * (1 + 1e-9), other, mu) == 0.0
    assert delta(nsi, STAGE, other, high * (1 + 1e-9), mu) == 0.0
    assert delta(nsi, STAGE, wide * (1 - 1e-9), 0.0, mu) > 0.0
    assert delta(nsi, STAGE, 0.0, high * (1 - 1e-9), mu) > 0.0


@given(seeds, means)
@example(2960872, "dataset")  # its areas are small differences, so their rounding is measured by what is subtracted
@settings(deadline=None)
def test_blocks_of_a_stage_may_change_places(seed, mu):
    nsi = batch(seed)
    order = np.random.default_rng(seed).permutation(len(STAGE))
    wide, high = bounding_box(nsi, STAGE, mu)
    rounding = 1e-14 * (1.0 + wide) * high  # of max / mu - 1, times max
    np.testing.assert_allclose(tns(nsi[:, order], STAGE[order], mu), tns(nsi, STAGE, mu), rtol=1e-12, atol=rounding)
    names = np.array(["a", "b", "c"])[STAGE[order]]
    np.testing.assert_allclose(tns(nsi[:, order], names, mu), tns(nsi, STAGE, mu), rtol=1e-12, atol=rounding)


@given(seeds, st.integers(1, 9))
@settings(deadline=None)
def test_one_stage_is_one_rectangle(seed, blocks):
    nsi = batch(seed, blocks=blocks)
    largest, mean = nsi.max(1), nsi.mean(1)
    expected = np.maximum(largest / mean - 1.0, 0.0) * largest
    np.testing.assert_allclose(tns(nsi, np.zeros(blocks)), expected, rtol=1e-10, atol=1e-15)


@given(seeds)
@settings(deadline=None)
def test_two_stages_are_a_staircase(seed):
    """By inclusion and exclusion, without sorting."""
    nsi = batch(seed, blocks=5)
    stage = np.array([0, 0, 0, 1, 1])
    x, y = zip(*((b.max(1) / b.mean(1) - 1.0, b.max(1)) for b in (nsi[:, :3], nsi[:, 3:])), strict=True)
    union = x[0] * y[0] + x[1] * y[1] - np.minimum(*x) * np.minimum(*y)
    np.testing.assert_allclose(tns(nsi, stage), union, rtol=1e-10)


@given(seeds, st.floats(0.01, 0.99))
@settings(deadline=None)
def test_tns_grows_with_a_spikier_profile_of_the_same_mean(seed, share):
    nsi = batch(seed, samples=1)
    spikier = nsi.copy()
    top = int(np.argmax(nsi[0, :3]))
    low = (top + 1) % 3
    spikier[0, top] += share * nsi[0, low]
    spikier[0, low] -= share * nsi[0, low]
    single = tns(spikier[:, :3], STAGE[:3]), tns(nsi[:, :3], STAGE[:3])
    assert single[0] > single[1]
    assert tns(spikier, STAGE) >= tns(nsi, STAGE) * (1 - 1e-12)


@given(seeds)
@settings(deadline=None)
def test_the_bound_by_the_number_of_counted_blocks(seed):
    """nsi / mu <= n_s in place of Eq. 14, whose lower bound on NSI is false."""
    nsi = batch(seed)
    assert (tns(nsi, STAGE) <= (3 - 1) * nsi.max(1)).all()
    spike = np.zeros((1, 3))
    spike[0, 1] = 2.0
    assert tns(spike, STAGE[:3]) == pytest.approx([(3 - 1) * 2.0], rel=1e-15)  # and it is reached


@given(st.floats(0.0, 1e6), st.sampled_from([np.float32, np.float64]), means)
@settings(deadline=None)
def test_equal_indices_have_no_stiffness_and_are_no_misses(value, precision, mu):
    nsi = np.full((7, len(STAGE)), value, dtype=precision)
    assert (tns(nsi, STAGE, mu) == 0.0).all()
    assert delta(nsi, STAGE, 0.0, 0.0, mu) == 1.0  # rounding may lift a mean above its equal terms
    assert stiffness_proportion(nsi, STAGE, 0.0, value, mu) == 1.0


def test_a_single_block_and_a_stage_at_rest():
    assert tns(np.array([[0.7]]), [0]).tolist() == [0.0]
    assert tns(np.zeros((2, 3)), [0, 0, 0]).tolist() == [0.0, 0.0]
    both = np.array([[0.0, 0.0, 1.0, 3.0]])
    assert tns(both, [0, 0, 1, 1]) == pytest.approx([0.5 * 3.0])
    assert tns(both, [0, 0, 1, 1], mu="dataset") == pytest.approx([0.5 * 3.0])


def test_the_two_means_differ():
    nsi = np.array([[1.0, 1.0], [1.0, 5.0]])
    np.testing.assert_allclose(tns(nsi, [0, 0]), [0.0, (5 / 3 - 1) * 5])
    np.testing.assert_allclose(tns(nsi, [0, 0], mu="dataset"), [0.0, (5 / 2 - 1) * 5])
    assert delta(nsi, [0, 0], 0.0, 0.0, mu="sample") == 1.0
    assert delta(nsi, [0, 0], 0.0, 0.0, mu="dataset") == 0.5  # the first sample stays below the common mean of 2


@given(seeds, means)
@settings(deadline=None)
def test_any_batch_in_pieces(seed, mu):
    nsi = batch(seed, samples=40)
    whole = tns(nsi, STAGE, mu), stiffness_proportion(nsi, STAGE, 0.3, 0.4, mu)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["odelab.stiffness.tns"], "CHUNK", 3 * len(STAGE))
        np.testing.assert_allclose(tns(nsi, STAGE, mu), whole[0], rtol=1e-12, atol=1e-14)
        assert stiffness_proportion(nsi, STAGE, 0.3, 0.4, mu) == whole[1]


@given(seeds, means, st.sampled_from([np.float32, np.float64]))
@settings(deadline=None)
def test_numpy_and_torch_agree(seed, mu, precision):
    nsi = batch(seed).astype(precision)
    tensor = torch.from_numpy(nsi)
    ours, theirs = tns(nsi, STAGE, mu), tns(tensor, torch.from_numpy(STAGE), mu)
    assert ours.dtype == precision
    assert theirs.dtype == tensor.dtype
    np.testing.assert_allclose(theirs.numpy(), ours, rtol=1e-12 if precision == np.float64 else 1e-5, atol=1e-12)
    grid = np.linspace(0.0, 1.0, 5)
    for measure in (delta, stiffness_proportion):
        surface = measure(tensor, STAGE, torch.from_numpy(grid)[:, None], grid, mu)
        assert surface.dtype == tensor.dtype
        np.testing.assert_allclose(surface.numpy(), measure(nsi, STAGE, grid[:, None], grid, mu), rtol=1e-6)
        assert 0.0 <= float(measure(tensor, STAGE, 0.1, 0.2, mu)) <= 1.0


@given(seeds, means, st.sampled_from([1.0, 1e-2, 1e-4]))
@example(4250, "dataset", 1.0)  # a sample whose largest indices are all near the mean of all samples
@settings(deadline=None)
def test_single_precision_loses_rounding_only(seed, mu, spread):
    """(max / mu - 1) max of a flat profile is a difference of nearly equal numbers, which must not be rounded first."""
    nsi = (0.6 + spread * (batch(seed) - 0.6)).clip(0.0).astype(np.float32)
    exact = tns(nsi.astype(np.float64), STAGE, mu)
    np.testing.assert_allclose(tns(nsi, STAGE, mu), exact, rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(tns(torch.from_numpy(nsi), STAGE, mu).numpy(), exact, rtol=1e-5, atol=1e-12)


def test_thresholds_are_compared_in_the_precision_of_the_indices():
    nsi = np.array([[0.7, 0.1]], dtype=np.float32)  # float32(0.7) < 0.7
    assert delta(nsi, [0, 0], 0.0, 0.7) == 1.0


@given(seeds, means)
@settings(deadline=None, max_examples=10)
def test_gradients(seed, mu):
    nsi = torch.from_numpy(batch(seed, samples=3)).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: tns(x, STAGE, mu), (nsi,))


@pytest.mark.parametrize("value", [0.0, 0.1, 1.0])
def test_gradients_are_finite_at_ties(value):
    nsi = torch.full((2, 6), value, dtype=torch.float64, requires_grad=True)
    tns(nsi, [0, 0, 0, 1, 1, 1]).sum().backward()
    assert nsi.grad is not None
    np.testing.assert_allclose(nsi.grad.numpy(), 0.0, atol=1e-15)


def test_tns_can_be_a_regulariser():
    nsi = torch.from_numpy(batch(0)).requires_grad_()
    before = tns(nsi, STAGE).mean()
    before.backward()
    assert tns(nsi.detach() - 0.01 * nsi.grad, STAGE).mean() < before


nsi = np.ones((2, 3))
REFUSED = [
    (
        lambda: tns(np.array([[0.1, np.nan, 0.2]]), [0, 0, 0]),
        "`nsi` must be finite.*got nan for sample 0, block 1.*first",
    ),
    (lambda: tns(torch.tensor([[0.1, np.nan]]), [0, 0]), "`nsi` must be finite.*got nan for sample 0, block 1"),
    (lambda: tns(nsi * np.inf, [0, 0, 0]), "`nsi` must be finite.*got inf"),
    (lambda: tns(-nsi, [0, 0, 0]), "`nsi` must be finite and not negative, got -1.0"),
    (lambda: tns(np.ones((0, 3)), [0, 0, 0]), r"`nsi` must hold at least one sample.*\(0, 3\)"),
    (lambda: tns(np.ones((2, 0)), []), r"at least one sample of one counted block.*\(2, 0\)"),
    (lambda: tns(np.ones(3), [0, 0, 0]), r"got shape \(3,\); one sample is nsi\[None\]"),
    (lambda: tns(nsi, [0, 0]), r"`stage` must hold one label per block, \(3,\), got shape \(2,\)"),
    (lambda: tns(nsi, [0, 0, 0], mu="median"), "`mu` must be one of .*got 'median'"),
    (lambda: delta(nsi, [0, 0, 0], -0.1, 0.0), "`m1` must be zero or positive, got -0.1"),
    (lambda: delta(nsi, [0, 0, 0], 0.1, np.nan), "`m2` must be zero or positive, got nan"),
    (lambda: stiffness_proportion(nsi, [0, 0, 0], np.ones(2), np.ones(3)), "`m1` and `m2` must broadcast"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_refusals_name_the_argument_and_the_value(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.slow
def test_ten_thousand_samples_cost_less_than_to_draw_them():
    stages = np.repeat(np.arange(3), 18)
    nsi = batch(0, 10_000, 54)
    for samples in (nsi, torch.from_numpy(nsi)):
        assert cost(lambda given=samples: tns(given, stages), lambda: batch(0, 10_000, 54), 1.0) <= 1.0


@pytest.mark.slow
def test_five_hundred_times_faster_than_a_grid():
    stages = np.repeat(np.arange(3), 18)
    nsi = batch(0, 1000, 54)
    assert quadrature(nsi, stages, 400) == pytest.approx(tns(nsi, stages).mean(), rel=2e-3)
    assert cost(lambda: tns(nsi, stages), lambda: quadrature(nsi, stages, 400), 1 / 500) <= 1 / 500


@given(seeds, means, st.integers(-60, 60), st.booleans())
def test_the_shape_stays_to_the_bit_and_the_scale_follows_when_all_indices_are_doubled(seed, mu, doublings, in_torch):
    nsi = batch(seed)
    nsi, factor = torch.tensor(nsi) if in_torch else nsi, 2.0**doublings
    parts, doubled = tns_parts(nsi, STAGE, mu), tns_parts(factor * nsi, STAGE, mu)
    assert float(doubled.scale) == factor * float(parts.scale)
    assert float(doubled.shape) == float(parts.shape)


@given(seeds, means)
def test_scale_times_shape_is_tns(seed, mu):
    nsi = batch(seed)
    parts = tns_parts(nsi, STAGE, mu)
    assert parts.tns == tns(nsi, STAGE, mu).mean()
    assert parts.scale == nsi.mean()
    assert parts.scale * parts.shape == pytest.approx(parts.tns, rel=4e-16)


def test_indices_that_are_all_alike_have_no_shape():
    assert tns_parts(np.full((2, 8), 0.3), STAGE).shape == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("zero", [0.0, np.float64(0.0), np.zeros(2), torch.zeros(())], ids=str)
def test_where_all_indices_are_zero_there_is_no_shape(zero):
    assert np.isnan(np.asarray(TnsParts(zero, zero).shape)).all()
    assert np.isnan(tns_parts(np.zeros((2, 4)), [0, 0, 1, 1]).shape)
