"""Exact derivatives of a problem's right-hand side: one run through it with dual numbers."""

from collections.abc import Callable

import numpy as np

from odelab.linear import dual
from odelab.linear.dual_copy import copy_for_duals
from odelab.right_hand_side import COMPONENT, DOMAIN_ERRORS, IN_PLACE


class ByDuals:
    """Directional derivatives of a right-hand side in m directions at once.

    Calling it at (t, u) with `along` (m, n), the directions of the state, and `along_t` (m,), those of time, returns
    the derivatives (m, n); None stands for no change. Raises `NotDifferentiable` where duals cannot follow.
    """

    def __init__(self, problem):
        rhs = problem.rhs
        self.in_place = problem.form == IN_PLACE
        if self.in_place and getattr(rhs, "array_form", None) is not None:
            rhs, self.in_place = rhs.array_form, False
        self.components = problem.form == COMPONENT
        self.rhs, self.params = rhs, problem.params
        self.copies: dict[int, Callable] = {}

    def __call__(self, t, u, along, along_t=None) -> np.ndarray:
        m = len(along_t if along is None else along)
        if m not in self.copies:
            self.copies[m] = copy_for_duals(self.rhs, m)
        rhs = self.copies[m]
        state = read_only_view(u) if along is None else dual.Dual(read_only_view(u), read_only_view(along))
        time = t if along_t is None else dual.Dual(np.float64(t), along_t)
        try:
            if self.in_place:
                out = dual.constant(np.full_like(u, np.nan), m)
                rhs(time, state, self.params, out)
                answer = out
            else:
                answer = dual.gather(rhs(time, state, self.params))
        except ArithmeticError:
            return np.full((m, len(u)), np.nan)
        except dual.NotDifferentiable:
            raise
        except Exception as error:  # with numbers the right-hand side has an answer here
            if str(error).startswith(DOMAIN_ERRORS):
                return np.full((m, len(u)), np.nan)
            raise dual.NotDifferentiable(f"{type(error).__name__}: {error}") from error
        if not isinstance(answer, dual.Dual):  # it depends on nothing that was asked for
            return np.zeros((m, len(u)))
        return answer.part


def read_only_view(array):
    """A view that cannot be written to: the state is the engine's."""
    view = np.asarray(array).view()
    view.setflags(write=False)
    return view
