"""The reduced matrix of a ReLU block: sparse convolution matrices multiplied from active units to active units."""

import numpy as np
import torch

from netbridge.spectrum.convolution_matrix import convolution_matrix
from netbridge.spectrum.relu_spectrum import Cycle, Diagonal, Gate, Placed

PORTION = 64  # maps at a time through a gate
SPARSE_COST = 8  # a multiplication of a sparse product takes as long as this many of a dense one


def reduced_matrix(cycle: Cycle) -> np.ndarray:
    """Dense, (active, active)."""
    from scipy import sparse

    active = cycle.active.cpu().numpy()
    product, columns, first = None, active, None
    for i, factor in enumerate(cycle.factors):
        if isinstance(factor, Diagonal):
            if i == 0:
                first = flat(factor)[active]
            continue
        after = cycle.factors[i + 1 :]
        values = flat(after[0]) if after and isinstance(after[0], Diagonal) else None
        ends = len(after) == (values is not None)
        rows = active if ends else None if values is None else values != 0
        product = grown(factor, product, rows, columns)
        if values is not None:
            kept = values if rows is None else values[rows]
            if (kept != 1).any():
                product = sparse.diags_array(kept) @ product
        columns = rows
    product = dense(product)
    return product if first is None else product * first


def grown(factor: Placed | Gate, product, rows, columns):
    """One factor more on the left, at the given rows."""
    if isinstance(factor, Gate):
        through = gated(factor, dense(product))
        return through if rows is None else through[rows]
    matrix = convolution_matrix(factor.convolution, factor.size, rows, columns)
    if product is None:
        return matrix
    if isinstance(product, np.ndarray):
        return matrix @ product
    work = matrix.nnz * (product.nnz / max(1, product.shape[0]))
    if work * SPARSE_COST > float(matrix.shape[0]) * product.shape[0] * product.shape[1]:
        return matrix.toarray() @ product.toarray()
    return matrix @ product


def gated(gate: Gate, columns: np.ndarray) -> np.ndarray:
    """Every column, a map (C, h, w), through the derivative of the gate."""
    result = np.empty_like(columns)
    for start in range(0, columns.shape[1], PORTION):
        portion = torch.from_numpy(np.ascontiguousarray(columns[:, start : start + PORTION].T))
        with torch.no_grad():
            through = gate.apply(portion.view(-1, *gate.shape).to(gate.device))
        result[:, start : start + PORTION] = through.flatten(1).T.cpu().numpy()
    return result


def flat(diagonal: Diagonal) -> np.ndarray:
    return diagonal.values.cpu().numpy().ravel()


def dense(matrix) -> np.ndarray:
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix
