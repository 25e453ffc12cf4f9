"""Functions that try to be traced wrongly: each is refused in words, or its graph is what it computes.

Afterwards nothing of the user's holds a node.
"""

import collections
import textwrap
import types

import numpy as np
import pytest

from odelab.functions.checking import difference
from odelab.graph.nodes import Node, Untraceable
from odelab.right_hand_side import COMPONENT
from tests.odelab.graph.tracing_of import plain_values, random_states, trace, values

DEFINITIONS = """
import collections, contextlib, datetime, itertools, math, random, subprocess, time, warnings
import numpy as np
HELD, SEEN, COUNTS, QUEUE = [1.0], set(), {"n": 1.0}, collections.deque([1.0] * 9000)
ARRAY, OBJECTS = np.ones(3), np.array([lambda x: 2.0 * x], dtype=object)
RANDOM, ENDLESS = np.random.default_rng(0), itertools.count()
class Model:
    made = 0
    def __init__(self, k=2.0): self.k, self.n, self.rows, self.memo = k, 0, [], {}; type(self).made += 1
    def append(self, x): self.rows.append(x); return len(self.rows)
    def count(self): self.n += 1; return self.n
    def keep(self, x): self.last = x; return self.last
    def first(self, x): return self.memo.setdefault("x", x)
    @property
    def turn(self): self.n += 1; return self.n
    def __call__(self, x): self.n += 1; return self.n * x
MODEL = Model()
class Open:
    def __getattr__(self, name): return 1.0
OPEN = Open()
class Meddling:
    def __mul__(self, x): ARRAY[0] = ARRAY[0] + 1; return ARRAY[0] * x
MEDDLING = Meddling()
def swallowing(f):
    try: return f()
    except Exception: return -3.0
def counted():
    n = 0
    def add(x):
        nonlocal n
        n += 1
        return n * x
    return add
COUNTED = counted()
def defaulted(x, rows=[]): rows.append(1); return len(rows) * x
"""
REFUSED = r"""
return (u[0] if type(u[0]) is float else 0.0), u[1]
return (u[0] if u[0].__class__ is np.float64 else 0.0), u[1]
COUNTS["n"] += 1; return u[0] * COUNTS["n"], u[1]
COUNTS.update(n=u[0]); return COUNTS["n"], u[1]
HELD.append(t); return u[0] * len(HELD), u[1]
HELD[0] = u[0]; return HELD[0], u[1]
SEEN.add(t); return u[0] * len(SEEN), u[1]
return QUEUE.popleft() * u[0], u[1]
return MODEL.append(u[0]) * u[0], u[1]
return MODEL.count() * u[0], u[1]
return MODEL.keep(u[0]), u[1]
return MODEL.first(u[0]), u[1]
return MODEL.turn * u[0], u[1]
return MODEL(u[0]), u[1]
warnings.warn("careful"); return u[0], u[1]
return datetime.datetime.now().second * u[0], u[1]
subprocess.run(["true"]); return u[0], u[1]
np.seterr(all="raise"); return u[0], u[1]
ARRAY.setflags(write=True); ARRAY[0] = 2.0; return u[0], u[1]
with np.errstate(divide="raise"):\n    return 1.0 / u[0], u[1]
return OPEN.k * u[0], u[1]
return Model(u[0]).k, u[1]
Model.made = u[0]; return Model.made, u[1]
setattr(Model, "made", u[0]); return Model.made, u[1]
object.__setattr__(MODEL, "k", u[0]); return MODEL.k, u[1]
vars(MODEL)["k"] = u[0]; return MODEL.k, u[1]
MODEL.__dict__["k"] = u[0]; return MODEL.k, u[1]
globals()["COUNT"] = u[0]; return COUNT, u[1]
exec("HELD.append(1)"); return len(HELD) * u[0], u[1]
return MEDDLING * u[0], u[1]
ARRAY[0] += 1.0; return ARRAY[0] * u[0], u[1]
ARRAY[0] = u[0]; return ARRAY[0], u[1]
np.add(ARRAY, 1.0, out=ARRAY); return ARRAY[0] * u[0], u[1]
b = ARRAY; b += 1.0; return b[0] * u[0], u[1]
ARRAY[1:].fill(2.0); return ARRAY[1] * u[0], u[1]
np.copyto(ARRAY, 3.0); return ARRAY[0] * u[0], u[1]
np.put(ARRAY, [0], 3.0); return ARRAY[0] * u[0], u[1]
return OBJECTS[0](u[0]), u[1]
return COUNTED(u[0]), u[1]
return defaulted(u[0]), u[1]
return next(ENDLESS) * u[0], u[1]
return RANDOM.normal() * u[0], u[1]
return np.random.rand() * u[0], u[1]
return random.random() * u[0], u[1]
return time.perf_counter() * u[0], u[1]
print(u[0]); return u[0], u[1]
return (1.0 if str(u[0]).startswith("-") else 2.0), u[1]
return (1.0 if f"{u[0]!r}" > "n" else 2.0), u[1]
return (1.0 if "%s" % u[0] > "3" else 2.0), u[1]
return (1.0 if id(u[0]) % 32 else 2.0), u[1]
return {1.0: 2.0}.get(u[0], 3.0), u[1]
return swallowing(lambda: float(f"{u[0]:.1f}")), u[1]
return swallowing(lambda: u[0].hex()), u[1]
return swallowing(lambda: [1.0, 2.0][u[0] > 0.5]), u[1]
return (u[0] > 0) + (u[1] > 0), u[1]
return int(u[0] * 10) & 1, u[1]
return float(int(u[0] * 1e6) ** 5 % 7), u[1]
u[0] = 3.0; return u[0], u[1]
u *= 2.0; return u[0], u[1]
return complex(u[0], 1.0).real, u[1]
return (u[0] + 1j).real, u[1]
return np.float32(u[0]), u[1]
return np.sort(u)[0], np.median(u)
v = np.zeros(2, dtype=int); v[0] = u[0] * 10; return v[0], u[1]
return u[u > 0].sum(), u[1]
return u[0], u[0], u[1]
return u[0]
f = lambda x: x; f.n = u[0]; return f.n, u[1]
yield u[0]
x = u[0]\nwhile True:\n    x = x + 1.0
class Local: pass\nreturn u[0], u[1]
global COUNT; COUNT = u[0]; return COUNT, u[1]
"""
TRACED_OR_DIFFERENT = r"""
return (1.0 if u[0] is u[0] else 2.0), u[1]
return (1.0 if u.flags.writeable else 2.0) * u[0], u[1]
return (t - 0.5) ** 0.5, u[1]
return np.float32(0.1) * t, u[1]
try:\n    y = 1.0 / (float(u[0]) - 0.4)\nfinally:\n    return 2.0, u[1]
y = -1.0\nwith contextlib.suppress(ValueError):\n    y = math.sqrt(u[0])\nreturn y, u[1]
return swallowing(lambda: math.log(u[0])), swallowing(lambda: [1.0][int(u[1] * 5) % 2])
try:\n    return float(u[0] * 100) ** 200.5, math.exp(1000 * u[1])\nexcept OverflowError:\n    return 0.0, 0.0
return {"a": 1.0}["a" if u[0] > 0 else "b"] * u[0], u[1]
if u[0] > 0:\n    return u[0], u[1]
return float(int(1.0 / u[0])), round(1e40 * u[1]) * 1.0
return (2.0 if u.dtype == float else 3.0) * u[0], u[1]
return [1.0, 2.0, 3.0][int(u[0]) % 5], u[1]
if u[0] > 0:\n    raise ZeroDivisionError("mine")\nreturn u[0], u[1]
return len(u) / (1 if u[0] > 0 else 0), u[1]
return 2.5 // u[0], 7.0 % u[1]
return swallowing(lambda: math.pow(u[0] * 1e3, 2.5 + 99 * u[1])), swallowing(lambda: math.fmod(u[0], 0.0 * u[1]))
return swallowing(lambda: math.sin(math.inf if u[0] > 0 else u[1])), swallowing(lambda: math.sin(math.inf * u[0]))
return np.array(ARRAY)[int(u[0] * 3) % 3], np.array([1.0, 2.0])[int(u[1]) % 2]
"""


def build(body: str) -> dict:
    names: dict = {"__name__": "written"}
    head = "def rhs(t, u, params):\n"
    exec(DEFINITIONS + head + textwrap.indent(body.replace("\\n", "\n"), "    "), names)
    return names


def holds_a_node(value, depth: int = 3) -> bool:
    """Is there a node in an object, its attributes or its parts?"""
    if isinstance(value, Node) or depth == 0 or isinstance(value, types.ModuleType):
        return isinstance(value, Node)
    parts = list(vars(value).values()) if hasattr(type(value), "__dict__") and hasattr(value, "__dict__") else []
    parts += list(value.values()) if isinstance(value, dict) else []
    parts += list(value) if isinstance(value, list | tuple | set | collections.deque) else []
    parts += [cell.cell_contents for cell in value.__closure__ or ()] if isinstance(value, types.FunctionType) else []
    return any(holds_a_node(part, depth - 1) for part in parts)


def leaked(names: dict) -> list[str]:
    """The names of what holds a node."""
    return [name for name, value in names.items() if name != "__builtins__" and holds_a_node(value)]


@pytest.mark.parametrize("body", REFUSED.strip().splitlines())
def test_what_cannot_be_a_graph_is_refused_in_words(body):
    names = build(body)
    with pytest.raises(Untraceable) as refusal:
        trace(names["rhs"], COMPONENT)
    assert "cannot be followed" not in str(refusal.value)
    assert refusal.value.reason
    assert not leaked(names)


@pytest.mark.parametrize("body", TRACED_OR_DIFFERENT.strip().splitlines())
def test_what_is_traced_is_right_or_seen_to_be_wrong(body):
    """Where the check finds no difference, there is none at other states."""
    names = build(body)
    try:
        found = trace(names["rhs"], COMPONENT)
    except Untraceable:
        return
    assert not leaked(names)
    if difference(found.slopes, names["rhs"], COMPONENT, (0.0, 1.0), [0.4, -0.3], (0.7, 1.3)) is None:
        times, states = random_states(count=200, seed=3)
        graph, raised = values(found, times, states, (0.7, 1.3))
        plain, raises = plain_values(found, times, states, (0.7, 1.3))
        assert (raised | ~raises).all()
        known = ~raised & np.isfinite(plain).all(axis=1)
        np.testing.assert_allclose(graph[known], plain[known], rtol=1e-11)


def test_a_refusal_names_the_line_and_the_remedy():
    names = build("x = u[0]\\nreturn np.sort(u)[0], x")
    with pytest.raises(Untraceable) as refusal:
        trace(names["rhs"], COMPONENT)
    line = DEFINITIONS.count("\n") + 3
    assert str(refusal.value).startswith(f"line {line} of <string> calls np.sort, which is not followed: ")
