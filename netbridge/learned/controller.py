"""The other direction: an attention module that decides the steps of a classical method on a differential equation.

A residual network's attention is a step-size controller; here a controller of `odelab` is an attention module. It looks
forward only, at the state u and the slope f(u), in StepNet's two phases (Huang et al. 2023, Eq. 12): a coarse step size
h' from (u, f), a coarse Euler step u' = u + h' f, and from (u, u') together the step size h. The `judge` of
`odelab` then rejects every step whose error exceeds the tolerance, so a bad proposal costs work but no accuracy.

For an autonomous equation the best step of a one-step method is a function of the state alone. A feedback law finds it
from the errors of earlier steps and so is one step late; the learnt controller computes it from the state.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

import odelab
from odelab.control import feedback as control
from odelab.control.controllers import checked_tolerances

TRUST = 10.0  # factor by which the learnt step may differ from the one that the last error asks for
LARGEST = 300.0  # largest log h; exp overflows not far beyond it


def step_size(library, weights, state, slope, log_rtol):
    """log h of states (N, n) with their slopes and log tolerances (N, 1); in NumPy or torch, whatever the weights are.

    The network is given arcsinh(u / scale) of every component u: linear near zero and logarithmic for large |u|.
    """
    w = weights
    seen = library.arcsinh(state / w["state_scale"])
    drive = library.arcsinh(slope / w["slope_scale"])
    coarse = gated_network(library, w, "coarse", library.concatenate([seen, drive, log_rtol], 1))
    ahead = library.arcsinh((state + library.exp(coarse) * slope) / w["state_scale"])
    refined = gated_network(library, w, "fine", library.concatenate([seen, ahead, drive, log_rtol, coarse], 1))
    return coarse, coarse + refined


def gated_network(library, w, phase, inputs):
    """One hidden layer and a linear output; each hidden unit is multiplied by a gate in (0, 1) from the same inputs."""
    z = (inputs - w[f"{phase}_mean"]) / w[f"{phase}_spread"]
    gate = 0.5 + 0.5 * library.tanh(z @ w[f"{phase}_gate"] + w[f"{phase}_gate_bias"])
    hidden = library.tanh(z @ w[f"{phase}_hidden"] + w[f"{phase}_hidden_bias"])
    return (gate * hidden) @ w[f"{phase}_out"] + w[f"{phase}_out_bias"]


class LearnedController(nn.Module):
    """A network that proposes the steps of an ODE solver, for one problem and method; `nb.learn_controller` trains one.

    size    number of components of the problem
    hidden  units of its two hidden layers; 48
    seed    of its initial weights; 0

    `controller(rtol)` gives it as an `odelab.Controller`; `method`, `problem` and `rtol` say what it was trained for.

    >>> import netbridge as nb, torch
    >>> module = nb.LearnedController(size=2)
    >>> coarse, fine = module(torch.ones(1, 2).double(), torch.ones(1, 2).double(), torch.full((1, 1), -10.0).double())
    >>> fine.shape  # log h, one for each state; the logarithm of the tolerance is the last argument
    torch.Size([1, 1])
    """

    state_scale: torch.Tensor
    slope_scale: torch.Tensor
    coarse_out_bias: torch.Tensor

    def __init__(self, size: int, hidden: int = 48, seed: int = 0):
        super().__init__()
        self.size, self.hidden = size, hidden
        self.method, self.problem, self.rtol, self.atol_ratio = "", "", (math.nan, math.nan), math.nan
        generator = torch.Generator().manual_seed(seed)

        def random(*shape):
            return nn.Parameter(torch.randn(shape, generator=generator, dtype=torch.float64) / math.sqrt(shape[0]))

        def zeros(*shape):
            return nn.Parameter(torch.zeros(shape, dtype=torch.float64))

        for phase, width in (("coarse", 2 * size + 1), ("fine", 3 * size + 2)):
            self.register_buffer(f"{phase}_mean", torch.zeros(width, dtype=torch.float64))
            self.register_buffer(f"{phase}_spread", torch.ones(width, dtype=torch.float64))
            self.register_parameter(f"{phase}_gate", random(width, hidden))
            self.register_parameter(f"{phase}_gate_bias", zeros(hidden))
            self.register_parameter(f"{phase}_hidden", random(width, hidden))
            self.register_parameter(f"{phase}_hidden_bias", zeros(hidden))
            self.register_parameter(f"{phase}_out", zeros(hidden, 1))
            self.register_parameter(f"{phase}_out_bias", zeros(1))
        self.register_buffer("state_scale", torch.ones(size, dtype=torch.float64))
        self.register_buffer("slope_scale", torch.ones(size, dtype=torch.float64))

    def forward(self, state, slope, log_rtol):
        """log h' and log h, (N, 1) each."""
        weights = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        return step_size(torch, weights, state, slope, log_rtol)

    def arrays(self) -> dict[str, np.ndarray]:
        """The weights in NumPy."""
        return {name: tensor.detach().cpu().numpy().copy() for name, tensor in self.state_dict().items()}

    def controller(self, rtol: float = 1e-6, atol: float | None = None) -> odelab.Controller:
        """This module as a controller of `odelab.solve`, at the tolerance asked for; runs in NumPy."""
        atol = self.atol_ratio * rtol if atol is None else atol
        rtol, atol = checked_tolerances(rtol, atol)
        feedback = odelab.adaptive(rtol, atol, law="i")
        return odelab.Controller(
            propose=forward_looking(self.arrays(), self.size, math.log(rtol)),
            judge=remembering(feedback.judge),
            start=lambda run: with_no_doubt(*feedback.start(run)),
            name=f"learned(rtol={rtol:g}, atol={atol:g}, trained on {self.problem} with {self.method})",
            needs_error=True,
            rtol=rtol,
            atol=atol,
            error=control.error_of_step,
        )

    def extra_repr(self):
        low, high = self.rtol
        return f"{self.problem}, {self.method}, rtol {low:g} to {high:g}, atol = {self.atol_ratio:g} rtol"


def forward_looking(weights, size: int, log_rtol: float):
    """`propose` of a controller: the learnt step, within a factor of what the judge would have taken.

    After a rejection it proposes the step of the judge, until the learnt step is again smaller than that: where
    stability and not accuracy limits the steps, the best step cannot be computed from the state.
    """
    tolerance = np.array([[log_rtol]])

    def propose(memory, t, t1, u, slope):
        settings, history, doubted = memory
        offered = abs(history.next_step)
        if history.rejected == 0.0:
            if len(u) != size:
                raise ValueError(f"this controller was trained for {size} components, not for {len(u)}.")
            learned = math.exp(min(float(step_size(np, weights, u[None], slope[None], tolerance)[1][0, 0]), LARGEST))
            doubted = doubted and learned > offered
            chosen = offered if doubted else min(max(learned, offered / TRUST), offered * TRUST)
            history = history._replace(next_step=math.copysign(chosen, t1 - t))
        memory = Memory(settings, history, doubted)
        dt, h, _ = control.propose_next(memory, t, t1, u, slope)
        return dt, h, memory

    return propose


def remembering(judge):
    """A judge that notes in the memory that the learnt step was rejected."""

    def judge_and_remember(memory, dt, errors, u, u_new):
        settings, history, doubted = memory
        accept, (settings, history) = judge(control.Memory(settings, history), dt, errors, u, u_new)
        return accept, Memory(settings, history, doubted or accept == 0)

    return judge_and_remember


class Memory(NamedTuple):
    """The memory of an adaptive controller, and whether the judge's steps are used since a rejection."""

    settings: control.Settings
    history: control.History
    doubted: bool


def with_no_doubt(memory, evaluations):
    """The memory at the start of a run, when no learnt step has been rejected yet, and the evaluations spent on it."""
    settings, history = memory
    return Memory(settings, history, False), evaluations
