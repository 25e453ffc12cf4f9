"""Elementary functions that give the same bits everywhere: plain Python, arrays, compiled code, every processor.

The functions of a C library differ from one library to the next in the last bit, and so do NumPy's, which is enough to
make two adaptive runs take different steps. The functions here are + - * /, square roots, comparisons and selections,
without a branch and without a library; their coefficients and bounds stand beside them. One source serves all kinds of
numbers: it is handed the few operations in which they differ, see `machine.Machine`. Each function's docstring promises
how large its error can be, in units of the last place, and its tests read that promise.

Not here: the functions that a right-hand side calls (`odelab.maths`), and the shorter ones of step control
(`odelab.control.powers`).

>>> from odelab import elementary
>>> elementary.of_floats["log2"](8.0)
3.0
"""

from functools import partial, wraps

import numpy as np

from odelab.elementary import arcs, circular, exponential, logarithm, power
from odelab.elementary.machine import ARRAYS, FLOATS
from odelab.elementary.machine import Machine as Machine

FUNCTIONS = (
    exponential.exp, exponential.exp2, exponential.expm1, exponential.sinh, exponential.cosh, exponential.tanh,
    logarithm.log, logarithm.log1p, logarithm.log2, logarithm.log10,
    logarithm.asinh, logarithm.acosh, logarithm.atanh,
    circular.sin, circular.cos, circular.tan,
    arcs.asin, arcs.acos, arcs.atan, arcs.atan2,
    power.pow, power.cbrt, power.hypot,
)  # fmt: skip


def functions(machine: Machine) -> dict:
    """The elementary functions of one kind of number, by name.

    machine    the operations of that kind
    """
    return {function.__name__: partial(function, machine) for function in FUNCTIONS}


def _with_python_floats(function):
    """The function with its arguments made Python's own floats: NumPy's are several times as slow."""

    @wraps(function.func)
    def call(*arguments):
        return function(*map(float, arguments))

    return call


def _with_arrays(function):
    """The function with its arguments made arrays of doubles. What is not selected may overflow without a warning."""

    @wraps(function.func)
    def call(*arguments):
        with np.errstate(all="ignore"):
            return function(*np.broadcast_arrays(*(np.asarray(argument, float) for argument in arguments)))

    return call


of_floats = {name: _with_python_floats(function) for name, function in functions(FLOATS).items()}
of_arrays = {name: _with_arrays(function) for name, function in functions(ARRAYS).items()}
