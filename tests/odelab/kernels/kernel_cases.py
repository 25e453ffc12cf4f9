"""Systems that kernels are written for in several tests: 1 to 32 components, driven and not, none of them chaotic."""

import importlib.util

import numpy as np

import odelab as ol


def logistic(t, u, params):
    (x,) = u
    rate, room = params
    return (rate * x * (1.0 - x / room),)


def driven(t, u, params):
    """A pendulum driven in time."""
    x, v = u
    (force,) = params
    return (v, -ol.maths.sin(x) - 0.1 * v + force * ol.maths.cos(t))


def kinked(t, u, params):
    """A spring harder one way than the other, with a branch."""
    x, v = u
    (hard,) = params
    stiffness = 1.0
    if x > 0.0:
        stiffness = hard
    return (v, -stiffness * x)


def kepler(t, u, params):
    x, y, vx, vy = u
    r2 = x * x + y * y
    pull = 1.0 / (r2 * ol.maths.sqrt(r2))
    return (vx, vy, -pull * x, -pull * y)


def spring_chain(n, folder):
    """n components as they would be typed by hand: n/2 masses between springs, in a module of its own."""
    half = n // 2
    names = [f"x{i}" for i in range(half)] + [f"v{i}" for i in range(half)]
    forces = []
    for i in range(half):
        left = f"x{i - 1}" if i else "0.0"
        right = f"x{i + 1}" if i + 1 < half else "0.0"
        forces.append(f"stiffness * ({left} - 2.0 * x{i} + {right}) - friction * v{i}")
    path = folder / f"chain{n}.py"
    path.write_text(
        f"def chain{n}(t, u, params):\n    {', '.join(names)} = u\n    stiffness, friction = params\n    return (\n"
        "        " + ",\n        ".join([*names[half:], *forces]) + ",\n    )\n"
    )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    start = [0.1 * (i % 3) + 0.05 for i in range(n)]
    return ol.Problem(getattr(module, f"chain{n}"), start, (0.0, 2.0), (3.0, 0.2))


def small_systems():
    """Name -> problem, with up to eight components; short enough for plain Python."""
    problems = ol.problems
    return {
        "logistic": ol.Problem(logistic, [0.1], (0.0, 6.0), (1.5, 2.0)),
        "driven": ol.Problem(driven, [1.0, 0.0], (0.5, 8.0), (0.7,)),
        "kinked": ol.Problem(kinked, [1.0, 0.0], (0.0, 5.0), (2.5,)),
        "van_der_pol": problems.van_der_pol(2.0).replace(t_span=(0.0, 6.0)),
        "brusselator backwards": problems.brusselator().replace(t_span=(1.0, 0.0)),
        "rigid_body": problems.rigid_body().replace(t_span=(0.0, 6.0)),
        "kepler": ol.Problem(kepler, [1.0, 0.0, 0.0, 1.2], (0.0, 8.0)),
        "hires": problems.hires().replace(t_span=(0.0, 2.0)),
    }


def rotating(t, u, params, out):
    (speed,) = params
    half = u.size // 2
    for i in range(half):
        out[i] = speed * u[half + i]
        out[half + i] = -speed * u[i] - 0.1 * u[i] * u[i] * u[i] + 0.01 * t


ROTATING = ol.Problem(rotating, np.linspace(-1.0, 1.0, 70), (0.0, 3.0), (2.0,))


def relaxing(t, u, params, out):
    """Oscillators of van der Pol, each drawn along by the one before it: a step is refused at every turn."""
    sharpness, pull = params
    half = u.size // 2
    for i in range(half):
        x, v = u[i], u[half + i]
        before = u[i - 1] if i else 2.0
        out[i] = v
        out[half + i] = sharpness * (1.0 - x * x) * v - x + pull * (before - x)


RELAXING = ol.Problem(relaxing, np.linspace(0.5, 2.0, 34), (0.0, 80.0), (3.0, 0.5))


def both(problem, method, controller, **options):
    """The run by a kernel and the run by the one source."""
    return (
        ol.solve(problem, method, controller, engine="compiled", throw=False, **options),
        ol.solve(problem, method, controller, engine="python", throw=False, **options),
    )


def digits(method):
    """(of the states, of the times): of two estimates that cancel each other, rounding leaves little."""
    return (1e-8, 1e-5) if method is ol.DOP853 else (1e-10, 1e-6)


def moved_by_sizes(kernel, plain) -> float:
    """How far other sizes of the steps move the states, up to ten times that on the way to the end.

    The local error of a step is c h^(order + 1), at most the estimate e; so dh more in h changes it by
    (order + 1) e dh / h. The estimate is a root mean square, relative to the tolerance.
    """
    control = plain.controller
    if control.law is None:
        return 0.0
    n, largest = plain.step_u.shape[1], np.abs(plain.step_u).max()
    errors = np.sqrt(n) * plain.error * (np.max(control.atol) + control.rtol * largest)
    changes = np.abs(np.diff(kernel.step_t) - np.diff(plain.step_t)) / np.abs(plain.h)
    return 10.0 * (plain.method.order + 1) * float((errors * changes).sum())


def assert_same_run(kernel, plain):
    """The same steps taken and refused, the same states to ten digits.

    An error estimate is a small difference of large numbers, so the last bits of the slopes are the last digits of the
    step sizes; a state is compared with the other's at its own time, along the slope.
    """
    assert kernel.engine == "compiled"
    of_states, of_times = digits(plain.method)
    assert (kernel.steps, kernel.rejected, kernel.evaluations) == (plain.steps, plain.rejected, plain.evaluations)
    assert (kernel.status, kernel.message) == (plain.status, plain.message)
    np.testing.assert_allclose(kernel.step_t, plain.step_t, rtol=0, atol=of_times * np.abs(plain.step_t).max())
    slopes = np.array([plain.problem.slope(t, u) for t, u in zip(plain.step_t, plain.step_u, strict=True)])
    expected = plain.step_u + slopes * (kernel.step_t - plain.step_t)[:, None]
    atol = of_states * np.abs(expected).max() + moved_by_sizes(kernel, plain)
    np.testing.assert_allclose(kernel.step_u, expected, rtol=0, atol=atol)
    np.testing.assert_allclose(kernel.error, plain.error, rtol=1e3 * of_times, atol=10 * of_times)
    np.testing.assert_allclose(kernel.sai, plain.sai, rtol=10 * of_times)
    if plain.method.twin_stages:
        assert "h_rho" in vars(kernel)  # recorded, not found afterwards
        np.testing.assert_allclose(kernel.h_rho, plain.h_rho, rtol=1e3 * of_times)
