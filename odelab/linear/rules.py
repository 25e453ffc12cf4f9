"""The derivatives of functions, by NumPy's names: one table for dual numbers in plain Python and for graphs."""

from collections.abc import Callable

import numpy as np

# The derivative of a function of one number x, in terms of x and of its value v; m has the functions of `math`, for the
# kind of number that x is: NumPy for arrays, `odelab.graph.derivatives` for nodes.
OF_ONE: dict[str, Callable] = {
    "exp": lambda m, x, v: v,
    "expm1": lambda m, x, v: v + 1.0,
    "log": lambda m, x, v: 1.0 / x,
    "log1p": lambda m, x, v: 1.0 / (1.0 + x),
    "log2": lambda m, x, v: 1.4426950408889634 / x,
    "log10": lambda m, x, v: 0.4342944819032518 / x,
    "sqrt": lambda m, x, v: 0.5 / v,
    "sin": lambda m, x, v: m.cos(x),
    "cos": lambda m, x, v: -m.sin(x),
    "tan": lambda m, x, v: 1.0 + v * v,
    "arcsin": lambda m, x, v: 1.0 / m.sqrt(1.0 - x * x),
    "arccos": lambda m, x, v: -1.0 / m.sqrt(1.0 - x * x),
    "arctan": lambda m, x, v: 1.0 / (1.0 + x * x),
    "sinh": lambda m, x, v: m.cosh(x),
    "cosh": lambda m, x, v: m.sinh(x),
    "tanh": lambda m, x, v: 1.0 - v * v,
    "arcsinh": lambda m, x, v: 1.0 / m.sqrt(1.0 + x * x),
    "arccosh": lambda m, x, v: 1.0 / m.sqrt(x * x - 1.0),
    "arctanh": lambda m, x, v: 1.0 / (1.0 - x * x),
    "erf": lambda m, x, v: 1.1283791670955126 * m.exp(-x * x),
    "erfc": lambda m, x, v: -1.1283791670955126 * m.exp(-x * x),
}

# The derivatives of a function of two numbers a and b with respect to each, in terms of a, b and of its value v.
OF_TWO: dict[str, tuple[Callable, Callable]] = {
    "arctan2": (lambda m, a, b, v: b / (a * a + b * b), lambda m, a, b, v: -a / (a * a + b * b)),
    "hypot": (lambda m, a, b, v: a / v, lambda m, a, b, v: b / v),
    "remainder": (lambda m, a, b, v: 1.0, lambda m, a, b, v: -m.floor(a / b)),
    "fmod": (lambda m, a, b, v: 1.0, lambda m, a, b, v: -m.trunc(a / b)),
    "copysign": (lambda m, a, b, v: m.copysign(1.0, a) * m.copysign(1.0, b), lambda m, a, b, v: 0.0),
}


def for_arrays(*rules: Callable) -> Callable:
    """A function of the arguments and the value that returns the derivatives, of arrays as well as of numbers."""
    return lambda *given: tuple(rule(np, *given) for rule in rules)


def of_power(x, y, f) -> tuple:
    """The derivatives of f = x^y by base and exponent; where the power is zero, the second is zero, too."""
    return np.where(y == 0, 0.0, y * np.power(x, y - 1.0)), np.where(f == 0.0, 0.0, f * np.log(x))


# For each function of NumPy or scipy.special: its partial derivatives, computed from its arguments and its value.
PARTIALS: dict[str, Callable] = {
    **{name: for_arrays(by_x) for name, by_x in OF_ONE.items()},
    **{name: for_arrays(*both) for name, both in OF_TWO.items()},
    "add": lambda x, y, f: (1.0, 1.0),
    "subtract": lambda x, y, f: (1.0, -1.0),
    "multiply": lambda x, y, f: (y, x),
    "divide": lambda x, y, f: (1.0 / y, -f / y),
    "negative": lambda x, f: (-1.0,),
    "positive": lambda x, f: (1.0,),
    "absolute": lambda x, f: (np.sign(x),),
    "fabs": lambda x, f: (np.sign(x),),
    "reciprocal": lambda x, f: (-f * f,),
    "square": lambda x, f: (2.0 * x,),
    "cbrt": lambda x, f: (1.0 / (3.0 * f * f),),
    "exp2": lambda x, f: (np.log(2.0) * f,),
    "degrees": lambda x, f: (180.0 / np.pi,),
    "radians": lambda x, f: (np.pi / 180.0,),
    "maximum": lambda x, y, f: (np.where(x >= y, 1.0, 0.0), np.where(x >= y, 0.0, 1.0)),
    "minimum": lambda x, y, f: (np.where(x <= y, 1.0, 0.0), np.where(x <= y, 0.0, 1.0)),
    "fmax": lambda x, y, f: (np.where(x >= y, 1.0, 0.0), np.where(x >= y, 0.0, 1.0)),
    "fmin": lambda x, y, f: (np.where(x <= y, 1.0, 0.0), np.where(x <= y, 0.0, 1.0)),
    "power": of_power,
    "float_power": of_power,
    "expit": lambda x, f: (f * (1.0 - f),),
}
PARTIALS["true_divide"], PARTIALS["mod"] = PARTIALS["divide"], PARTIALS["remainder"]

# Those whose rule holds for complex numbers, too: they are analytic. (Of arccosh it holds in one half of the plane.)
ANALYTIC = {*OF_ONE} - {"arccosh", "erf", "erfc"} | {"add", "subtract", "multiply", "divide", "true_divide", "negative"}
ANALYTIC |= {"positive", "reciprocal", "square", "power", "float_power"}

# Functions whose values are piecewise constant, or are no real numbers: they have no derivative to follow.
FLAT = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "logical_not", "logical_and", "isnan"}
FLAT |= {"logical_or", "isfinite", "isinf", "signbit", "sign", "floor", "ceil", "rint", "trunc", "floor_divide"}
FLAT |= {"heaviside", "searchsorted", "digitize", "shape", "ndim", "size", "any", "all", "isclose", "argmax", "argmin"}
FLAT |= {"zeros_like", "ones_like", "full_like", "round", "around", "count_nonzero", "argsort", "nonzero"}

# Functions that are linear in all of their arrays together, up to a constant.
LINEAR = {"concatenate", "stack", "vstack", "hstack", "column_stack", "roll", "flip", "reshape", "ravel", "transpose"}
LINEAR |= {"squeeze", "expand_dims", "moveaxis", "swapaxes", "tile", "repeat", "pad", "diff", "sum", "mean", "cumsum"}
LINEAR |= {"append", "flipud", "fliplr", "diag", "diagonal", "trace", "take", "copy", "broadcast_to", "gradient"}
LINEAR |= {"atleast_1d", "atleast_2d", "trapezoid", "insert", "delete", "fft", "ifft", "rfft", "irfft"}

# Of these, what gives the entries another shape in the same order; what is linear in its first array alone; and the
# ways to pad that are not linear.
AXES_ADDED = {"reshape", "ravel", "squeeze", "expand_dims", "atleast_1d", "atleast_2d"}
FIRST_ALONE = {"gradient", "trapezoid"}
UNEVEN_PADS = {"maximum", "minimum", "median", "empty"}

# Of the functions with partial derivatives, those that choose one of their arguments.
CHOICES = {"maximum", "minimum", "fmax", "fmin"}

# Functions that are linear in each of their arrays alone.
PRODUCTS = {"matmul", "dot", "inner", "outer", "vdot", "tensordot", "einsum", "convolve", "correlate", "cross", "kron"}
