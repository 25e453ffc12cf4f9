"""The largest stable step: on the boundary of the stability region, and nowhere beyond it."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import odelab as ol

torch = pytest.importorskip("torch")

METHODS = [ol.EULER, ol.HEUN, ol.RK4, ol.RKF45, ol.DOPRI5, ol.BS32]
eigenvalues = st.lists(
    st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)).filter(lambda z: abs(z[0]) > max(1e-6, 0.05 * abs(z[1]))),
    min_size=1,
    max_size=6,
).map(lambda pairs: np.array([complex(*pair) for pair in pairs]))


@given(eigenvalues, st.sampled_from(METHODS))
@settings(deadline=None)
def test_a_little_less_is_stable_and_a_little_more_is_not(values, method):
    h = ol.largest_stable_step(values, method)
    if not (values.real < 0).any():
        assert h == np.inf
        return
    assert not ol.amplified(values, method, h * (1 - 1e-6)).any()
    assert ol.amplified(values, method, h * (1 + 1e-6)).any()


@given(eigenvalues, st.floats(1e-3, 1e3))
@settings(deadline=None)
def test_it_scales_as_time_does(values, factor):
    wanted = ol.largest_stable_step(values, ol.RK4) / factor
    assert ol.largest_stable_step(factor * values, ol.RK4) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_on_the_real_axis_it_is_the_real_boundary(method):
    assert ol.largest_stable_step([-1.0], method) == pytest.approx(method.real_boundary, rel=1e-6)


def test_growing_modes_do_not_count():
    assert ol.largest_stable_step([3.0, -1.0, 1j], ol.EULER) == 2.0


@pytest.mark.parametrize("method", [ol.RKC2, ol.RADAU], ids=lambda method: method.name)
def test_a_method_without_a_boundary_of_its_own_is_refused(method):
    with pytest.raises(TypeError, match="`method` must be a Method of a fixed number of stages"):
        ol.largest_stable_step([-1.0], method)


def test_values_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="`values` must be finite, got"):
        ol.largest_stable_step([-1.0, np.nan], ol.RK4)
    with pytest.raises(ValueError, match="`values` must be finite, got"):
        ol.amplified([-1.0, -np.inf], ol.RK4)


@given(eigenvalues, st.sampled_from(METHODS))
@settings(deadline=None, max_examples=30)
def test_a_gain_allows_longer_steps_and_more_modes_shorter_ones(values, method):
    decaying = ol.largest_stable_step(values, method)
    assert ol.largest_stable_step(values, method, gain=0.02) >= decaying * (1 - 1e-9)
    assert ol.largest_stable_step(values, method, "nongrowing", 0.02) >= 0.0
    assert ol.largest_stable_step([*values, 2000j], method, "nongrowing") <= decaying * (1 + 1e-9)


def test_modes_that_oscillate_count_when_they_are_asked_for():
    """RK4's stability region reaches 2 sqrt(2) up the imaginary axis; Euler's does not reach up at all."""
    assert ol.largest_stable_step([1j, -1j], ol.RK4, "nongrowing") == pytest.approx(np.sqrt(8.0), rel=1e-6)
    assert ol.largest_stable_step([1j], ol.EULER, "nongrowing") == 0.0
    assert ol.largest_stable_step([1j], ol.EULER, "nongrowing", gain=0.02) == pytest.approx(np.sqrt(1.02**2 - 1))
    assert ol.largest_stable_step([1j, -1.0], ol.RK4) == ol.largest_stable_step([-1.0], ol.RK4)


def test_what_stable_step_refuses():
    with pytest.raises(ValueError, match="`modes` must be one of"):
        ol.largest_stable_step([-1.0], ol.RK4, modes="all")
    with pytest.raises(ValueError, match="`gain` must be at least 0, got -1"):
        ol.largest_stable_step([-1.0], ol.RK4, gain=-1)


@pytest.mark.parametrize("measure", [ol.nongrowing, ol.nongrowing_radius, lambda v: ol.largest_stable_step(v, ol.RK4)])
def test_a_jacobian_in_place_of_its_eigenvalues_is_refused(measure):
    """The entries of a matrix were taken for eigenvalues, and a number came out."""
    J = np.array([[0.0, 1.0], [-1000.0, -1001.0]])
    for wrong in (J, J.tolist(), torch.tensor(J), J + 0j):
        with pytest.raises(ValueError, match=r"`values` must be eigenvalues, got a square array \(2, 2\)"):
            measure(wrong)
    for wrong in (scipy.sparse.csr_array(J), ol.spectrum(J), "J"):
        with pytest.raises(TypeError, match="`values` must be eigenvalues, got"):
            measure(wrong)
    measure(np.linalg.eigvals(J)), measure(np.linalg.eigvals(np.stack([J, J, J]))), measure([[-1.0]]), measure(-1.0)


@pytest.mark.parametrize("method", ol.METHODS.values(), ids=lambda one: one.name)
def test_where_every_oscillation_grows_there_is_no_stable_step(method):
    """Of Midpoint, |R(iy)| - 1 is y^4 / 8: with 1e-12 for rounding a step of 0.0017 seemed stable. And no -0.0."""
    step = ol.largest_stable_step([1j, -1j], method, "nongrowing")
    assert step == pytest.approx(method.imaginary_boundary)
    assert not np.signbit(step)
    both = ol.largest_stable_step([1j, -1j, -1e3], method, "nongrowing")
    assert both == min(step, ol.largest_stable_step([-1e3], method))
