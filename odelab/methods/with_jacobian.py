"""What methods whose steps factor I - h gamma J have in common: the step for a problem, and stability."""

import functools
from typing import Any

import numpy as np

from odelab.linear.linearisation import Linearisation
from odelab.linear.many_states import step_of_columns
from odelab.methods.interface import StepMethod, Stepper

DAMPED = 1e-12  # |R(infinity)| that counts as zero
OUTWARD = np.logspace(-4.0, 8.0, 2001)  # |z| at which stability along an axis is looked at


class MethodWithJacobian(StepMethod):
    """A linearly implicit or a diagonally implicit method; its stages are increments of the state.

    gamma      the diagonal of the method, M = I - h gamma J
    l_stable   whether L-stability is claimed of it
    """

    gamma: Any
    l_stable: bool

    law = "pc11"  # the law of step size where the user names none; see docs/stiff.md
    needs_jacobian = has_graph = True

    @property
    def extension_weights(self) -> np.ndarray:
        """(degree, stages): row p holds the weights of theta^(p+1) k_i in u(theta) - u."""
        raise NotImplementedError

    @property
    def dense_order(self) -> int:
        """The order of the continuous extension."""
        return len(self.extension_weights)

    def stepper(self, problem, rhs, atol=None) -> Stepper:
        linear = Linearisation(problem, rhs, atol)
        weigh = {} if problem.mass is None else {"weigh": problem.mass_matrix.times}
        return Stepper(self.step_of(linear.factor, linear.backsub, **weigh), linear.prepare, linear)

    def coefficients_inside(self, combine, rhs, params, t, u, h, u_new, stages) -> list[Any]:
        return [combine(row.tolist(), stages, len(row)) for row in self.extension_weights]

    def one_step(self, rhs, params, t, u, h, mass=None):
        """The state after a step of size h from u, (n,) or columns (n, m), its Jacobian by differences.

        mass    the `MassMatrix` of a system M u' = f, whose state is one, (n,); None where M = I
        """
        return step_of_columns(self, rhs, params, t, u, h, mass)

    def stability(self, z):
        """R(z): what one step multiplies the solution of u' = lambda u by, z = h lambda."""
        step = self.step_of(number_to_divide_by, quotient, None)
        return step(lambda t, u, params: z * u, (), 0.0, 1.0, (z, z, 0.0), 1.0, 1.0)[0]

    @functools.cached_property
    def real_boundary(self) -> float:
        """The largest x with |R| <= 1 on all of [-x, 0]; infinite for the methods that come with odelab."""
        return self._boundary(-1.0)

    @functools.cached_property
    def imaginary_boundary(self) -> float:
        """The largest y with |R(i y')| <= 1 up to y; infinite for an A-stable method."""
        return self._boundary(1j)

    def _boundary(self, direction) -> float:
        """Where |R| first exceeds 1 along a ray; its only pole, 1 / gamma, is far from both axes."""
        beyond = np.flatnonzero(np.abs(self.stability(direction * OUTWARD)) > 1.0 + DAMPED)
        if not beyond.size:
            return float("inf")
        inside, outside = (0.0 if beyond[0] == 0 else OUTWARD[beyond[0] - 1]), OUTWARD[beyond[0]]
        for _ in range(60):
            middle = 0.5 * (inside + outside)
            unstable = abs(self.stability(direction * middle)) > 1.0 + DAMPED
            inside, outside = (inside, middle) if unstable else (middle, outside)
        return float(inside)

    def check_stability(self, at_infinity: float):
        """Refuse the claim that the method is L-stable where R(infinity), which is given, or |R(iy)| denies it."""
        if self.l_stable and not abs(at_infinity) <= DAMPED:
            raise ValueError(
                f"`l_stable` is claimed of {self.name}, but R(infinity) = {at_infinity:.3g}; give l_stable=False, or "
                "check the coefficients."
            )
        if self.l_stable and self.imaginary_boundary < np.inf:
            raise ValueError(
                f"`l_stable` is claimed of {self.name}, but |R(iy)| exceeds 1 from y = {self.imaginary_boundary:.3g} "
                "on: it is not A-stable; give l_stable=False, or check the coefficients."
            )


def number_to_divide_by(J, hg):
    """The number 1 - h gamma J by which a system of one component divides."""
    return 1.0 - hg * J


def quotient(number, right):
    return right / number
