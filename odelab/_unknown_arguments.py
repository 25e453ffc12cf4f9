"""What is said of an argument that `solve` or `ensemble` does not take: where it belongs, or which ones there are."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

ADAPTIVE = ("rtol", "atol", "law", "first_step", "max_step")
# What other libraries call it, or hand to their `solve`, and what is done here.
ELSEWHERE = {
    **{name: f"it belongs to the controller: `odelab.adaptive({name}=...)`" for name in ADAPTIVE},
    **dict.fromkeys(("h", "dt", "dt0", "step"), "steps of one size are a controller: `odelab.fixed(h=...)`"),
    **{name: f"it belongs to the problem: `problem.replace({name}=...)`" for name in ("t_span", "u0", "params")},
    **dict.fromkeys(("jacobian", "jac", "Dfun"), "it belongs to the problem: `problem.replace(jacobian=...)`"),
    **dict.fromkeys(("args", "p"), "parameters belong to the problem: `problem.replace(params=...)`"),
    **dict.fromkeys(("dense_output", "dense"), "every run has dense output: `sol(t)`"),
    "saveat": "times to report at are `t_eval`",
    "tcrit": "times at which a step must end are `tstops`",
    "callback": "`events` may end a run or change its state",
}


def refuse_unknown(function: Callable, unknown: Iterable[str], of_one_run: Mapping[str, Any] | None = None):
    """Raise TypeError for the first of some arguments that `function` does not take.

    of_one_run    the arguments of `odelab.solve`, where the function is another one
    """
    for name in unknown:
        arguments = [known for known in inspect.signature(function).parameters if not known.startswith("_")]
        remedy = f"its arguments are {', '.join(arguments)}"
        if of_one_run is not None and name in of_one_run:
            remedy = f"`odelab.solve` does, for one run; {remedy}"
        elif name in ELSEWHERE:
            remedy = ELSEWHERE[name]
        raise TypeError(f"`{function.__name__}` takes no `{name}`; {remedy}.")
