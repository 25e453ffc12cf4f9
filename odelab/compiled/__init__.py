"""The same core, compiled: numba turns `odelab.core` and `odelab.control`, unchanged, into machine code."""

from odelab.compiled.engine import CompiledEngine as CompiledEngine
