"""Complex states as real ones of twice as many components: first all real parts, then all imaginary parts.

A right-hand side of complex numbers need not be analytic: |u|^2 u is not. Its derivatives by real and imaginary parts
exist all the same, and it is these that linearly implicit methods need. So everything in odelab solves and measures the
real system; a user's functions get complex states, and what a run hands back is complex.
"""

import functools
from collections.abc import Callable

import numpy as np

from odelab.right_hand_side import kept_for_each, takes_out


def joined(parts):
    """Complex numbers from their parts, (..., 2n) to (..., n); None stays None."""
    if parts is None:
        return None
    n = np.shape(parts)[-1] // 2
    return parts[..., :n] + 1j * parts[..., n:]


def parts_of(values) -> np.ndarray:
    """The real parts and then the imaginary parts, (..., n) to (..., 2n)."""
    values = np.asarray(values)
    return np.concatenate([values.real, values.imag], axis=-1)


@kept_for_each
def on_parts(rhs: Callable) -> Callable:
    """A right-hand side of complex states, in any of the three forms, as one of their parts in array form."""

    def of_answer(t, u, params):
        n = len(u) // 2
        answer = np.asarray(rhs(t, u[:n] + 1j * u[n:], params))
        return np.concatenate((answer.real, answer.imag))

    def of_filled(t, u, params):
        n = len(u) // 2
        state = u[:n] + 1j * u[n:]
        answer = np.full(state.shape, complex(np.nan, np.nan))
        rhs(t, state, params, answer)
        return np.concatenate((answer.real, answer.imag))

    slopes_of_parts = of_filled if takes_out(rhs) else of_answer
    functools.update_wrapper(slopes_of_parts, rhs, ("__name__", "__qualname__", "__doc__"), ())
    del vars(slopes_of_parts)["__wrapped__"]  # because `inspect.signature` would report the arguments of `rhs`
    vars(slopes_of_parts)["original"] = vars(slopes_of_parts)["of_complex"] = rhs
    return slopes_of_parts


def event_on_parts(function: Callable) -> Callable:
    """An event function of complex states as one of their parts; its answer is a real number."""

    def value_of_parts(t, u, params):
        n = len(u) // 2
        value = function(t, u[:n] + 1j * u[n:], params)
        if np.iscomplexobj(value):
            raise TypeError(
                "an event of complex states must return a real number, such as its real part or its modulus."
            )
        return value

    return value_of_parts


def change_on_parts(change: Callable) -> Callable:
    """A change of complex states by an event as one of their parts."""
    return lambda t, u, params: parts_of(change(t, joined(u), params))


def projection_on_parts(project: Callable) -> Callable:
    """A projection of complex states as one of their parts."""
    return lambda u: parts_of(project(joined(u)))


def names_of_parts(size: int) -> tuple[str, ...]:
    """What the parts of a complex state are called, for `size` of them."""
    return tuple(f"{part} u[{i}]" for part in ("Re", "Im") for i in range(size // 2))
