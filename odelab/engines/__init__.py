"""The engines that run a problem (plain Python, compiled kernels, SciPy's solvers), and their driver.

Small systems run in kernels by `traced`, large ones by `large`, what neither can follow in `numba/`, ensembles in
`lanes/`; the results of a run are in `odelab.runs`."""

from typing import Any, Protocol


class Engine(Protocol):
    """What `odelab.engines.driver.run` asks of an engine.

    problem, method, controller     what is run; the controller may be another than the user's, steered by the method
    project     the user's projection of states, or None
    name        what `Trajectory.engine` says
    derivatives what `Trajectory.derivatives` says: how the Jacobians of a linearly implicit method were found
    """

    problem: Any
    method: Any
    controller: Any
    project: Any
    name: str

    @property
    def derivatives(self) -> str: ...

    def begin(self) -> tuple[Any, int]:
        """The `odelab.core.State` a run starts from, and the evaluations this took."""
        ...

    def advance(self, state: Any, attempts: int) -> Any:
        """Go on from `state` for at most `attempts` attempts; returns a `Chunk` with the accepted steps and the state
        they led to."""
        ...
