"""The same core, compiled: numba turns the functions of `odelab.core` and `odelab.control` unchanged into machine code."""

from odelab.compiled.engine import CompiledEngine as CompiledEngine
