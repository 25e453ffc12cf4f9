"""What numba cannot compile, in words: which function of the user's, on which line, why, and what to do instead."""

import itertools
import textwrap

from odelab.arrays import row_of_numbers
from odelab.engines.not_compilable import ASKED
from odelab.engines.numba.jit import compiled_functions
from odelab.engines.numba.request import Request
from odelab.right_hand_side import COMPONENT, IN_PLACE, name_of


def refusal(engine, reason) -> str:
    """Why an engine's run cannot be compiled: by the graph, where that was tried, and by numba."""
    said = refusal_of_numba(engine, reason)
    if not engine.untraceable:
        return said
    said = said.removeprefix(f"{ASKED} ")
    return f"{ASKED} cannot compile {name_of(engine.problem.rhs)}: {engine.untraceable}. And numba {said}"


def refusal_of_numba(engine, reason) -> str:
    """Which function of an engine's run numba cannot compile, and why."""
    from numba import typeof

    params = engine.problem.params
    if row_of_numbers(params) is not None:
        return blame(engine.request, reason)
    try:
        typeof(engine.params)
    except ValueError:
        return (
            f"{ASKED} cannot hand `params` = {textwrap.shorten(repr(params), 80)} to compiled code, "
            "which knows numbers, NumPy arrays and tuples of them: write it as such, or take engine='python'."
        )
    return explanation_of(engine.problem.rhs, reason)


def blame(request: Request, reason) -> str:
    """numba's complaint about the function of the user's that it cannot compile, with the line in their own file."""
    functions = request.functions
    for name, function in compiled_functions(functions, request.form).items():
        if name not in ("rhs", "spectral_radius_of"):  # the others take other arguments
            continue
        try:
            function.compile(signature(request, fills=name == "rhs" and request.form == IN_PLACE))
        except Exception as plainer:
            return explanation_of(functions[name], plainer)
    complaint = textwrap.shorten(f"{type(reason).__name__}: {reason}", 500)
    return (
        f"`engine='compiled'` has no kernel for {request.about}: your functions can be compiled, but not the kernel "
        f"around them ({complaint}). Use engine='python'."
    )


def signature(request: Request, fills: bool) -> tuple:
    """The types of (t, u, params) in a kernel, and of `out` for a function that fills it."""
    from numba import types

    array, number = types.float64[::1], types.float64
    u = array if request.form != COMPONENT else types.UniTuple(number, request.n)
    return (number, u, types.UniTuple(number, request.parameters), *([array] if fills else []))


def explanation_of(function, reason) -> str:
    """numba's reason in two lines: what could not be compiled, where, and what to do."""
    lines = [line.strip() for line in str(reason).splitlines() if line.strip()] or [type(reason).__name__]
    lines = [line for line in lines if not line.startswith("Failed in nopython mode pipeline")] or lines
    lines.sort(key=lambda line: not line.startswith("Untyped global"))  # the culprit's name first
    places = [line.rstrip(":") for line in lines if line.startswith("File ")]
    where = f"{places[0]}." if places else ""
    if not where and hasattr(function, "__code__"):
        where = f'File "{function.__code__.co_filename}", line {function.__code__.co_firstlineno}.'
    # What follows a place are the lines of source that numba takes to be there.
    lines = list(itertools.takewhile(lambda line: not line.startswith("File "), lines)) or lines[:1]
    name = name_of(function)
    if "Signature mismatch" in str(reason) and hasattr(function, "__code__"):
        return (
            f"{ASKED} cannot compile {name}: compiled code knows no arguments by keyword alone, and "
            f"default values only where they are numbers or tuples of numbers. Hand others over by `params`. {where}"
        )
    if "setitem(readonly array" in str(reason):
        return (
            f"{ASKED} cannot compile {name}: it writes to the state or to an array it captured. `u` cannot "
            f"be written to, and what was captured is the same in every call; write to a copy, `u.copy()`. {where}"
        )
    return (
        f"{ASKED} cannot compile {name}: {' '.join(lines[:3]).rstrip('.')}. {where} "
        "Use only numbers, tuples, NumPy and odelab.maths in it, or engine='python'."
    )
