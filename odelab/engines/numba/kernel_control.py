"""The controller of a kernel: `odelab.control.feedback` with helpers made for compiled code, and text that calls it."""

import functools
import math

import numpy as np
from numpy.polynomial import chebyshev

from odelab.control import feedback, powers
from odelab.control.controllers import SET_POINT, judge_of_law, settings_of
from odelab.control.feedback import Counted, History
from odelab.engines.numba.request import Request
from odelab.engines.numba.stages import number

FRACTION_BITS = 4503599627370495  # the low 52 bits of a double
ONE_BITS = 4607182418800017408  # the bits of 1.0
EXPONENT_OF_ONE = 1023


def power_by_table(gain: float, order: float, n: int):
    """The power of `odelab.control.feedback.law_of_sizes` for a single run, whose next step waits for the result.

    The argument `errors` is n times the squared error ratio, q = m 2^E with m in [1, 2). Its power q^p is a polynomial
    in m times 2^(p E), which is read from a table: this takes half the time of a logarithm and an exponential. The
    table holds one exponent p, that of accepted attempts; rejected ones are rare and take the general way. Relative
    errors are below 2e-15 (on machines whose long doubles have more digits than doubles).
    """
    usual = gain / order
    p = -0.5 * usual
    factor = SET_POINT**gain * n ** (0.5 * usual)
    of_mantissa = chebyshev.chebinterpolate(lambda y: factor * (0.5 * (y + 3.0)) ** p, 19)
    weights = chebyshev.cheb2poly(of_mantissa).tolist()
    c = (*weights, *[0.0] * (20 - len(weights)))  # `cheb2poly` leaves out trailing weights that are zero
    with np.errstate(over="ignore", under="ignore"):
        # in double precision, rounding the product p E would cause errors of up to 25 units in the last place
        table = (np.longdouble(2.0) ** (np.longdouble(p) * np.arange(-90.0, 1024.0))).astype(np.float64)
    least, first = n * feedback.LEAST_ERROR**2, EXPONENT_OF_ONE - 90
    general, exp2 = feedback.power_of_logarithm(powers.exp2), powers.exp2

    def power(errors, log_e, exponent, earlier):
        if exponent != usual:
            return general(errors, log_e, exponent, earlier)
        bits = np.float64(max(errors, least)).view(np.int64)
        y = 2.0 * np.int64((bits & FRACTION_BITS) | ONE_BITS).view(np.float64) - 3.0
        y2 = y * y
        y4 = y2 * y2
        y8 = y4 * y4
        low = ((c[0] + c[1] * y) + (c[2] + c[3] * y) * y2) + ((c[4] + c[5] * y) + (c[6] + c[7] * y) * y2) * y4
        middle = ((c[8] + c[9] * y) + (c[10] + c[11] * y) * y2) + ((c[12] + c[13] * y) + (c[14] + c[15] * y) * y2) * y4
        high = (c[16] + c[17] * y) + (c[18] + c[19] * y) * y2
        of_exponent = table[np.uint64((bits >> 52) - first)] * exp2(min(max(earlier, -100.0), 100.0))
        return ((low + middle * y8) + high * (y8 * y8)) * of_exponent

    return power


@functools.cache
def judge_of_squares(smooth: bool, n: int = 1, gain: float | None = None, order: float = 1.0):
    """The judge of a single run, where `errors` is n times the squared ratio.

    gain, order   the law's b1 and the order of the estimate, for the power of a single run; None for logarithms
    """

    def error_ratio(errors, u, u_new, rtol, atol):
        return math.sqrt(errors * (1.0 / n))

    power = feedback.power_of_logarithm(powers.exp2) if gain is None else power_by_table(gain, order, n)
    return judge_of_law(error_ratio, feedback.log_of_ratio(powers.log2), power, smooth)


@functools.cache
def judge_without_roots(smooth: bool, n: int):
    """The judge of lanes, where `errors` is n times the squared ratio; what it calls the ratio stays squared."""
    least, log2 = feedback.LEAST_ERROR**2, powers.log2

    def squared_ratio(errors, u, u_new, rtol, atol):
        return errors * (1.0 / n)

    def log_error(squared):
        return 0.5 * log2(max(squared, least))

    return judge_of_law(squared_ratio, log_error, feedback.power_of_logarithm(powers.exp2), smooth)


def left_over(components):
    """Zero where all components are finite, NaN where one is not."""
    total = 0.0
    for i in range(components.size):
        total += components[i] - components[i]
    return total


def itself(total):
    """What `left_over` would return, where the kernel has formed it itself, from variables and not from an array."""
    return total


judge_of_state = functools.cache(feedback.accept_by)  # the same judge for each kernel, for `jit_once`


def control_text(request: Request, judge: str, options: str = "OPTIONS") -> str:
    """The definitions of `propose` and `judge`.

    `propose` is compiled without contraction of a * b + c, so that times are the same in every engine.

    judge      the judge, as text that calls a function of this module
    options    the name of the options that it is compiled with
    """
    propose = "propose_next" if request.law else "propose_counted"
    return "\n".join(
        [
            "from odelab.control.feedback import Counted, History, Memory, Settings",
            "from odelab.engines.numba.jit import jit_once",
            "from odelab.engines.numba.kernel_control import itself, judge_of_squares, judge_of_state, left_over",
            "from odelab.engines.numba.kernel_control import judge_without_roots",
            "",
            f"propose = jit_once(control.{propose}, EXACT)",
            f'judge = jit_once({judge}, {{**{options}, "forceinline": True}})',
        ]
    )


def judgement_line(request: Request, judged: str, tag: str = "") -> str:
    """The line that judges an attempt; `judged` is the text of the squared error or of what tells of a finite state."""
    of_errors = f"{judged}, 0.0, 0.0" if request.law else f"0.0, 0.0, {judged}"
    return f"accept{tag}, memory{tag} = judge(memory{tag}, dt{tag}, {of_errors})"


def history_fields(request: Request) -> tuple[str, ...]:
    """The fields of the controller's memory that change during a run."""
    return History._fields if request.law else Counted._fields


def memory_text(request: Request, values: dict[str, str], rtol: str, largest: str) -> str:
    """The controller's memory as text, with a law's numbers as literals.

    values          the texts for the fields of `history_fields`
    rtol, largest   the texts for the tolerance and the largest step of an adaptive controller
    """
    past = ", ".join(values[name] for name in history_fields(request))
    if not request.law:
        return f"Counted({past})"
    known = settings_of(request.law, request.method.error_order)
    numbers = ", ".join(number(x) for x in known[2:-1])
    return f"Memory(Settings({rtol}, 0.0, {numbers}, {largest}), History({past}))"
