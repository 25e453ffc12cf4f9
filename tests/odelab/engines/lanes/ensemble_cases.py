"""Ensembles to compare: runs around a problem's own, each of them alone, and equality to the bit."""

import numpy as np

import odelab as ol

VAN_DER_POL = ol.problems.van_der_pol().replace(t_span=(0.0, 5.0))


def drawn(problem, count, seed=0):
    """Initial states and parameters around the problem's own."""
    random = np.random.default_rng(seed)
    starts = problem.u0 * random.uniform(0.9, 1.1, (count, problem.size))
    params = np.array(problem.params) * random.uniform(0.9, 1.1, (count, len(problem.params)))
    return starts, params


def alone(problem, method, controller, start, params, **options):
    """One run of an ensemble, by the source that all engines share."""
    one = problem.replace(u0=start, params=tuple(np.asarray(params).tolist()))
    return ol.solve(one, method, controller, engine="python", throw=False, **options)


def spread(count, seed=0):
    """Oscillators from calm to stiff: their runs differ much in length."""
    random = np.random.default_rng(seed)
    return random.uniform(1.0, 2.0, (count, 2)), random.uniform(0.1, 10.0, (count, 1))


def run_all(starts, params, problem=VAN_DER_POL, controller=None, **options):
    return ol.ensemble(problem, ol.DOPRI5, controller or ol.adaptive(1e-6), u0=starts, params=params, **options)


def assert_same_bits(one, other, order=slice(None)):
    for name in ("u", "t", "steps", "rejected", "codes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name)[order], err_msg=name)
