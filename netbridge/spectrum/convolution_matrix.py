"""A convolution as a sparse matrix, its rows or columns restricted to the units that matter."""

import numpy as np

from netbridge.spectrum.chain import Convolution


def convolution_matrix(conv: Convolution, size: tuple[int, int], rows=None, columns=None):
    """The matrix (O h' w', C h w) in CSR form, units numbered as maps lie in memory (channel, row, column).

    `rows` and `columns`, boolean masks over the units, keep the active ones only.
    """
    from scipy import sparse

    weight = conv.weight.cpu().numpy()
    out, depth, height, width = weight.shape
    group_out, channels = out // conv.groups, depth * conv.groups
    h, w = size
    tall = output_length(h, height, conv.stride[0], conv.padding[0], conv.dilation[0])
    wide = output_length(w, width, conv.stride[1], conv.padding[1], conv.dilation[1])
    row_number, row_count = numbering(rows, out * tall * wide)
    column_number, column_count = numbering(columns, channels * h * w)
    row_number, column_number = row_number.reshape(out, tall * wide), column_number.reshape(channels, h * w)
    entries: list[tuple] = []
    outputs = np.arange(out)
    for i in range(height):
        for j in range(width):
            above, below = reach(i, h, tall, conv.stride[0], conv.padding[0], conv.dilation[0])
            left, right = reach(j, w, wide, conv.stride[1], conv.padding[1], conv.dilation[1])
            y, x = np.meshgrid(np.arange(above, below), np.arange(left, right), indexing="ij")
            target = (y * wide + x).ravel()
            iy, ix = (
                q * s - p + d * k
                for q, s, p, d, k in zip((y, x), conv.stride, conv.padding, conv.dilation, (i, j), strict=True)
            )
            source = (iy * w + ix).ravel()
            for c in range(depth):  # a channel of each group at a time
                r = row_number[:, target]
                q = column_number[(outputs // group_out) * depth + c][:, source]
                kept = (r >= 0) & (q >= 0)
                values = np.broadcast_to(weight[:, c, i, j, None], r.shape)
                entries.append((values[kept], r[kept], q[kept]))
    values, r, q = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    return sparse.csr_array(sparse.coo_array((values, (r, q)), shape=(row_count, column_count)))


def output_length(length, kernel, stride, padding, dilation) -> int:
    return (length + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def reach(tap, length, out, stride, padding, dilation) -> tuple[int, int]:
    """The outputs, first and one past the last, for which this tap falls inside the map."""
    offset = padding - tap * dilation
    return min(max(0, -(-offset // stride)), out), max(0, min(out, (length - 1 + offset) // stride + 1))


def numbering(mask, count) -> tuple[np.ndarray, int]:
    """The new number of every unit, -1 for those left out, and how many stay."""
    if mask is None:
        return np.arange(count, dtype=np.int32), count
    numbers = np.cumsum(mask, dtype=np.int32) - 1
    return np.where(mask, numbers, np.int32(-1)), int(mask.sum())
