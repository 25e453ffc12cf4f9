"""Elementary functions that one right-hand side can use in every world.

A right-hand side in component form is one source for Python floats, rows of an (n, N) batch, torch tensors and
compiled code. Arithmetic needs no help; everything else is spelled with this module, so that

>>> from odelab import maths
>>> maths.exp(0.0)
1.0

means NumPy's function for numbers and arrays, torch's for tensors, and LLVM's in a compiled kernel
(`odelab.engines.numba.overloads` teaches numba these names when it is first needed).
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
    return _library(x).exp(x)


def log(x):
    return _library(x).log(x)


def sin(x):
    return _library(x).sin(x)


def cos(x):
    return _library(x).cos(x)


def tan(x):
    return _library(x).tan(x)


def arctan(x):
    return _library(x).arctan(x)


def sinh(x):
    return _library(x).sinh(x)


def cosh(x):
    return _library(x).cosh(x)


def tanh(x):
    return _library(x).tanh(x)


def sqrt(x):
    return _library(x).sqrt(x)


def abs(x):
    return _library(x).abs(x)


def sign(x):
    return _library(x).sign(x)


def maximum(x, y):
    library = _library(x, y)
    return library.maximum(*_tensors(library, x, y))


def minimum(x, y):
    library = _library(x, y)
    return library.minimum(*_tensors(library, x, y))


def where(condition, x, y):
    """`x` where `condition` holds, `y` elsewhere; both are always evaluated, so neither may fail."""
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
