"""The derivatives of NumPy's functions, by their names, as dual numbers use them."""

import math
from collections.abc import Callable

import numpy as np

# For each function of NumPy or scipy.special: its partial derivatives, computed from its arguments and its value.
PARTIALS: dict[str, Callable] = {
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
    "sqrt": lambda x, f: (0.5 / f,),
    "cbrt": lambda x, f: (1.0 / (3.0 * f * f),),
    "exp": lambda x, f: (f,),
    "exp2": lambda x, f: (math.log(2.0) * f,),
    "expm1": lambda x, f: (f + 1.0,),
    "log": lambda x, f: (1.0 / x,),
    "log2": lambda x, f: (1.0 / (math.log(2.0) * x),),
    "log10": lambda x, f: (1.0 / (math.log(10.0) * x),),
    "log1p": lambda x, f: (1.0 / (1.0 + x),),
    "sin": lambda x, f: (np.cos(x),),
    "cos": lambda x, f: (-np.sin(x),),
    "tan": lambda x, f: (1.0 + f * f,),
    "arcsin": lambda x, f: (1.0 / np.sqrt(1.0 - x * x),),
    "arccos": lambda x, f: (-1.0 / np.sqrt(1.0 - x * x),),
    "arctan": lambda x, f: (1.0 / (1.0 + x * x),),
    "arctan2": lambda y, x, f: (x / (x * x + y * y), -y / (x * x + y * y)),
    "hypot": lambda x, y, f: (x / f, y / f),
    "sinh": lambda x, f: (np.cosh(x),),
    "cosh": lambda x, f: (np.sinh(x),),
    "tanh": lambda x, f: (1.0 - f * f,),
    "arcsinh": lambda x, f: (1.0 / np.sqrt(x * x + 1.0),),
    "arccosh": lambda x, f: (1.0 / np.sqrt(x * x - 1.0),),
    "arctanh": lambda x, f: (1.0 / (1.0 - x * x),),
    "degrees": lambda x, f: (180.0 / math.pi,),
    "radians": lambda x, f: (math.pi / 180.0,),
    "maximum": lambda x, y, f: (np.where(x >= y, 1.0, 0.0), np.where(x >= y, 0.0, 1.0)),
    "minimum": lambda x, y, f: (np.where(x <= y, 1.0, 0.0), np.where(x <= y, 0.0, 1.0)),
    "fmax": lambda x, y, f: (np.where(x >= y, 1.0, 0.0), np.where(x >= y, 0.0, 1.0)),
    "fmin": lambda x, y, f: (np.where(x <= y, 1.0, 0.0), np.where(x <= y, 0.0, 1.0)),
    "remainder": lambda x, y, f: (1.0, -np.floor(x / y)),
    "fmod": lambda x, y, f: (1.0, -np.trunc(x / y)),
    "copysign": lambda x, y, f: (np.sign(x) * np.sign(f), 0.0),
    "power": lambda x, y, f: (np.where(y == 0, 0.0, y * np.power(x, y - 1.0)), f * np.log(x)),
    "float_power": lambda x, y, f: (np.where(y == 0, 0.0, y * np.power(x, y - 1.0)), f * np.log(x)),
    "erf": lambda x, f: (2.0 / math.sqrt(math.pi) * np.exp(-x * x),),
    "expit": lambda x, f: (f * (1.0 - f),),
}
PARTIALS["true_divide"], PARTIALS["mod"] = PARTIALS["divide"], PARTIALS["remainder"]

# Functions whose values are piecewise constant, or are no real numbers: they have no derivative to follow.
FLAT = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "logical_not", "logical_and", "isnan"}
FLAT |= {"logical_or", "isfinite", "isinf", "signbit", "sign", "floor", "ceil", "rint", "trunc", "floor_divide"}
FLAT |= {"heaviside", "searchsorted", "digitize", "shape", "ndim", "size", "any", "all", "isclose", "argmax", "argmin"}
FLAT |= {"zeros_like", "ones_like", "full_like", "round", "around", "count_nonzero", "argsort", "nonzero"}

# Functions that are linear in all of their arrays together, up to a constant.
LINEAR = {"concatenate", "stack", "vstack", "hstack", "column_stack", "roll", "flip", "reshape", "ravel", "transpose"}
LINEAR |= {"squeeze", "expand_dims", "moveaxis", "swapaxes", "tile", "repeat", "pad", "diff", "sum", "mean", "cumsum"}
LINEAR |= {"append", "flipud", "fliplr", "diag", "diagonal", "trace", "take", "copy", "broadcast_to", "gradient"}
LINEAR |= {"atleast_1d", "atleast_2d", "trapezoid", "insert", "delete"}

# Of these, what gives the entries another shape in the same order; what is linear in its first array alone; and the
# ways to pad that are not linear.
AXES_ADDED = {"reshape", "ravel", "squeeze", "expand_dims", "atleast_1d", "atleast_2d"}
FIRST_ALONE = {"gradient", "trapezoid"}
UNEVEN_PADS = {"maximum", "minimum", "median", "empty"}

# Of the functions with partial derivatives, those that choose one of their arguments.
CHOICES = {"maximum", "minimum", "fmax", "fmin"}

# Functions that are linear in each of their arrays alone.
PRODUCTS = {"matmul", "dot", "inner", "outer", "vdot", "tensordot", "einsum", "convolve", "correlate", "cross", "kron"}
