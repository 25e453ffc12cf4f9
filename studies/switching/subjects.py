"""The problems of `switching`, in families: catalogue entries with their knobs turned, and others made for it."""

import dataclasses
from collections.abc import Callable

import numpy as np

import odelab as ol
from odelab import problems

# Families on which the full preset tries other methods, cold starts and other windows: each method is a kernel to make.
VARIED = {
    *("van_der_pol", "robertson", "hires", "oregonator", "brusselator", "lorenz", "rigid_body", "kepler"),
    *("prothero", "davis_skodje", "forced", "linear"),
}


@dataclasses.dataclass(frozen=True)
class Subject:
    """A problem of the study.

    name     such as "vdp100"
    family   such as "vdp": the unit of inference
    make     makes the `Problem`
    knob     how far the family's knob is turned: 0 in every preset, 1 from quick on, 2 in the full one
    """

    name: str
    family: str
    make: Callable[[], ol.Problem]
    knob: int = 0

    def problem(self) -> ol.Problem:
        return self.make()

    @property
    def by_lines(self) -> bool:
        return self.family in {"brusselator_1d", "heat_1d", "allen_cahn_1d", "advection_1d", "burgers_1d"}

    @property
    def varied(self) -> bool:
        return self.family in VARIED and self.knob < 2

    @property
    def non_normal(self) -> bool:
        return self.family.startswith("non_normal")


def factory_over(factory, span=None, **options):
    """A function that makes this problem, over another span where one is given."""

    def make():
        problem = factory(**options)
        return problem if span is None else problem.replace(t_span=(problem.t_span[0], span))

    return make


def rotate(block, seed: int = 1):
    """A matrix in other coordinates, so that no component is the fast one alone."""
    q = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(block), len(block))))[0]
    return q @ block @ q.T, q


def oscillators(amplitude: float, frequency: float, damping: float = 0.0, span: float = 6.0):
    """A slow rotation beside a fast one of some amplitude, mixed by an orthogonal map."""

    def make():
        block = np.zeros((4, 4))
        block[:2, :2] = [[0.0, 1.0], [-1.0, 0.0]]
        block[2:, 2:] = [[-damping, frequency], [-frequency, -damping]]
        matrix, q = rotate(block)
        return problems.linear(matrix, u0=q @ [1.0, 0.0, amplitude, 0.0]).replace(t_span=(0.0, span))

    return make


def linear(matrix, u0, span: float):
    return factory_over(lambda: problems.linear(matrix, u0), span)


def shear(n: int, diagonal: float, above: float):
    return diagonal * np.eye(n) + above * np.eye(n, k=1)


def forced_shear(above: float, frequency: float = 1.0):
    """A non-normal system whose solution is a slow oscillation: its transients are not the solution."""
    matrix = np.diag([-10.0, -40.0, -160.0]) + above * np.triu(np.ones((3, 3)), 1)
    return factory_over(problems.forced_linear, 10.0, matrix=matrix, frequency=frequency)


def subjects() -> list[Subject]:
    """Every problem of the study, in order."""
    table: list[Subject] = []

    def add(family, name, make, knob=0):
        table.append(Subject(name, family, make, knob))

    turned = ((1.0, 20.0, 1), (5.0, 30.0, 0), (20.0, 60.0, 2), (50.0, 125.0, 2), (100.0, 250.0, 1))
    for mu, span, knob in (*turned, (300.0, 750.0, 2), (1000.0, 2500.0, 2)):
        add("van_der_pol", f"van_der_pol {mu:g}", factory_over(problems.van_der_pol, span, mu=mu), knob)
    add("robertson", "robertson", factory_over(problems.robertson, 1e8))
    add("hires", "hires", problems.hires, 1)
    add("oregonator", "oregonator", problems.oregonator, 1)
    add("e5", "e5", factory_over(problems.e5, 1e11), 2)
    add("pollu", "pollu", problems.pollu, 2)
    add("brusselator", "brusselator", problems.brusselator, 1)
    add("lorenz", "lorenz", factory_over(problems.lorenz, 10.0), 1)
    add("rigid_body", "rigid_body", problems.rigid_body, 1)
    add("arenstorf", "arenstorf", problems.arenstorf, 2)
    for e, knob in ((0.0, 2), (0.3, 2), (0.6, 1), (0.8, 2), (0.95, 1)):
        add("kepler", f"kepler {e:g}", factory_over(problems.kepler, eccentricity=e), knob)
    for rate, knob in ((-1.0, 2), (-10.0, 2), (-30.0, 1), (-100.0, 2), (-1e3, 1), (-1e5, 2)):
        add("prothero", f"prothero {-rate:g}", factory_over(problems.prothero_robinson, 10.0, rate=rate), knob)
    add("curtiss", "curtiss", factory_over(problems.curtiss_hirschfelder, 10.0), 1)
    for gamma, knob in ((3.0, 2), (10.0, 2), (30.0, 2), (100.0, 1), (1e3, 2), (1e4, 1)):
        add("davis_skodje", f"davis_skodje {gamma:g}", factory_over(problems.davis_skodje, gamma=gamma), knob)
    for radius, knob in ((1e-1, 2), (1e-2, 2), (1e-3, 1), (3e-4, 2), (1e-4, 2)):
        add("flame", f"flame {radius:g}", factory_over(problems.flame, radius=radius), knob)
    for slowness, knob in ((0.3, 2), (0.08, 1), (0.02, 2), (0.005, 2), (0.001, 2)):
        add("fitzhugh", f"fitzhugh {slowness:g}", factory_over(problems.fitzhugh_nagumo, slowness=slowness), knob)
    for stiffness, span, knob in ((1e2, 8.0, 2), (1e3, 8.0, 2), (1e4, 8.0, 1), (1e5, 5.0, 2), (1e6, 3.0, 2)):
        make = factory_over(problems.elastic_pendulum, span, stiffness=stiffness)
        add("elastic_pendulum", f"elastic_pendulum {stiffness:g}", make, knob)
    pairs = ((-1.0, 10.0, 10.0, 2), (-1.0, 100.0, 10.0, 0), (-100.0, 100.0, 10.0, 2), (-0.01, 1000.0, 3.0, 1))
    for real, imaginary, span, knob in (*pairs, (-1000.0, 1000.0, 10.0, 1)):
        matrix = ((real, -imaginary), (imaginary, real))
        name = f"forced {real:g} +- {imaginary:g}i"
        add("forced", name, factory_over(problems.forced_linear, span, matrix=matrix), knob)
    alive = factory_over(problems.forced_linear, 10.0, matrix=((-0.1, -300.0), (300.0, -0.1)), u0=(3.3, 2.7))
    add("forced alive", "forced alive", alive, 1)
    fast = factory_over(problems.forced_linear, 0.3, matrix=((-1000.0, 0.0), (0.0, -1000.0)), frequency=1000.0)
    add("forced fast", "forced fast", fast, 1)
    for amplitude, knob in ((1.0, 1), (1e-2, 2), (1e-3, 2), (1e-4, 2), (1e-5, 1), (1e-6, 2), (1e-7, 2)):
        add("oscillators", f"oscillators {amplitude:g}", oscillators(amplitude, 100.0, span=3.0), knob)
    add("oscillators damped", "oscillators damped", oscillators(1.0, 300.0, 3.0, 10.0), 2)
    add("oscillators gone", "oscillators gone", oscillators(1.0, 300.0, 300.0, 10.0), 1)
    add("linear", "linear -1000 -1", linear(np.diag([-1000.0, -1.0]), [1.0, 1.0], 10.0), 1)
    for fast in (10.0, 100.0, 1e4):
        add("linear", f"linear -{fast:g} -1", linear(np.diag([-fast, -1.0]), [1.0, 1.0], 10.0), 2)
    add("non_normal 2", "non_normal 1e3", linear(((-1.0, 1e3), (0.0, -2.0)), [0.0, 1.0], 10.0), 1)
    add("non_normal 2", "non_normal 1e5", linear(((-1.0, 1e5), (0.0, -2.0)), [0.0, 1.0], 10.0), 2)
    add("non_normal shear", "shear 2", linear(shear(12, -1.0, 2.0), np.full(12, 0.5), 30.0), 1)
    add("non_normal shear", "shear 8", linear(shear(12, -1.0, 8.0), np.full(12, 0.5), 30.0), 2)
    for above, knob in ((0.0, 2), (10.0, 2), (100.0, 2), (300.0, 1), (1000.0, 2), (10_000.0, 1)):
        add("non_normal forced", f"forced shear {above:g}", forced_shear(above), knob)
    add("growing", "growing 50", linear([[50.0]], [1e-3], 0.5), 2)
    add("growing mixed", "growing mixed", linear(np.diag([5.0, -2000.0]), [1e-3, 1.0], 3.0), 1)
    for n, knob in ((5, 1), (10, 2), (20, 2)):
        add("brusselator_1d", f"brusselator_1d {n}", factory_over(problems.brusselator_1d, n=n), knob)
    for n, knob in ((8, 2), (16, 1), (32, 2)):
        add("heat_1d", f"heat_1d {n}", factory_over(problems.heat_1d, 0.5, n=n), knob)
    add("allen_cahn_1d", "allen_cahn_1d 20", factory_over(problems.allen_cahn_1d, n=20, diffusivity=0.01), 1)
    add("advection_1d", "advection_1d 30", factory_over(problems.advection_1d, n=30), 1)
    add("burgers_1d", "burgers_1d 24", factory_over(problems.burgers_1d, n=24), 2)
    return table
