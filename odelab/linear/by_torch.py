"""Exact derivatives of a right-hand side that answers with tensors, by torch's automatic differentiation."""

import warnings
from collections.abc import Callable

import numpy as np

from odelab.linear.dual import NotDifferentiable

AGREES = 1e-4  # relative to a product with a vector: the largest difference that is accepted in this comparison


class ByTorch:
    """The Jacobian and df/dt of a function of tensors at (t, u).

    rhs    the function as its user wrote it, which takes tensors as well as arrays

    The first Jacobian is compared with a difference quotient, because torch gives wrong derivatives without an error if
    the function copies its state into a new tensor.
    """

    def __init__(self, rhs: Callable, params):
        self.rhs, self.params, self.compared = rhs, params, False

    def __call__(self, t, u) -> tuple[np.ndarray, np.ndarray]:

        import torch

        state, time = torch.from_numpy(np.array(u)), torch.tensor(float(t), dtype=torch.float64)
        try:
            with warnings.catch_warnings():  # forward mode calls torch's own deprecated functions
                warnings.simplefilter("ignore")
                J = torch.func.jacrev(lambda u: self.rhs(float(t), u, self.params))(state)
                slope_t = torch.func.jacrev(lambda t: self.rhs(t, state, self.params) + 0.0 * t)(time)
        except Exception as error:  # whatever torch or the user's code raises: differences are left
            raise NotDifferentiable(f"torch: {type(error).__name__}: {error}") from error
        found = J.detach().numpy().astype(float)
        if not self.compared:
            self.compare(found, t, u)
        return found, slope_t.detach().numpy().astype(float)

    def compare(self, J, t, u):
        direction = np.random.default_rng(0).uniform(0.5, 1.5, len(u)) * max(1e-3, float(np.abs(u).max()))
        step = 1e-6
        above, below = (
            np.asarray(self.rhs(float(t), u + sign * step * direction, self.params).detach(), dtype=float)
            for sign in (1.0, -1.0)
        )
        seen = (above - below) / (2.0 * step)
        wrong = np.abs(J @ direction - seen) > AGREES * (np.abs(J) @ direction + np.abs(seen)) + 1e-8
        if wrong.any():
            raise NotDifferentiable("its tensors forget where they came from")
        self.compared = True
