"""Arrays of NumPy or torch: which library a value belongs to, the one norm, and the checks of what a caller passes.

A measure uses torch if one of its arguments is a tensor, and NumPy otherwise. Its code calls functions that have the
same name in both libraries, such as `library.sqrt` and `library.linalg.eigh`; functions whose names differ are here.
Nothing here imports torch, because a tensor can exist only if torch has been imported already.

Every check names the argument that was refused, the value that was given, and what would do instead.
"""

import numbers
import sys
from typing import Any

import numpy as np


def library_of(*values) -> Any:
    """The module whose functions fit `values`."""
    torch = sys.modules.get("torch")
    if torch is not None and any(isinstance(value, torch.Tensor) for value in values):
        return torch
    return np


def floating(name: str, value, like=None, complex_too: bool = False):
    """`value` as an array, or a tensor beside `like`, of single or double precision, which may be complex."""
    library = library_of(value, like)
    if library is np:
        return _floating_array(name, value, complex_too)
    if not isinstance(value, library.Tensor):
        array = np.array(_floating_array(name, value, complex_too))  # a copy, because torch warns of read-only arrays
        return library.as_tensor(array, dtype=like.dtype, device=like.device)
    if value.is_complex():
        if not complex_too:
            raise TypeError(f"`{name}` must hold real numbers, got {value.dtype}.")
        return value
    if value.dtype in (library.float32, library.float64):
        return value
    return value.to(library.float32 if value.is_floating_point() else library.float64)


def _floating_array(name: str, value, complex_too: bool) -> np.ndarray:
    reject_masked(name, value)
    try:
        array = np.asarray(value)
    except ValueError as error:  # a ragged list
        raise ValueError(f"`{name}` is no array: {error}") from None
    if array.dtype.kind not in ("fiubc" if complex_too else "fiub"):
        raise TypeError(f"`{name}` must hold {'' if complex_too else 'real '}numbers, got dtype {array.dtype}.")
    if array.dtype in (np.float32, np.float64, np.complex64, np.complex128):
        return array
    return array.astype(np.float32 if array.dtype == np.float16 else np.float64)


def to_numpy(value) -> np.ndarray:
    """A NumPy copy or view of an array or tensor, wherever it lives."""
    return np.asarray(value) if library_of(value) is np else value.detach().cpu().numpy()


def plain(name: str, value) -> np.ndarray:
    """`value` as a finite real NumPy array in double precision, for measures that return plain numbers.

    A tensor that requires gradients is refused, because they would be lost without a word.
    """
    reject_lost_gradients(name, value)
    if library_of(value) is not np:
        value = to_numpy(value)
    array = np.asarray(floating(name, value), dtype=float)
    reject_nonfinite(name, array)
    return array


def reject_lost_gradients(name: str, value) -> None:
    """Refuse a tensor whose gradients a plain number could not keep."""
    library = library_of(value)
    if library is not np and value.requires_grad and library.is_grad_enabled():
        raise TypeError(f"`{name}` requires gradients, which a plain number cannot keep: pass {name}.detach().")


def number(value):
    """A zero-dimensional NumPy array as a NumPy scalar; everything else as it is."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def epsilon(value) -> float:
    """The spacing of `value`'s numbers at one."""
    return float(library_of(value).finfo(value.dtype).eps)


def norm(value, axes=-1):
    """The 2-norm over `axes`, without overflow or underflow; every measure of odelab uses this norm."""
    library = library_of(value)
    with np.errstate(over="ignore", under="ignore"):
        plain = _plain_norm(library, value, axes)
    limits = library.finfo(plain.dtype)
    if bool(((plain > (limits.tiny / limits.eps) ** 0.5) & (plain < np.inf)).all()):
        return plain
    axes = tuple(axis % value.ndim for axis in ((axes,) if isinstance(axes, int) else axes))
    peak = library.amax(library.abs(value), axes)
    scale = library.where((peak > 0) & (peak < np.inf), peak, library.ones_like(peak))
    shape = [1 if axis in axes else length for axis, length in enumerate(value.shape)]
    return scale * _plain_norm(library, value / scale.reshape(shape), axes)


def _plain_norm(library, value, axes):
    if library is np:
        return np.linalg.vector_norm(value, axis=axes)
    return library.linalg.vector_norm(value, dim=axes)


def checked_square(name: str, J):
    """`J` as a finite, non-empty (..., n, n) array or tensor, real or complex."""
    J = floating(name, J, complex_too=True)
    if J.ndim < 2 or J.shape[-1] != J.shape[-2]:
        raise ValueError(
            f"`{name}` must be square, (..., n, n), got shape {tuple(J.shape)}; a map between spaces of different size "
            f"has no eigenvalues: `odelab.spectrum` gives its singular values."
        )
    if 0 in J.shape:
        raise ValueError(f"`{name}` is empty, got shape {tuple(J.shape)}; give at least one matrix of one component.")
    reject_nonfinite(name, J)
    return J


def is_hermitian(J) -> bool:
    """Is every matrix of (..., n, n) its own adjoint, to the bit? A real one is then symmetric."""
    corner = J[..., :64, :64]  # most matrices that are not Hermitian are recognised by this corner
    return all(bool((adjoint(x) == x).all()) for x in (corner, J))


def adjoint(J):
    """The conjugate transpose of every matrix of (..., n, n) or of scipy.sparse; of a real one the transpose."""
    return J.conj(copy=False).T if hasattr(J, "tocsc") else library_of(J).swapaxes(J, -1, -2).conj()


def reject_masked(name: str, values):
    """Refuse an array of which NumPy would silently use the entries that its mask hides."""
    if has_hidden_entries(values):
        raise TypeError(
            f"`{name}` is a masked array with hidden entries, which have no value to compute with; leave them out "
            f"(`.compressed()`), or give them one (`.filled(...)`)."
        )


def has_hidden_entries(values) -> bool:
    """Is it a masked array with entries that its mask hides? There is none where nobody has loaded `numpy.ma`."""
    return "numpy.ma" in sys.modules and np.ma.is_masked(values)


def reject_nonfinite(name: str, values):
    finite = library_of(values).isfinite(values)
    if not bool(finite.all()):
        where = tuple(int(i) for i in np.argwhere(~to_numpy(finite))[0])
        raise ValueError(f"`{name}` must be finite, got {to_numpy(values)[where]} at {place(where)}.")


def reject_zero(name: str, norms):
    """Refuse states whose norm is zero: an index relative to it is not defined."""
    if not bool((norms > 0).all()):
        where = tuple(int(i) for i in np.argwhere(~(to_numpy(norms) > 0))[0])
        raise ValueError(
            f"`{name}` is zero{f' at {place(where)}' if where else ''}: an index relative to its norm is not defined "
            f"there; leave it out, or measure the slope alone."
        )


def place(where: tuple[int, ...]) -> str:
    return str(where[0]) if len(where) == 1 else str(where)


def own_floats(values) -> np.ndarray:
    """A writable copy in C order, of floats.

    Kernels accept no other arrays, and the caller may change the original during a run. Raises TypeError for values
    that NumPy would convert to numbers although they are none: text, truth values, masked entries.
    """
    array = np.asarray(values)
    reals = array.dtype.kind in "fiu" or (array.dtype.kind == "O" and all(map(is_real_number, array.flat)))
    if not reals or has_hidden_entries(values):
        raise TypeError(f"no real numbers: {values!r}")
    return np.array(array, dtype=np.float64, order="C")


def is_real_number(value) -> bool:
    """Is it one real number? Truth values are not, although Python can calculate with them."""
    return isinstance(value, numbers.Real | np.integer | np.floating) and not isinstance(value, bool | np.bool)


def read_only(u):
    """The same array, which cannot be written to: a function that changes the state it was given fails at once.

    The state belongs to the run; writing to it would change the solution. A tensor is passed on as it is.
    """
    if type(u) is not np.ndarray:  # what every step passes needs no further question
        if library_of(u) is not np:
            return u
        u = np.asarray(u)
    view = u.view()
    view.setflags(write=False)
    return view


def row_of_numbers(params) -> np.ndarray | None:
    """Parameters as floats, or None where they are not all numbers."""
    if not isinstance(params, tuple) or any(map(changed_as_float, params)):
        return None
    try:
        found = np.array(params, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return found if found.ndim == 1 else None


def changed_as_float(parameter) -> bool:
    """Would conversion to a float change its meaning: is it text, or a whole number that no float can hold?"""
    return isinstance(parameter, str | bytes) or (isinstance(parameter, int) and abs(parameter) > 1 << 53)
