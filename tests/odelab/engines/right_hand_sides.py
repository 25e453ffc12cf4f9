"""Random right-hand sides as users write them: tables, branches, helpers, closures, captured arrays, loops in place.

`right_hand_sides()` is a Hypothesis strategy. A case is Python text, so that a falsifying example can be read and
pasted, with changes of what the right-hand side reaches. Tests compare engines with plain Python before and after.
"""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

import odelab as ol

PREAMBLE = """
import math
import types
from collections import namedtuple
import numba
import numpy as np
import odelab as ol
from odelab import maths
""".strip()


class Part(NamedTuple):
    """One thing that a right-hand side may reach: its definition, its use and a change of it ({} is a number)."""

    name: str
    define: str
    use: str
    change: str


PARTS = [
    Part("global number", "RATE = {}", "RATE * x0", "RATE = {}"),
    Part("whole number", "COUNT = 3", "COUNT * x0", "COUNT = int(10 * {})"),
    Part("array", "WEIGHTS = np.array([{}, 0.5])", "WEIGHTS[0] * x0", "WEIGHTS[0] = {}"),
    Part("array replaced", "ROW = np.array([{}, 0.5])", "ROW[0] * x0", "ROW = np.array([{}])"),
    Part("array in a tuple", "PAIR = (np.array([{}]), 2.0)", "PAIR[0][0] * x0", "PAIR[0][0] = {}"),
    Part("array in a tuple in a tuple", "DEEP = (1.0, (np.array([{}]), 2.0))", "DEEP[1][0][0]", "DEEP[1][0][0] = {}"),
    Part("tuple replaced", "BOTH = ({}, 2.0)", "BOTH[0] * x0", "BOTH = ({}, 2.0)"),
    Part(
        "named tuple",
        "Spring = namedtuple('Spring', 'force damping')\nSPRING = Spring(np.array([{}]), 0.1)",
        "SPRING.force[0] * x0 - SPRING.damping",
        "SPRING.force[0] = {}",
    ),
    Part("table", "TABLE = np.linspace(0.0, {}, 50)", "TABLE[int(abs(t) * 20.0) % 50]", "TABLE[:] = {}"),
    Part("helper", "def helper(x):\n    return 0.3 * x + {}", "helper(x0)", "def helper(x):\n    return {} - x"),
    Part("global of a helper", "GAIN = {}\ndef gained(x):\n    return GAIN * x", "gained(x0)", "GAIN = {}"),
    Part(
        "global of a helper's helper",
        "SLOW = ({}, 1.0)\ndef inner(x):\n    return SLOW[0] * x\ndef outer(x):\n    return inner(x) + 1.0",
        "outer(x0)",
        "SLOW = ({}, 1.0)",
    ),
    Part(
        "global of a compiled helper",
        "SPEED = {}\n@numba.njit\ndef quick(x):\n    return SPEED * x",
        "quick(x0)",
        "SPEED = {}",
    ),
    Part(
        "array of a compiled helper",
        "SHIFTS = np.array([{}])\n@numba.njit\ndef shifted(x):\n    return SHIFTS[0] + x",
        "shifted(x0)",
        "SHIFTS[0] = {}",
    ),
    Part(
        "compiled helper made anew",
        "FAST = {}\n@numba.njit\ndef fast(x):\n    return FAST * x",
        "fast(x0)",
        "FAST = {}\nfast.recompile()",
    ),
    Part("default value", "START = {}", "strength * x0", "rhs.__defaults__ = ({},)"),
    Part(
        "closure cell",
        "def closed():\n    level = {}\n    def on(x):\n        return level * x\n    def to(x):\n"
        "        nonlocal level\n        level = x\n    return on, to\non, to = closed()",
        "on(x0)",
        "to({})",
    ),
    Part(
        "array in a closure",
        "def around(rows):\n    return lambda x: rows[1][0] * x\nROWS = (1.0, np.array([{}]))\nabout = around(ROWS)",
        "about(x0)",
        "ROWS[1][0] = {}",
    ),
    Part("module", "model = types.ModuleType('model')\nmodel.rate = {}", "model.rate * x0", "model.rate = {}"),
    Part(
        "function of a module",
        "own = types.ModuleType('own')\ndef pull(x):\n    return {} * x\nown.pull = pull",
        "own.pull(x0)",
        "def pull(x):\n    return x - {}\nown.pull = pull",
    ),
    Part("lambda", "bend = lambda x: x * {}", "bend(x0)", "bend = lambda x: {} - x"),
    Part("builtin name", "UNUSED = {}", "abs(x0)", "def abs(x):\n    return {} * x"),
    Part("branch", "LIMIT = {}", "(x0 if x0 > LIMIT else 0.5 * x0)", "LIMIT = {}"),
]
# What numba cannot compile: plain Python runs it, whatever changes.
OBJECTS = [
    Part("dict", "RATES = {{'a': np.array([{}])}}", "RATES['a'][0] * x0", "RATES['a'][0] = {}"),
    Part("object", "law = types.SimpleNamespace(rate={})", "law.rate * x0", "law.rate = {}"),
]
FORMS = ("component", "list", "in-place")


class Case(NamedTuple):
    """A right-hand side as text; `changes` are texts to be run after it, one at a time."""

    source: str
    changes: tuple[str, ...]
    form: str

    def build(self) -> dict:
        """The names that the text defines, `rhs` among them."""
        names: dict = {"__name__": "written"}
        exec(self.source, names)
        return names

    def problem(self, names: dict) -> ol.Problem:
        return ol.Problem(names["rhs"], [0.4, -0.3], (0.0, 1.0), (0.7,))


numbers = st.floats(0.1, 2.0).map(lambda x: repr(round(x, 3)))


@st.composite
def right_hand_sides(draw, parts=tuple(PARTS), most=3) -> Case:
    """A right-hand side of two components that reaches up to `most` of `parts`."""
    chosen = draw(st.lists(st.sampled_from(parts), min_size=1, max_size=most, unique=True))
    form = draw(st.sampled_from(FORMS))
    terms = " + ".join(f"({part.use})" for part in chosen)
    lines = ["    x0, x1 = u[0], u[1]", f"    force = {terms}"]
    if draw(st.booleans()):
        lines += ["    if x1 > 0.1 * t:", "        force = force - maths.sin(x1)"]
    if draw(st.booleans()):
        lines += ["    for _ in range(3):", "        force = 0.5 * force + math.cos(x0) * params[0]"]
    slopes = ("x1", "-x0 - 0.1 * force")
    if form == "in-place":
        head = "def rhs(t, u, params, out, strength=START):"
        lines += [f"    out[{i}] = {slope}" for i, slope in enumerate(slopes)]
    else:
        head = "def rhs(t, u, params, strength=START):"
        opening, closing = "[]" if form == "list" else "()"
        lines.append(f"    return {opening}{', '.join(slopes)}{closing}")
    defined = [part.define.format(draw(numbers)) for part in chosen if part.name != "default value"]
    source = "\n".join([PREAMBLE, f"START = {draw(numbers)}", *defined, head, *lines])
    return Case(source, tuple(part.change.format(draw(numbers)) for part in chosen), form)


def slope(case: Case, names: dict) -> np.ndarray:
    """The right-hand side at one state, by plain Python."""
    state = np.array([0.4, 0.3])
    if case.form != "in-place":
        return np.array(names["rhs"](0.2, state, (0.7,)))
    out = np.full(2, np.nan)
    names["rhs"](0.2, state, (0.7,), out)
    return out
