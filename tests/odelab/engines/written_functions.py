"""A grammar of right-hand sides as people type them: expressions, branches, loops, arrays, early returns.

`functions()` is a Hypothesis strategy that draws the text of a whole function; `right_hand_sides` beside it is about
what a function reaches and how that changes. Nothing here promises to compile: a right-hand side may be refused in
words, but where an engine answers, it answers as plain Python does. What a longer search finds belongs here.
"""

from hypothesis import strategies as st

from tests.odelab.engines.right_hand_sides import PREAMBLE, Case, numbers

DEFINITIONS = """
RATE, COUNT = 0.7, 3
WEIGHTS = np.array([0.2, -0.4, 1.1, 0.6])
ORDERS = np.array([2, 1, 0, -1])
MATRIX = np.array([[0.1, -0.5], [0.9, 0.3]])
SINGLE = np.array([0.3, 0.7], dtype=np.float32)
TABLE = np.sin(np.linspace(0.0, 6.0, 40))
GRID = np.linspace(-2.0, 2.0, 40)
PAIR = (0.3, (np.array([0.8, -0.2]), 2))
def saturated(x, level=0.5):
    if x > level:
        return level
    return x
def slowed(x, *, by=2):
    return x / by
def both(x, y):
    return x + y, x - y
def around(level):
    def inside(x):
        return level * x
    return inside
scaled = around(0.6)
squared = lambda x: x**2
@numba.njit
def quick(x):
    return 0.4 * x
""".strip()
ATOMS = (
    *("x", "y", "t", "RATE", "COUNT", "params[0]", "u[0]", "u[-1]", "0.5", "2", "-3", "1e-3", "math.pi"),
    *(
        "WEIGHTS[1]",
        "WEIGHTS[-1]",
        "ORDERS[0]",
        "MATRIX[1, 0]",
        "MATRIX[0][1]",
        "SINGLE[1]",
        "PAIR[1][0][1]",
        "PAIR[0]",
    ),
    *("TABLE[int(abs(t) * 9.0)]", "TABLE[int(t * 30) % 40]", "len(u)", "u.size", "WEIGHTS.sum()", "u.max()", "True"),
)
# {0}, {1} are expressions, {c} is a condition
FORMS = (
    *("{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / (1 + {1} * {1})", "{0} / {1}", "-{0}", "{0} ** 2", "{0} ** 3"),
    *("abs({0}) ** 0.5", "abs({0}) ** {1}", "{0} ** -1", "{0} ** COUNT", "{0} % 1.5", "{0} % -0.7", "{0} // 0.7"),
    *("int({0})", "int({0} * 7) % 3", "int({0} * 5) // 2", "round({0})", "round({0}, 1)", "float({0})", "bool({0})"),
    *("min({0}, {1})", "max({0}, {1}, 0.0)", "abs({0})", "divmod({0}, 0.7)[1]", "pow({0}, 2)", "sum(({0}, {1}))"),
    *("math.sin({0})", "math.exp(-abs({0}))", "math.log(1.0 + abs({0}))", "math.sqrt(abs({0}))", "math.floor({0})"),
    *(
        "math.atan2({0}, {1})",
        "math.copysign({0}, {1})",
        "math.hypot({0}, {1})",
        "math.fmod({0}, 0.6)",
        "math.erf({0})",
    ),
    *("maths.cos({0})", "maths.tanh({0})", "maths.where({c}, {0}, {1})", "maths.maximum({0}, {1})", "maths.sign({0})"),
    *("np.sin({0})", "np.clip({0}, -0.5, 0.5)", "np.where({c}, {0}, {1})", "np.sign({0})", "np.maximum({0}, {1})"),
    *(
        "np.interp({0}, GRID, TABLE)",
        "np.heaviside({0}, 0.5)",
        "np.mod({0}, 0.9)",
        "np.floor({0})",
        "np.dot(MATRIX[0], u[:2])",
    ),
    *("({0} if {c} else {1})", "({c}) * {0}", "({c} and {0} or {1})", "saturated({0})", "saturated({0}, level={1})"),
    *(
        "slowed({0}, by=3)",
        "both({0}, {1})[0]",
        "scaled({0})",
        "squared({0})",
        "quick({0})",
        "float(np.array([{0}, {1}])[1])",
    ),
    *(
        "sum([w * {0} for w in WEIGHTS])",
        "sum(w * {0} for w in WEIGHTS[1:3])",
        "np.sum(WEIGHTS * {0})",
        "(MATRIX @ u[:2])[0]",
    ),
    *(
        "(lambda z: z + {0})({1})",
        "[{0}, {1}][int(t * 4) % 2]",
        "({0}, {1})[-1]",
        "1.0 * ({0} == {1})",
        "{0} * 10**3 / 10**3",
    ),
)
CONDITIONS = (
    *(
        "{0} < {1}",
        "{0} >= {1}",
        "-1 < {0} < {1}",
        "not {0} > 0.1",
        "t > 0.3",
        "{0} > 0 and {1} > 0",
        "{0} > 0 or t < 0.2",
    ),
    *("int(t * 7) % 2 == 0", "{0} != 0", "math.isfinite({0})", "(u > 0).all()", "len(u) == 2", "bool({0})"),
)
STATEMENTS = (
    "y = {0}",
    "y += {0}",
    "y -= {0} * {1}",
    "y *= 0.5",
    "x, y = y, {0}",
    "y: float = {0}",
    '"""What it does."""',
    "if {c}:\n    y = {0}",
    "if {c}:\n    y = {0}\nelif t > 0.5:\n    y = {1}\nelse:\n    x = 0.1",
    "for i in range(COUNT):\n    y = 0.5 * y + {0}",
    "for i in range(len(u)):\n    if u[i] > 0.2:\n        continue\n    y = y + u[i]",
    "for i, w in enumerate(WEIGHTS):\n    y += w * i",
    "for a, b in zip(u, WEIGHTS):\n    y += a * b",
    "for v in u:\n    y = y - 0.1 * v",
    "steps = 0\nwhile abs(y) > 1 and steps < 20:\n    y = 0.5 * y\n    steps += 1",
    "for i in range(5, 0, -1):\n    if i * 0.1 < {0}:\n        y = i\n        break\nelse:\n    y = {1}",
    "held = [{0}, 1.0]\nheld.append({1})\ny = held[-1]",
    "held = np.zeros(3)\nheld[1] = {0}\nheld[2:] += {1}\ny = held.sum()",
    "held = u.copy()\nheld[0] = {0}\ny = held[0] + held[-1]",
    "held = u[::-1] * 2.0\ny = held[0]",
    "table = {{'a': {0}, 'b': 2.0}}\ny = table['a']",
    "def inner(z):\n    return z + {0}\ny = inner(y)",
    "import math as m\ny = m.cos({0})",
    "try:\n    y = 1.0 / (y - y)\nexcept ZeroDivisionError:\n    y = {0}",
    "k = min(int(abs({0}) * 10), 39)\ny = TABLE[k] + 0.1 * k",
    "k = np.searchsorted(GRID, {0})\ny = 0.01 * k",
    "assert t >= -1\ny = {0}",
    "bits = 3\nbits ^= 1\nbits <<= 2\ny = bits * {0}",
)
RETURNS = {
    "component": "return {0}, {1}",
    "list": "return [{0}, {1}]",
    "array": "return np.array([{0}, {1}])",
    "float32": "return np.array([{0}, {1}], dtype=np.float32)",
    "expression": "return -0.5 * u + np.array([{0}, 0.1])",
    "matrix": "return MATRIX @ u + {0} * np.ones_like(u)",
    "rolled": "return np.roll(u, 1) - {0} * u",
    "filled": "slopes = np.zeros(2)\nslopes[0] = {0}\nslopes[1] = {1}\nreturn slopes",
    "empty like": "slopes = np.empty_like(u)\nslopes[:] = {0}\nreturn slopes",
    "early": "if {c}:\n    return y, x\nreturn {0}, {1}",
    "in-place": "out[0] = {0}\nout[1] = {1}",
    "in-place slice": "out[:] = -u\nout[1:] += {0}",
    "in-place twice": "for i in range(len(out)):\n    out[i] = {0} - u[i]\nout[0] *= 0.5",
}


@st.composite
def functions(draw) -> Case:
    """The text of a right-hand side of two components, from the lists of this module."""
    conditions = st.sampled_from(CONDITIONS)

    def nested(deeper):
        condition = st.builds(lambda form, a, b: form.format(a, b), conditions, deeper, deeper)
        build = lambda form, a, b, c: f"({form.format(a, b, c=c)})"  # noqa: E731
        return st.builds(build, st.sampled_from(FORMS), deeper, deeper, condition)

    expressions = st.recursive(st.sampled_from(ATOMS), nested, max_leaves=5)

    def filled(template):
        a, b, left, right = (draw(expressions) for _ in range(4))
        return template.format(a, b, c=draw(conditions).format(left, right))

    form = draw(st.sampled_from(sorted(RETURNS)))
    body = ["x, y = u[0], u[1]", *map(filled, draw(st.lists(st.sampled_from(STATEMENTS), max_size=3)))]
    body.append(filled(RETURNS[form]))
    head = f"def rhs(t, u, params{', out' * form.startswith('in-place')}):"
    lines = "\n".join(f"    {line}" for part in body for line in part.splitlines())
    source = "\n".join([PREAMBLE, DEFINITIONS, f"RATE = {draw(numbers)}", head, lines])
    return Case(source, (), "in-place" if form.startswith("in-place") else form)
