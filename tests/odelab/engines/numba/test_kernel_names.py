"""What people call their functions and constants is theirs: no name of a kernel's own text gets in the way."""

import ast
import builtins
import collections
import importlib.util

import numpy as np
import pytest

import odelab as ol
from odelab.engines.numba.module import module_for
from odelab.engines.numba.request import request_for


def plain(t, u, params):
    return (-u[0], u[0] - u[1])


def plain_in_place(t, u, params, out):
    for i in range(u.size):
        out[i] = -u[i]


def plain_radius(t, u, params):
    return 3.0


# layout -> a problem, a method and a controller whose text binds all the names the layout has
LAYOUTS = {
    "single": (plain, ol.DOPRI5, ol.adaptive(1e-5, 1e-7)),
    "lanes": (plain, ol.RKF45, ol.adaptive(1e-5, 1e-7)),
    "large": (plain_in_place, ol.DOPRI5, ol.adaptive(1e-5, 1e-7)),
    "large, fixed": (plain_in_place, ol.RK4, ol.fixed(0.02)),
    "stabilised": (plain_in_place, ol.rkc2(plain_radius), ol.adaptive(1e-4, 1e-6)),
}
START = np.array([1.0, 2.0])
SLOW = {"lanes", "stabilised"}  # to compile, with a hundred helpers
every_layout = pytest.mark.parametrize("layout", LAYOUTS)
compiled_layouts = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in LAYOUTS]


def text_of(layout, rhs=None, method=None):
    known, known_method, controller = LAYOUTS[layout]
    problem = ol.Problem(rhs or known, START, (0.0, 0.5))
    options = {"points": True, "maxima": True} if layout == "lanes" else {}
    module = module_for(request_for(layout.split(",")[0], problem, method or known_method, controller, **options))
    assert module.given == {}  # all of it could be written down
    return module.text


def bindings(text):
    """How often a module gives each of its names a value, function bodies apart."""
    found = collections.Counter()
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.FunctionDef):
            found[statement.name] += 1
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            found.update(name.asname or name.name for name in statement.names)
        elif isinstance(statement, ast.Assign):
            targets = [node for target in statement.targets for node in ast.walk(target)]
            found.update(node.id for node in targets if isinstance(node, ast.Name))
    return found


def names_of(layout):
    """Every name at the top of a layout's text, and some builtins it uses."""
    return sorted({*bindings(text_of(layout)), "spectral_radius_of", "abs", "min", "range"})


def imported(folder, name, text):
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def model(folder, layout):
    """A right-hand side with a helper under every name of a layout, and a constant under each, from another file."""
    names = names_of(layout)
    weights = {name: 1.0 / (i + 7.0) for i, name in enumerate(names)}
    constants = [f"{name} = {-weight!r}" for name, weight in weights.items()]
    steady = imported(folder, "steady", "\n".join([*constants, f"def rate(t):\n    return {' + '.join(names)}"]))
    helpers = [f"def {name}(x):\n    return {weight!r} * x\n" for name, weight in weights.items()]
    both = " + ".join(f"{name}(1.0)" for name in names)
    form = ["    out[0] = x\n    out[1] = y"] if LAYOUTS[layout][0] is plain_in_place else ["    return (x, y)"]
    arguments = "t, u, params, out" if LAYOUTS[layout][0] is plain_in_place else "t, u, params"
    body = [f"    x = (steady.rate(t) - 1.0) * u[0]\n    y = ({both}) * u[0] - 9.0 * u[1]"]
    radius = f"def bound(t, u, params):\n    return 9.0 + {both}"
    text = [*helpers, radius, f"def system({arguments}):", *body, *form]
    module = imported(folder, "model", "\n".join(text))
    module.steady = steady
    return module


@every_layout
def test_no_name_is_bound_twice(layout, tmp_path):
    written, (_, method, _) = model(tmp_path, layout), LAYOUTS[layout]
    found = bindings(text_of(layout, written.system, ol.rkc2(written.bound) if layout == "stabilised" else method))
    assert len(found) > 2 * len(names_of(layout))  # the helpers and the constants are there
    assert max(found.values()) == 1


@pytest.mark.parametrize("layout", compiled_layouts)
def test_helpers_and_constants_may_have_any_name_of_the_kernels_own(layout, tmp_path):
    written, (_, method, controller) = model(tmp_path, layout), LAYOUTS[layout]
    if layout == "stabilised":
        method = ol.rkc2(written.bound)
    problem = ol.Problem(written.system, START, (0.0, 0.5))
    if layout == "lanes":
        found = [
            ol.ensemble(problem, method, controller, u0=[START, 2.0 * START], t_eval=[0.2, 0.5], engine=engine).u
            for engine in ("compiled", "python")
        ]
    else:
        found = [ol.solve(problem, method, controller, engine=engine).u for engine in ("compiled", "python")]
    np.testing.assert_allclose(*found, rtol=1e-7)
    assert np.abs(found[0]).max() > 1.0


@every_layout
def test_so_may_the_right_hand_side_and_the_spectral_radius(layout, tmp_path):
    known, method, _ = LAYOUTS[layout]
    arguments, body = ("t, u, params, out", "out[:] = u") if known is plain_in_place else ("t, u, params", "return u")
    names = names_of(layout)
    text = "\n".join(f"def {name}({arguments}):\n    {body}\n" for name in names)
    module = imported(tmp_path, "named", text.replace("range", "range_"))  # `range` is what numba loops by
    for name, other in zip(names, names[1:] + names[:1], strict=True):
        if "range" in (name, other):
            continue
        given = ol.rkc2(getattr(module, other)) if layout == "stabilised" else method
        assert max(bindings(text_of(layout, getattr(module, name), given)).values()) == 1


ONE = UNIT = 1.0


def hidden(x):
    ONE = 5.0 * x  # what the module has called UNIT by the time this is written
    return ONE + UNIT


def hiding(t, u, params):
    return (ONE - hidden(u[0]),)


def abs(x):
    return 3.0 * x


def min(x, y):
    return x * y


def tripled(t, u, params):
    return (-abs(u[0]) * min(0.5, 0.25),)


def same_builtin(t, u, params):
    return (-builtins.abs(u[0]),)


log = 4.0


def shadowed(t, u, params):
    parts = [log for log in (1.0, 2.0)]  # noqa: C416
    return (-log * u[0] * parts[0],)


def numbered(x):
    advance_2 = 2.0 * x  # a name that `advance` would take
    return advance(advance_2)


def advance(x):
    return -x


def suffixed(t, u, params):
    return (numbered(u[0]),)


@pytest.mark.parametrize("rhs", [hiding, tripled, same_builtin, shadowed, suffixed], ids=lambda f: f.__name__)
def test_names_within_a_function_stay_its_own(rhs):
    problem = ol.Problem(rhs, [1.0], (0.0, 1.0))
    compiled, python = (ol.solve(problem, ol.RK4, ol.fixed(0.1), engine=engine) for engine in ("compiled", "python"))
    np.testing.assert_allclose(compiled.u, python.u, rtol=1e-13)


def infinite(t, u, params, least=np.inf, most=(np.nan,)):
    return (-u[0] if u[0] < least else most[0],)


def test_default_values_are_written_in_the_modules_own_names(monkeypatch):
    monkeypatch.setitem(infinite.__globals__, "math", None)
    problem = ol.Problem(infinite, [1.0], (0.0, 1.0))
    text = module_for(request_for("single", problem, ol.RK4, ol.fixed(0.1))).text
    assert "least=math.inf, most=(math.nan,)" in text
    assert ol.solve(problem, ol.RK4, ol.fixed(0.1), engine="compiled").u[-1, 0] == pytest.approx(np.exp(-1.0), rel=1e-5)
