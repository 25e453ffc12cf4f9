"""x ** p for one fixed p, as source text: what the step-size laws need, in half the time of `pow`.

`odelab.control.powers` serves any exponent; a kernel knows its own when it is written. x = m 2^E with m in [1, 2): a
polynomial
in m, and 2^(p E). A single run looks the second up, since its next step waits for the answer; lanes compute it, since
looking up does not vectorise. Relative errors below 2e-15 (where long doubles are longer than doubles) and 3e-13.
"""

from typing import Any

from numpy.polynomial import chebyshev

from odelab.engines.numba.expressions import number, polynomial

FRACTION_BITS = 4503599627370495  # the low 52 bits of a double
ONE_BITS = 4607182418800017408  # the bits of 1.0
EXPONENT_OF_ONE = 1023
LEAST_EXPONENT, LARGEST_EXPONENT = -90, 16  # of what a single run looks up
EXACT_DEGREE, LANES_DEGREE, LANES_EXPONENT_DEGREE = 19, 15, 9


def mantissa_coefficients(exponent: float, factor: float, degree: int) -> list[float]:
    """factor * m**exponent as a polynomial in y = 2 m - 3 on [-1, 1]."""
    return interpolated(lambda y: factor * (0.5 * (y + 3.0)) ** exponent, degree)


def exponential_coefficients(degree: int) -> list[float]:
    """2**(f/2) as a polynomial in f on [-1, 1]."""
    return interpolated(lambda f: 2.0 ** (0.5 * f), degree)


def interpolated(function: Any, degree: int) -> list[float]:
    """The polynomial through a function on [-1, 1] at Chebyshev's points, lowest power first."""
    return chebyshev.cheb2poly(chebyshev.chebinterpolate(function, degree)).tolist()


def split(source: str, tag: str) -> list[str]:
    """bits, and y = 2 m - 3 of the mantissa m in [1, 2)."""
    return [
        f"bits{tag} = np.float64({source}).view(np.int64)",
        f"y{tag} = 2.0 * np.int64((bits{tag} & {FRACTION_BITS}) | {ONE_BITS}).view(np.float64) - 3.0",
    ]


def table(name: str, exponent: float) -> str:
    """The definition of a table of 2**(exponent * E); the product rounded to double would cost up to 25 last places."""
    powers = f"np.longdouble({number(exponent)}) * np.arange({LEAST_EXPONENT}.0, {LARGEST_EXPONENT + 1}.0)"
    return f"{name} = (np.longdouble(2.0) ** ({powers})).astype(np.float64)"


def looked_up(target: str, exponent: float, factor: float, table: str) -> list[str]:
    """target = factor * x**exponent of the x that was split, by a table of powers of two."""
    shift = EXPONENT_OF_ONE + LEAST_EXPONENT
    return [
        *polynomial(mantissa_coefficients(exponent, factor, EXACT_DEGREE), "y", "root", "r"),
        f"{target} = root * {table}[np.uint64((bits >> 52) - {shift})]",
    ]


def computed(target: str, exponent: float, factor: float, tag: str) -> list[str]:
    """The same by arithmetic alone, for lanes."""
    return [
        f"z{tag} = {number(exponent)} * np.float64((bits{tag} >> 52) - {EXPONENT_OF_ONE})",
        f"whole{tag} = np.floor(z{tag} + 0.5)",
        f"f{tag} = 2.0 * (z{tag} - whole{tag})",
        *polynomial(mantissa_coefficients(exponent, factor, LANES_DEGREE), f"y{tag}", f"root{tag}", f"r{tag}"),
        *polynomial(exponential_coefficients(LANES_EXPONENT_DEGREE), f"f{tag}", f"power{tag}", f"s{tag}"),
        f"scale{tag} = np.int64((np.int64(whole{tag}) + {EXPONENT_OF_ONE}) << 52).view(np.float64)",
        f"{target} = root{tag} * (power{tag} * scale{tag})",
    ]
