"""Three equal masses in the plane, started near the circular orbit of an equilateral triangle.

Where each choice comes from. HNN is S. Greydanus, M. Dzamba and J. Yosinski, Hamiltonian Neural Networks (2019), read
in its public code (experiment-3body/data.py); SRNN is Z. Chen, J. Zhang, M. Arjovsky and L. Bottou, Symplectic
Recurrent Neural Networks (ICLR 2020), read in its public code (src/generate_data.py, src/script_3body_new), which says
it takes its starts from HNN. No rule of the SRNN paper's text is used that its code does not show.

- Masses 1, G = 1, no softening, no regularisation: both.
- Positions: the first body's radius is uniform in [0.9, 1.2], its direction that of a uniform point of the square
  [-1, 1]^2 (so diagonals are a little likelier); the others follow at 120 and 240 degrees: both.
- Velocities: those of the circular orbit, sqrt(sin 60 / (2 cos^2 30)) / sqrt(r) = 0.7598 / sqrt(r), counter-clockwise;
  then each of the six Cartesian components is multiplied by its own 1 + 0.2 * uniform[-1, 1]. HNN draws the six factors
  anew for every start; SRNN's code draws them once for a whole data set (`shared_perturbation=True`), so that all its
  trajectories share one perturbation and differ in radius and direction only. It matters: of 60 such starts the share
  that passed within 0.2 before t = 10 was 0, 0.57, 0.65, 0.72 and 0.83 for five seeds; drawn anew, 0.42.
- Horizon: HNN [0, 5], sampled 20 times; SRNN's released script 10, sampled at 1, its data generator's own default 1,
  sampled at 0.01, and an earlier version of it 50 (1,000 trajectories, sampled at 0.1). Here 10.
- Accuracy: HNN solves with RK45 at rtol 1e-9; SRNN with RK45 at rtol 1e-4, atol 1e-7 and a float32 right-hand side,
  so its "true" trajectories are not accurate after a close encounter.

Unknown: which horizon and sampling lie behind the count of close encounters quoted in arXiv 2308.09939, how near is
close, and what became of runs that failed. The paper it cites for the count is about batch normalisation; probably
meant is S. Liang, Z. Huang and H. Zhang, Stiffness-aware neural network for learning Hamiltonian systems (ICLR 2022).

Near a collision nothing special happens: an adaptive explicit method shortens its step like the distance to the power
3/2 and gets through, since exact collisions have probability zero; the error it makes there shows in the energy. Of 400
starts run to t = 10 with SciPy's DOP853 at rtol 1e-9 all ended, in 18 to 181 steps, the nearest step at 0.016, the
largest error of the energy 4e-8.
A fixed step larger than the encounter throws bodies out at any speed. `softening` takes the singularity away and
changes the problem.
"""

import numpy as np

from odelab import maths
from odelab.problem import Problem
from odelab.problems.bodies.gravity import gravity_invariants, gravity_jacobian
from odelab.problems.common.support import number, whole_number

EQUAL = (1.0, 1.0, 1.0)
RADIUS = (0.9, 1.2)
PERTURBATION = 0.2
CIRCULAR = np.sqrt(np.sin(np.pi / 3.0) / (2.0 * np.cos(np.pi / 6.0) ** 2))  # speed * sqrt(radius) of the exact orbit


def three_body_rhs(t, u, params):
    x1, x2, x3, y1, y2, y3, p1, p2, p3, q1, q2, q3 = u
    (softening,) = params
    a12, b12 = x2 - x1, y2 - y1
    a13, b13 = x3 - x1, y3 - y1
    a23, b23 = x3 - x2, y3 - y2
    s12 = a12 * a12 + b12 * b12 + softening * softening
    s13 = a13 * a13 + b13 * b13 + softening * softening
    s23 = a23 * a23 + b23 * b23 + softening * softening
    w12 = 1.0 / (s12 * maths.sqrt(s12))
    w13 = 1.0 / (s13 * maths.sqrt(s13))
    w23 = 1.0 / (s23 * maths.sqrt(s23))
    return (
        p1,
        p2,
        p3,
        q1,
        q2,
        q3,
        w12 * a12 + w13 * a13,
        w23 * a23 - w12 * a12,
        -w13 * a13 - w23 * a23,
        w12 * b12 + w13 * b13,
        w23 * b23 - w12 * b12,
        -w13 * b13 - w23 * b23,
    )


def three_body_jacobian(t, u, params):
    return gravity_jacobian(u, EQUAL, params[0])


def three_body_parts(params):
    return EQUAL, params[0]


def three_body_starts(count: int, seed: int = 0, shared_perturbation: bool = False) -> np.ndarray:
    """Random starts of three bodies as rows of an (N, 12) array, for `odelab.ensemble`.

    count                  how many
    seed                   of the random numbers, 0 by default; the first rows do not depend on `count`
    shared_perturbation    True perturbs the velocities of all starts alike; False by default

    >>> import odelab as ol
    >>> ol.problems.three_body_starts(5).shape
    (5, 12)
    """
    draws = np.random.default_rng(seed).random((whole_number("count", count, 1), 9))
    direction = 2.0 * draws[:, 0] - 1.0 + 1j * (2.0 * draws[:, 1] - 1.0)
    radius = RADIUS[0] + (RADIUS[1] - RADIUS[0]) * draws[:, 2]
    first = radius * direction / np.abs(direction)
    corners = np.exp(2j * np.pi / 3.0 * np.arange(3))
    place = first[:, None] * corners
    velocity = 1j * place * (CIRCULAR * radius**-1.5)[:, None]
    factors = 1.0 + PERTURBATION * (2.0 * draws[:, 3:] - 1.0)
    if shared_perturbation:
        factors = factors[:1]
    return np.hstack((place.real, place.imag, velocity.real * factors[:, :3], velocity.imag * factors[:, 3:]))


def three_body(seed: int = 0, softening: float = 0.0) -> Problem:
    """Three equal masses near Lagrange's triangle, state (x_1, x_2, x_3, y_1, y_2, y_3, x'_1, ..., y'_3).

    seed         which random start: the first that `three_body_starts` draws with it; 0 by default
    softening    added in square to every squared distance; 0.0, the default, keeps close encounters as hard as they are

    Returns a `Problem` on (0, 10) with energy, momentum and angular momentum as invariants. Sources: the module's text.

    >>> import odelab as ol
    >>> ol.problems.three_body(seed=1).size
    12
    """
    softening = number("softening", softening)
    return Problem(
        three_body_rhs,
        three_body_starts(1, seed)[0],
        (0.0, 10.0),
        (softening,),
        jacobian=three_body_jacobian,
        invariants=gravity_invariants(three_body_parts),
        name="three_body",
        about="Equal masses near Lagrange's triangle, which is unstable for them: S. Greydanus, M. Dzamba and J. "
        "Yosinski, Hamiltonian Neural Networks (2019), and Z. Chen, J. Zhang, M. Arjovsky and L. Bottou, Symplectic "
        "Recurrent Neural Networks (2020), from their public code. No softening: a close encounter shortens "
        "the step.",
    )
