"""Compiled kernels of single runs: their text, what it is specialised to, and where machine code is kept.

Kernels of many runs at once are in `odelab.engines.lanes`; nothing here decides which engine runs."""

from typing import Any

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}  # with which everything here is compiled
