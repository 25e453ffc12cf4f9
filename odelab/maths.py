"""Elementary functions for right-hand sides, which work on numbers, arrays and tensors and in compiled code.

The same right-hand side in component form can be called with Python floats, with rows of an (n, N) batch and with torch
tensors, and it can be compiled. The operators + - * / work in all these cases. For other functions use those of this
module: they call NumPy for numbers and arrays, torch for tensors, and machine code in a compiled kernel.

>>> from odelab import maths
>>> def pendulum(t, u, params):
...     angle, speed = u
...     return speed, -maths.sin(angle)

`odelab.engines.numba.jit` teaches numba these names when they are first needed. `pi` is the number.
"""

import numpy as np

from odelab.arrays import library_of as _library

pi = float(np.pi)


def _tensors(library, *values):
    """The same values, plain numbers turned into tensors where torch would refuse them."""
    if library is np:
        return values
    tensor = next(value for value in values if isinstance(value, library.Tensor))
    return tuple(library.as_tensor(value, dtype=tensor.dtype, device=tensor.device) for value in values)


def exp(x):
    """The exponential function.

    x    a number, an array or a tensor

    >>> from odelab import maths
    >>> float(maths.exp(0.0))
    1.0
    """
    return _library(x).exp(x)


def log(x):
    """The natural logarithm; NaN below zero.

    x    a number, an array or a tensor

    >>> from odelab import maths
    >>> float(maths.log(1.0))
    0.0
    """
    return _library(x).log(x)


def sin(x):
    """The sine.

    x    a number, an array or a tensor, in radians

    >>> from odelab import maths
    >>> float(maths.sin(0.0))
    0.0
    """
    return _library(x).sin(x)


def cos(x):
    """The cosine.

    x    a number, an array or a tensor, in radians

    >>> from odelab import maths
    >>> float(maths.cos(0.0))
    1.0
    """
    return _library(x).cos(x)


def tan(x):
    """The tangent.

    x    a number, an array or a tensor, in radians

    >>> from odelab import maths
    >>> float(maths.tan(0.0))
    0.0
    """
    return _library(x).tan(x)


def arctan(x):
    """The inverse tangent, between -pi/2 and pi/2.

    x    a number, an array or a tensor

    >>> from odelab import maths
    >>> float(maths.arctan(0.0))
    0.0
    """
    return _library(x).arctan(x)


def sinh(x):
    """The hyperbolic sine.

    x    a number, an array or a tensor

    >>> from odelab import maths
    >>> float(maths.sinh(0.0))
    0.0
    """
    return _library(x).sinh(x)


def cosh(x):
    """The hyperbolic cosine.

    x    a number, an array or a tensor

    >>> from odelab import maths
    >>> float(maths.cosh(0.0))
    1.0
    """
    return _library(x).cosh(x)


def tanh(x):
    """The hyperbolic tangent.

    x    a number, an array or a tensor

    >>> from odelab import maths
    >>> float(maths.tanh(0.0))
    0.0
    """
    return _library(x).tanh(x)


def sqrt(x):
    """The square root; NaN below zero.

    x    a number, an array or a tensor

    >>> from odelab import maths
    >>> float(maths.sqrt(4.0))
    2.0
    """
    return _library(x).sqrt(x)


def abs(x):
    """The absolute value.

    x    a number, an array or a tensor

    >>> from odelab import maths
    >>> float(maths.abs(-2.0))
    2.0
    """
    return _library(x).abs(x)


def sign(x):
    """The sign: -1, 0 or 1.

    x    a number, an array or a tensor

    >>> from odelab import maths
    >>> float(maths.sign(-2.0))
    -1.0
    """
    return _library(x).sign(x)


def maximum(x, y):
    """The larger of two values, component by component.

    x, y    numbers, arrays or tensors

    >>> from odelab import maths
    >>> float(maths.maximum(1.0, 2.0))
    2.0
    """
    library = _library(x, y)
    return library.maximum(*_tensors(library, x, y))


def minimum(x, y):
    """The smaller of two values, component by component.

    x, y    numbers, arrays or tensors

    >>> from odelab import maths
    >>> float(maths.minimum(1.0, 2.0))
    1.0
    """
    library = _library(x, y)
    return library.minimum(*_tensors(library, x, y))


def where(condition, x, y):
    """`x` where `condition` holds, `y` elsewhere. Both are always evaluated, so that neither may fail.

    condition    a truth value, or an array or tensor of them
    x, y         numbers, arrays or tensors

    >>> from odelab import maths
    >>> float(maths.where(3.0 > 2.0, 1.0, -1.0))
    1.0
    """
    library = _library(condition, x, y)
    if library is np:
        chosen = np.where(condition, x, y)
        return chosen[()] if chosen.ndim == 0 else chosen  # a number stays a number
    return library.where(library.as_tensor(condition), *_tensors(library, *_with_tensor(library, x, y)))


def _with_tensor(library, x, y):
    """At least one of the two as a tensor, so that its type decides the other's."""
    if isinstance(x, library.Tensor) or isinstance(y, library.Tensor):
        return x, y
    return library.as_tensor(x, dtype=library.float64), y
