"""Runs of `odelab` with torch's gradients: by initial states and parameters, from the sensitivities of the run."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

import odelab as ol
from odelab.sensitivities.selection import Wrt


def solve_with_gradients(
    problem: ol.Problem,
    method: Any,
    controller: ol.Controller | None = None,
    *,
    u0: Tensor | None = None,
    params: Tensor | None = None,
    t_eval: Any = None,
    **options: Any,
) -> Tensor:
    """`odelab.solve` as a step of a calculation in torch, through which gradients pass.

    The gradients are those of the steps that were taken, by forward sensitivities: what a run costs grows by about a
    half for each number that requires a gradient. They exist once: there are no second derivatives.

    problem       the `odelab.Problem`, whose right-hand side is written without torch, as for `odelab.solve`
    method        the method, such as `ol.DOPRI5` or `ol.RODAS4`
    controller    the controller; `ol.adaptive()` by default
    u0            the initial state (n,) in place of the problem's own, which is the default
    params        the parameters, a row of numbers (k,), in place of the problem's own, which are the default
    t_eval        times at which to report states; by default the end is reported
    options       of `odelab.solve`, such as `sensitivity_errors=False`

    Returns the states at `t_eval` as a tensor (len(t_eval), n), or that at the end (n,), in the precision and on the
    device of `u0` or `params`. Raises `odelab.RunFailed` for a run that does not get through.

    >>> import odelab as ol
    >>> import torch
    >>> from netbridge import solve_with_gradients
    >>> decay = ol.Problem(lambda t, u, params: (-params[0] * u[0],), [1.0], (0.0, 1.0), params=2.0)
    >>> rate = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
    >>> end = solve_with_gradients(decay, ol.DOPRI5, params=rate)
    >>> end.sum().backward()
    >>> rate.grad.round(decimals=4)  # -exp(-2)
    tensor([-0.1353], dtype=torch.float64)
    """

    def run(rows: dict, chosen: Wrt | None) -> tuple[Any, Any]:
        one = problem.replace(**{name: row if name == "u0" else tuple(row.tolist()) for name, row in rows.items()})
        sol: Any = ol.solve(one, method, controller, t_eval=t_eval, sensitivities=chosen, **options)
        if chosen is None:
            return (sol.end_u if t_eval is None else sol.u), None
        return (sol.end_u, sol.end_sensitivities) if t_eval is None else (sol.u, sol.sensitivities)

    return states_of(run, params, u0)


def ensemble_with_gradients(
    problem: ol.Problem,
    method: Any,
    controller: ol.Controller | None = None,
    *,
    u0: Tensor | None = None,
    params: Tensor | None = None,
    t_eval: Any = None,
    **options: Any,
) -> Tensor:
    """`odelab.ensemble` as a step of a calculation in torch: `solve_with_gradients` for many runs at once.

    problem       the `odelab.Problem`
    method        the method, such as `ol.DOPRI5` or `ol.RODAS4`
    controller    the controller; `ol.adaptive()` by default
    u0            initial states (N, n), a row per run; the problem's own by default
    params        parameters (N, k), a row per run; the problem's own by default
    t_eval        times at which to report states, shared by all runs; by default the ends are reported
    options       of `odelab.ensemble`, such as `threads`

    Returns the ends of all runs (N, n), or with `t_eval` their states (N, len(t_eval), n). Raises RuntimeError where a
    run does not get through: it says which and how.

    >>> import odelab as ol
    >>> import torch
    >>> from netbridge import ensemble_with_gradients
    >>> decay = ol.Problem(lambda t, u, params: (-params[0] * u[0],), [1.0], (0.0, 1.0), params=2.0)
    >>> rates = torch.tensor([[1.0], [2.0]], dtype=torch.float64, requires_grad=True)
    >>> ensemble_with_gradients(decay, ol.DOPRI5, params=rates).sum().backward()
    >>> rates.grad.round(decimals=4)
    tensor([[-0.3679],
            [-0.1353]], dtype=torch.float64)
    """

    def run(rows: dict, chosen: Wrt | None) -> tuple[Any, Any]:
        runs: Any = ol.ensemble(problem, method, controller, **rows, t_eval=t_eval, sensitivities=chosen, **options)
        if not runs.ok:
            raise RuntimeError(
                f"{problem.name}: {runs.message}; there are no gradients of runs that did not get through."
            )
        return runs.u, None if chosen is None else runs.sensitivities

    return states_of(run, params, u0)


def states_of(run: Callable, params: Tensor | None, u0: Tensor | None) -> Tensor:
    """The states of run(rows, chosen), with gradients by those of `params` and `u0` that require them."""
    given = {name: row for name, row in (("params", params), ("u0", u0)) if row is not None}
    for name, row in given.items():
        if not isinstance(row, Tensor):
            raise TypeError(f"`{name}` must be a tensor, got {type(row).__name__}; for arrays use odelab itself.")
    if not given:
        raise TypeError("gradients need `u0` or `params`, a tensor; without either use odelab itself.")
    return States.apply(run, tuple(given), *given.values())


class States(torch.autograd.Function):
    """The states of a run as a function of tensors; its derivatives are columns that were computed along with it."""

    @staticmethod
    def forward(ctx: Any, run: Callable, names: tuple[str, ...], *tensors: Tensor) -> Tensor:
        needed = dict(zip(names, ctx.needs_input_grad[2:], strict=True))
        chosen = ol.wrt(**needed) if any(needed.values()) else None
        rows = {name: numbers_of(tensor) for name, tensor in zip(names, tensors, strict=True)}
        states, columns = run(rows, chosen)
        like = tensors[0]
        if columns is not None:
            ctx.save_for_backward(torch.as_tensor(columns).to(like))
        ctx.shapes = [tensor.shape for tensor in tensors]
        return torch.as_tensor(np.array(states)).to(like)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple:
        (columns,) = ctx.saved_tensors
        found: list[Tensor | None] = [None, None]
        by_column = gradient.unsqueeze(-1) * columns
        for shape, needed in zip(ctx.shapes, ctx.needs_input_grad[2:], strict=True):
            if not needed:
                found.append(None)
                continue
            count = shape[-1]
            part, by_column = by_column[..., :count], by_column[..., count:]
            found.append(part.reshape(*shape[:-1], -1, count).sum(dim=-2))
        return tuple(found)


def numbers_of(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy().astype(np.float64)
