"""Every index of stiffness at one state: of the problem, of the solution, and of the two together."""

import numpy as np

from odelab.linear.linearisation import Linearisation
from odelab.methods.tableau import Method
from odelab.problem import Problem, array_form
from odelab.stiffness.log_norm import log_norm, soderlind
from odelab.stiffness.scales import OSCILLATES, motion_rate, power_bounded_step
from odelab.stiffness.spectrum import spectrum
from odelab.stiffness.stable_step import largest_stable_step, nongrowing_radius

__all__ = ["linear_parts", "state_indices"]

ZERO = 1e-10  # of the largest modulus: real parts below it are none


def linear_parts(problem: Problem, t: float, u) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Linearise a problem at a state.

    problem  the Problem; its Jacobian is used where it has one, else an exact one is derived
    t, u     the time and the state (n,)

    Returns (J, f, f_t): the Jacobian (n, n), dense, the slope (n,), and the derivative of the right-hand side with
    respect to time (n,).

    >>> import odelab as ol
    >>> from odelab.experiments import at_a_state
    >>> J, f, f_t = at_a_state.linear_parts(ol.problems.prothero_robinson(-50.0), 0.0, [1.0])
    >>> J.shape, f.shape, f_t.shape
    ((1, 1), (1,), (1,))
    """
    if problem.mass is not None:
        raise ValueError(
            f"`problem` = {problem.name} has a mass matrix, with which J, f and f_t do not tell how the state moves; "
            "odelab.reduced_jacobian and odelab.indicators take it."
        )
    u = np.asarray(u, dtype=float)
    slope = np.asarray(problem.slope(t, u), dtype=float)
    J, slope_t = Linearisation(problem, array_form(problem)).derivatives(t, u, slope)
    J = J.toarray() if hasattr(J, "toarray") else np.asarray(J)
    return J, slope, np.broadcast_to(np.asarray(slope_t, dtype=float), u.shape)


def state_indices(problem: Problem, t: float, u, method: Method, scale=1.0) -> dict[str, float]:
    """Measure everything that may say whether a state is stiff.

    problem  the Problem; its Jacobian is used where it has one, else an exact one is derived
    t, u     the time and the state (n,)
    method   the explicit Method whose stability limits are asked about
    scale    what each component is measured by in "h_power" and "weighted SAI", (n,) or one number

    Returns a dictionary. Of the problem: "SI", "-min Re", "max/min |Re|" (of the real parts that are not zero), "rho",
    "rho_ng" (of modes that do not grow), "|J|_2", the logarithmic norms "mu_1", "mu_2", "mu_inf" and the lower one
    "m_2", "-s[J]", "Henrici" (the departure from normality over the Frobenius norm). Of the solution: "SAI",
    "simplified SAI" (|f|), "weighted SAI" (the root mean square of f over the scale), "rate" (see
    `odelab.motion_rate`). Of the method: "h_stab" and "h_power", the largest steps that eigenvalues and powers allow.

    >>> import odelab as ol
    >>> from odelab.experiments import state_indices
    >>> problem = ol.problems.linear_symmetric([-1000.0, -1.0])
    >>> found = state_indices(problem, 0.0, problem.u0, ol.DOPRI5)
    >>> round(found["SI"], 6), round(found["max/min |Re|"], 6), found["SAI"] < found["SI"]
    (1000.0, 1000.0, True)
    """
    u = np.asarray(u, dtype=float)
    J, slope, slope_t = linear_parts(problem, t, u)
    found = spectrum(J)
    values = np.asarray(found.values)
    real = np.abs(values.real)
    real = real[real > ZERO * np.abs(values).max(initial=0.0)]
    size, speed = float(np.linalg.norm(u)), float(np.linalg.norm(slope))
    return {
        "SI": float(found.si),
        "-min Re": -float(found.min_re),
        "rho": float(found.spectral_radius),
        "rho_ng": nongrowing_radius(values),
        "|J|_2": float(np.linalg.norm(J, 2)),
        "mu_1": float(log_norm(J, 1)),
        "mu_2": float(log_norm(J)),
        "mu_inf": float(log_norm(J, np.inf)),
        "m_2": -float(log_norm(-J)),
        "-s[J]": -float(soderlind(J)),
        "max/min |Re|": float(real.max() / real.min()) if len(real) else 1.0,
        "Henrici": float(found.non_normality),
        "SAI": speed / size if size > 0.0 else 0.0,
        "simplified SAI": speed,
        "weighted SAI": float(np.sqrt(np.mean((slope / scale) ** 2))),
        "rate": motion_rate(J, slope, slope_t),
        "h_stab": largest_stable_step(values, method, modes="nongrowing", gain=OSCILLATES),
        "h_power": power_bounded_step(J, method, scale),
    }
