"""Elementary functions of dual numbers: what `math`, NumPy and `odelab.maths` offer, with their derivatives.

At a kink they say what `odelab.linear.rules` says in plain Python: the derivative of `abs` is 0 at zero, that of `max`
of two equal numbers is the first one's.
"""

import functools
import math
import operator

import numpy as np

from odelab.engines.numba.jit import teach_maths
from odelab.engines.rosenbrock import duals
from odelab.linear.rules import OF_ONE, OF_TWO

IN_MATH = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh"}
IN_MATH |= {"arctanh": "atanh", "arctan2": "atan2"}
# What numba does not know in `math`, or what has another meaning there, with the functions that are meant
IN_NUMPY: dict[str, tuple[list, str]] = {
    "remainder": ([operator.mod, operator.imod, np.mod, np.remainder], "a % b"),
    "fmod": ([np.fmod], "np.fmod(a, b)"),
}
STEPS = ("floor", "ceil", "trunc")  # constant between their jumps


def spellings(name: str) -> list:
    """The functions of `math` and NumPy that are meant by a name."""
    found = [getattr(math, IN_MATH.get(name, name), None), getattr(np, name, None)]
    return [function for function in found if function is not None]


@functools.cache
def register():
    """Teach numba the functions of dual numbers, beside their arithmetic."""
    teach_maths()
    duals.register()
    register_of_one()
    register_choices()
    register_powers()
    register_of_two()
    register_whole()
    register_tables()


def any_dual(*kinds) -> bool:
    """Are these types of numbers, and one of them at least of dual ones?"""
    Dual = duals.dual_type()
    found = [isinstance(kind, Dual) for kind in kinds]
    return any(found) and all(dual or duals.is_real(kind) for dual, kind in zip(found, kinds, strict=True))


def made(lines: str):
    """The function `made` that these lines define; they may call `value`, `chain` and `widened` of `duals`."""
    scope = {"math": math, "np": np, "value": duals.value(), "chain": duals.chain(), "widened": duals.widened()}
    exec(lines, scope)
    return scope["made"]


def register_of_one():
    """Elementary functions and steps of one number."""
    from numba.extending import overload

    Dual, value = duals.dual_type(), duals.value()

    def teach_elementary(function, found: str, slope: str):
        code = made(f"def made(z):\n    x = value(z)\n    v = math.{found}\n    return chain(z, 0.0, v, {slope}, 0.0)")

        @overload(function)
        def elementary(z):
            return code if isinstance(z, Dual) else None

    for name, slope in OF_ONE.items():
        found = "log(x) * 1.4426950408889634" if name == "log2" else f"{IN_MATH.get(name, name)}(x)"
        for function in spellings(name):
            teach_elementary(function, found, slope)
    for function in (abs, np.abs, math.fabs, np.fabs):
        teach_elementary(function, "fabs(x)", "math.copysign(1.0, x) if x != 0.0 else 0.0")

    def teach_steps(function, numeric):
        @overload(function)
        def constant(z):
            return (lambda z: numeric(value(z))) if isinstance(z, Dual) else None

    for name in STEPS:
        for function in spellings(name):
            teach_steps(function, function)
    for function in (int, np.sign, round):
        teach_steps(function, function)

    @overload(float)
    def as_float(z):
        return (lambda z: z) if isinstance(z, Dual) else None

    @overload(round)
    def round_value(z, digits):
        return (lambda z, digits: round(value(z), digits)) if isinstance(z, Dual) else None


def register_choices():
    """What is smaller or larger, and `where`: a number and a dual number are unified by the type of the answer."""
    from numba.extending import overload

    def teach_pair(function, sign: str):
        code = made(
            "def made(x, y):\n"
            "    a, b = value(x), value(y)\n"
            f"    if a {sign} b or a != a:\n"
            "        return widened(x, x, y)\n"
            "    return widened(y, x, y)"
        )

        @overload(function)
        def pair(x, y):
            return code if any_dual(x, y) else None

        if function in (max, min):

            @overload(function)
            def three(x, y, z):
                return (lambda x, y, z: function(function(x, y), z)) if any_dual(x, y, z) else None

            @overload(function)
            def four(x, y, z, w):
                return (lambda x, y, z, w: function(function(x, y), function(z, w))) if any_dual(x, y, z, w) else None

    for function, sign in ((max, ">="), (np.maximum, ">="), (np.fmax, ">="), (min, "<="), (np.minimum, "<=")):
        teach_pair(function, sign)
    teach_pair(np.fmin, "<=")

    @overload(np.where)
    def where(condition, x, y):
        if any_dual(x, y) and duals.is_real(condition):
            return made(
                "def made(condition, x, y):\n"
                "    if condition:\n"
                "        return widened(x, x, y)\n"
                "    return widened(y, x, y)"
            )
        return None


def register_powers():
    """Powers, of which those with a whole exponent are defined for any base."""
    from numba.core import types
    from numba.extending import overload

    Dual = duals.dual_type()
    power = (
        "def made(x, y):\n"
        "    a, b = value(x), value(y)\n"
        "    v = a ** b\n"
        "    by_x = b * a ** (b - 1.0) if b != 0.0 else 0.0\n"
        "    return chain(x, y, v, by_x, {by_y})"
    )
    whole_power = (
        "def made(x, y):\n"
        "    a = value(x)\n"
        "    before = a ** (y - 1) if y != 0 else 0.0\n"
        "    return chain(x, 0.0, before * a if y != 0 else 1.0, y * before, 0.0)"
    )
    by_exponent = power.replace("{by_y}", "v * math.log(a) if v != 0.0 else 0.0")
    by_base = power.replace("{by_y}", "0.0")

    for function in (operator.pow, operator.ipow, pow, math.pow, np.power):

        @overload(function)
        def powers(x, y):
            if not any_dual(x, y):
                return None
            if isinstance(y, types.Integer):
                return made(whole_power)
            return made(by_exponent if isinstance(y, Dual) else by_base)


def register_of_two():
    """Elementary functions of two numbers."""
    from numba.extending import overload

    def teach_two(function, found: str, by_x: str, by_y: str):
        code = made(
            "def made(x, y):\n"
            "    a, b = value(x), value(y)\n"
            f"    v = {found}\n"
            f"    return chain(x, y, v, {by_x}, {by_y})"
        )

        @overload(function)
        def of_two(x, y):
            return code if any_dual(x, y) else None

    for name, (by_x, by_y) in OF_TWO.items():
        if name in IN_NUMPY:
            functions, found = IN_NUMPY[name]
        else:
            functions, found = spellings(name), f"math.{IN_MATH.get(name, name)}(a, b)"
        for function in functions:
            teach_two(function, found, by_x, by_y)


def register_whole():
    """Whole quotients, bounds and jumps."""
    from numba.extending import overload

    value = duals.value()
    for function in (operator.floordiv, operator.ifloordiv):

        @overload(function)
        def whole(x, y):
            return (lambda x, y: value(x) // value(y)) if any_dual(x, y) else None

    @overload(divmod)
    def whole_and_rest(x, y):
        return (lambda x, y: (value(x) // value(y), x % y)) if any_dual(x, y) else None

    @overload(np.clip)
    def clip(a, a_min, a_max):
        return (lambda a, a_min, a_max: np.minimum(np.maximum(a, a_min), a_max)) if any_dual(a, a_min, a_max) else None

    @overload(np.heaviside)
    def heaviside(x, y):
        def step(x, y):
            a = value(x)
            return value(y) if a == 0.0 else 0.0 if a < 0.0 else 1.0 if a > 0.0 else a

        return step if any_dual(x, y) else None


def register_tables():
    """Interpolation in a table of numbers."""
    from numba.extending import overload

    Dual, value, chain = duals.dual_type(), duals.value(), duals.chain()

    @overload(np.interp)
    def table(x, xp, fp):
        if not isinstance(x, Dual):
            return None

        def interpolate(x, xp, fp):
            a = value(x)
            slope = 0.0
            if xp[0] <= a < xp[-1]:
                j = np.searchsorted(xp, a, side="right") - 1
                slope = (fp[j + 1] - fp[j]) / (xp[j + 1] - xp[j])
            return chain(x, 0.0, np.interp(a, xp, fp), slope, 0.0)

        return interpolate
