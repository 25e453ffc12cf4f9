"""The derivatives of functions, by NumPy's names: one table for dual numbers in plain Python and in compiled code."""

from collections.abc import Callable

import numpy as np

# The derivative of a function of one number x, in terms of x and of its value v. Plain Python takes `math` for NumPy.
OF_ONE = {
    "exp": "v",
    "expm1": "v + 1.0",
    "log": "1.0 / x",
    "log1p": "1.0 / (1.0 + x)",
    "log2": "1.4426950408889634 / x",
    "log10": "0.4342944819032518 / x",
    "sqrt": "0.5 / v",
    "sin": "math.cos(x)",
    "cos": "-math.sin(x)",
    "tan": "1.0 + v * v",
    "arcsin": "1.0 / math.sqrt(1.0 - x * x)",
    "arccos": "-1.0 / math.sqrt(1.0 - x * x)",
    "arctan": "1.0 / (1.0 + x * x)",
    "sinh": "math.cosh(x)",
    "cosh": "math.sinh(x)",
    "tanh": "1.0 - v * v",
    "arcsinh": "1.0 / math.sqrt(1.0 + x * x)",
    "arccosh": "1.0 / math.sqrt(x * x - 1.0)",
    "arctanh": "1.0 / (1.0 - x * x)",
    "erf": "1.1283791670955126 * math.exp(-x * x)",
    "erfc": "-1.1283791670955126 * math.exp(-x * x)",
}

# The derivatives of a function of two numbers a and b with respect to each, in terms of a, b and of its value v.
OF_TWO = {
    "arctan2": ("b / (a * a + b * b)", "-a / (a * a + b * b)"),
    "hypot": ("a / v", "b / v"),
    "remainder": ("1.0", "-math.floor(a / b)"),
    "fmod": ("1.0", "-math.trunc(a / b)"),
    "copysign": ("math.copysign(1.0, a) * math.copysign(1.0, b)", "0.0"),
}


def for_arrays(arguments: str, *derivatives: str) -> Callable:
    """A function of the arguments and the value that returns the derivatives, of arrays as well as of numbers."""
    return eval(f"lambda {arguments}, v: ({', '.join(derivatives)},)", {"math": np})


def of_power(x, y, f) -> tuple:
    """The derivatives of f = x^y by base and exponent; where the power is zero, the second is zero, too."""
    return np.where(y == 0, 0.0, y * np.power(x, y - 1.0)), np.where(f == 0.0, 0.0, f * np.log(x))


# For each function of NumPy or scipy.special: its partial derivatives, computed from its arguments and its value.
PARTIALS: dict[str, Callable] = {
    **{name: for_arrays("x", by_x) for name, by_x in OF_ONE.items()},
    **{name: for_arrays("a, b", *both) for name, both in OF_TWO.items()},
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
