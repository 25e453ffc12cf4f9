"""Other people's solvers behind one small interface.

Every module has a NAME and some of

    single(problem, rtol, atol) -> call                              call() returns the end state, (n,)
    ensemble(problem, u0, params, rtol, atol, first_step) -> call    call() returns the end states, (N, n)
    sensitivities(problem, rtol, atol, method) -> call               call() returns its derivatives, (n, parameters)

Building a call imports the library, which may raise ImportError, and compiles what the library compiles, so that a call
costs what a second call costs. All take odelab's right-hand sides in component form as they are.
"""

import importlib

PEERS = ("scipy", "diffrax", "torchdiffeq", "torchode", "numbalsoda", "sundae", "heyoka", "diffsol", "cyrk", "casadi")


def peer(name: str):
    """The module of one of PEERS; its library is imported only when a call is built."""
    return importlib.import_module(f"benchmarks.ode.peers.{name}_peer")
