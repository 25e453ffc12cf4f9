"""Systems that kernels are written for in several tests: 1 to 32 components, driven and not, none of them chaotic."""

import importlib.util

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
