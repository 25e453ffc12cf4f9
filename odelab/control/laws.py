"""Step-size laws as data: the exponents of Söderlind's Table III.

h_{n+1} = h_n e_n^(-b1/k) e_{n-1}^(-b2/k) e_{n-2}^(-b3/k) (h_n/h_{n-1})^(-a2) (h_{n-1}/h_{n-2})^(-a3)

with e the error over its tolerance and k the order of the error estimate. From G. Söderlind, Digital filters in
adaptive time-stepping, ACM Trans. Math. Software 29 (2003) 1-26; the PI gains are those of Gustafsson (1991) and of
Hairer and Wanner.
"""

from fractions import Fraction
from typing import NamedTuple

from odelab.arrays import is_real_number


class Law(NamedTuple):
    """The exponents of a law of step-size control; `ol.LAWS` has Söderlind's, `ol.adaptive(law=...)` takes any.

    The next step is h_n e_n^(-b1/k) e_{n-1}^(-b2/k) e_{n-2}^(-b3/k) (h_n/h_{n-1})^(-a2) (h_{n-1}/h_{n-2})^(-a3), with e
    the error over its tolerance and k the order of the error estimate.

    name      what messages call it
    b         (b1, b2, b3), the weights of the last three errors; those left out at the end are zero
    a         (a2, a3), the weights of the last two ratios of steps; zeros by default
    smooth    how the change of a step is limited: True for 1 + arctan(x - 1), as the filters need it, False for a clip
              to [0.2, 10] with no growth right after a rejection, the default

    >>> import odelab as ol
    >>> mine = ol.Law("mine", b=(0.5, -0.25))
    >>> ol.solve(ol.problems.van_der_pol(), ol.DOPRI5, ol.adaptive(1e-6, law=mine)).status
    'ok'
    """

    name: str
    b: tuple[Fraction | float, ...]
    a: tuple[Fraction | float, ...] = ()
    smooth: bool = False


def _law(name, b, a=(), smooth=True):
    b1, b2, b3, *_ = (*map(Fraction, b), Fraction(0), Fraction(0))
    a2, a3, *_ = (*map(Fraction, a), Fraction(0), Fraction(0))
    return Law(name, (b1, b2, b3), (a2, a3), smooth)


def h211b(b: int = 4) -> Law:
    return _law("h211b", (Fraction(1, b), Fraction(1, b)), (Fraction(1, b),))


def h312b(b: int = 8) -> Law:
    return _law("h312b", (Fraction(1, b), Fraction(2, b), Fraction(1, b)), (Fraction(3, b), Fraction(1, b)))


_table = [
    _law("i", (1,), smooth=False),
    _law("pi42", ("3/5", "-1/5"), smooth=False),
    _law("pi33", ("2/3", "-1/3"), smooth=False),
    _law("pi34", ("7/10", "-4/10"), smooth=False),
    _law("pc11", (2, -1), (-1,)),
    _law("h0211", ("1/2", "1/2"), ("1/2",)),
    h211b(),
    _law("h211pi", ("1/6", "1/6")),
    _law("h0312", ("1/4", "1/2", "1/4"), ("3/4", "1/4")),
    h312b(),
    _law("h312pid", ("1/18", "1/9", "1/18")),
    _law("h0321", ("5/4", "1/2", "-3/4"), ("-1/4", "-3/4")),
    _law("h321", ("1/3", "1/18", "-5/18"), ("-5/6", "-1/6")),
]

LAWS = {law.name: law for law in _table}
SHORT_NAMES = {"pi": "pi42", "pid": "h312pid"}
FILTERS = ("h211b", "h211pi", "h0211", "h312b", "h312pid", "h0312", "h0321", "h321")


def law_named(name) -> Law:
    """The law of that name; a `Law` of the user's own with zeros for the weights that it leaves out."""
    if isinstance(name, Law):
        b, a = weights(name, "b", 3), weights(name, "a", 2)
        return name if (name.b, name.a) == (b, a) else name._replace(b=b, a=a)
    key = str(name).lower()
    key = SHORT_NAMES.get(key, key)
    if key not in LAWS:
        raise ValueError(
            f"`law` must be one of {sorted([*LAWS, *SHORT_NAMES])} or a Law of your own, got {name!r}; anything "
            "that the exponents of a Law do not describe is an odelab.Controller."
        )
    return LAWS[key]


def weights(law: Law, field: str, count: int) -> tuple:
    """The weights of a law, `count` of them, zeros in place of those left out."""
    given = getattr(law, field)
    known = isinstance(given, tuple | list) and len(given) <= count and (field == "a" or len(given) > 0)
    if not (known and all(isinstance(one, Fraction) or is_real_number(one) for one in given)):
        raise ValueError(f"`{field}` of the law {law.name!r} must hold up to {count} numbers, got {given!r}.")
    return (*given, *(Fraction(0),) * (count - len(given)))
