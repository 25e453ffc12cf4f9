"""Compiled kernels of single runs by numba: what they are made of, specialised to, and where machine code is kept.

Kernels of many runs at once are in `odelab.engines.lanes`; nothing here decides which engine runs."""

from typing import Any

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}  # with which everything here is compiled
# For functions that only compiled code calls. What numba adds for other callers takes a tenth to a third of the time to
# compile a kernel; without it a call from Python would end the process.
INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# Said in words, as numba otherwise takes the setting of the function that calls.
EXACT: dict[str, Any] = {**OPTIONS, **INNER, "fastmath": False}
CONTRACTED: dict[str, Any] = {**EXACT, "fastmath": {"contract"}}  # a * b + c as one operation; nothing else is loosened
