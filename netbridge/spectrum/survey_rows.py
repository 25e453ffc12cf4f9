"""What a survey measures of one block at one state, as rows: spectra, norms, slices, the error of the step."""

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import nn

import odelab
from netbridge.common.nested_tensors import first_tensor
from netbridge.common.preservation import preserve
from netbridge.spectrum.anatomy import anatomy
from netbridge.spectrum.block_spectrum import block_operator, block_spectrum
from netbridge.spectrum.slices import slice_spectrum
from netbridge.spectrum.step_error import step_error
from odelab.stiffness.log_norm import log_norm_and_soderlind

KINDS = ("residual", "increment", "block", "slices", "norms", "error")
OF_SPECTRUM = (
    "n", "max_re", "min_re", "si", "spectral_radius", "stiffness_index", "negative", "zero", "positive",
    "zero_tolerance", "non_normality", "residual", "converged",
)  # fmt: skip
COLUMNS = (
    *OF_SPECTRUM, "amplified", "stiff", "stable_step", "log_norm", "soderlind", "largest_singular", "alive", "nsi",
    "step_error",
)  # fmt: skip
KEPT = np.dtype([("state", "S64"), *((name, "f8") for name in COLUMNS)])
SAME = 1e-4  # two eigenvalues of an iteration this close, relative to the spectral radius, are one


def has_meaning(block: nn.Module, state: torch.Tensor, kind: str) -> bool:
    """Slices ask for square maps only; everything else for a block that keeps the shape."""
    if kind == "slices":
        return state.ndim == 4 and state.shape[2] == state.shape[3]
    with preserve(block), torch.no_grad():
        output = first_tensor(block(state.clone()))
    return output is not None and output.shape == state.shape


def measure_states(block: nn.Module, states: torch.Tensor, kind: str, options: dict) -> np.ndarray:
    """One row per state. One thread throughout: the bits of a matrix product depend on their number."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            return np.concatenate([measure_state(block, state, kind, options) for state in states.split(1)])
    finally:
        torch.set_num_threads(threads)


def measure_state(block: nn.Module, state: torch.Tensor, kind: str, options: dict) -> np.ndarray:
    row = np.full(1, np.nan, KEPT)
    row["state"] = b""
    others = {"slices": measure_slices, "norms": measure_norms, "error": measure_error}
    measured = others.get(kind, measure_spectrum)
    for name, value in measured(block, state, kind, options).items():
        row[name] = value
    return row


def measure_spectrum(block, state, kind, options) -> dict[str, float]:
    spectrum = block_spectrum(
        block, state, kind, options["values"], options["gate"], getattr(torch, options["dtype"]), options["k"],
        conditions=False,
    )  # fmt: skip
    result = {name: float(getattr(spectrum, name)) for name in OF_SPECTRUM}
    values = spectrum.extremes if spectrum.values is None else spectrum.values
    if kind != "block" and values is not None:  # eigenvalues of the whole block are growth factors of a step, not rates
        if spectrum.values is None:  # the slowest of the modes that hardly decay, on which the step depends, is no end
            values = unique_values(values, SAME * spectrum.spectral_radius)
        amplified = odelab.amplified(values, odelab.EULER)
        stiff = amplified & (np.abs(values.real) > np.abs(values.imag))
        result["stiff"] = float(stiff.sum() / spectrum.n)
        if spectrum.values is not None:
            result["amplified"] = float(amplified.mean())
            result["stable_step"] = odelab.largest_stable_step(values, odelab.EULER)
    return result


def unique_values(values: np.ndarray, apart: float) -> np.ndarray:
    """The values that are further than `apart` from all before them: Arnoldi lists a value once per end it belongs to.

    >>> import numpy as np
    >>> unique_values(np.array([1.0, 1.0 + 1e-9, -2.0]), 1e-6)
    array([ 1., -2.])
    """
    kept: list = []
    for value in values:
        if all(abs(value - other) > apart for other in kept):
            kept.append(value)
    return np.array(kept)


def measure_norms(block, state, kind, options) -> dict[str, float]:
    J = block_operator(block, state, "increment", options["gate"], getattr(torch, options["dtype"]))
    log_norm, soderlind = log_norm_and_soderlind(J)
    return {
        "n": float(J.shape[0]),
        "log_norm": float(log_norm),
        "soderlind": float(soderlind),
        "largest_singular": largest_singular_value(J),
    }


def largest_singular_value(J: odelab.JacobianOperator) -> float:
    from scipy.sparse.linalg import LinearOperator, svds

    map_ = LinearOperator(J.shape, J.matvec, J.rmatvec, dtype=J.dtype)
    start = np.random.default_rng(0).standard_normal(min(J.shape)).astype(J.dtype)
    image = J.matvec(start)
    if len(start) == 1 or not image.any():  # a single unit or a branch of zeros, on which no iteration can start
        return float(np.linalg.norm(image) / np.linalg.norm(start))
    return float(svds(map_, 1, return_singular_vectors=False, v0=start, tol=1e-6)[0])


def measure_slices(block, state, kind, options) -> dict[str, float]:
    found = slice_spectrum(block, state, options["rows"], dtype=getattr(torch, options["dtype"]), gate=options["gate"])
    names = ("max_re", "min_re", "negative", "zero", "positive", "stiffness_index")
    return {"n": float(found.count)} | {name: float(getattr(found, name)) for name in names}


def measure_error(block, state, kind, options) -> dict[str, float]:
    state = state.to(getattr(torch, options["dtype"]))
    parts = anatomy(block, state)
    with torch.no_grad():
        output, slope = parts.whole(state), parts.slope()(state.clone())
    return {
        "step_error": float(step_error(block, state, gate=options["gate"])),
        "alive": float((output > 0).double().mean()),
        "nsi": float(odelab.nsi(state, slope)),
    }
