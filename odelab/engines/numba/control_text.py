"""The controller of a kernel as source text: `odelab.control.feedback` compiled, and the memory it is called with."""

from collections.abc import Callable

from odelab.control.controllers import settings_of
from odelab.control.feedback import Counted, History
from odelab.engines.numba.request import Request
from odelab.engines.numba.stages import number


def control_text(request: Request, judge: str, options: str = "OPTIONS") -> str:
    """The definitions of `propose` and `judge`.

    `propose` is compiled without contraction of a * b + c, so that times are the same in every engine.

    judge      the judge, as text; see `odelab.engines.numba.law_judge`
    options    the name of the options that it is compiled with
    """
    propose = "propose_next" if request.law else "propose_counted"
    return "\n".join(
        [
            "from odelab.control.feedback import Counted, History, Memory, Settings",
            "from odelab.engines.numba.jit import jit",
            "from odelab.engines.numba.law_judge import itself, judge_of_squares, judge_without_roots, left_over",
            "",
            f"propose = jit(control.{propose}, options=EXACT)",
            f'judge = jit({judge}, options={{**{options}, "forceinline": True}})',
        ]
    )


def judgement(request: Request, judged: str, tag: str = "") -> str:
    """The line that judges an attempt; `judged` is the text of the squared error or of what tells of a finite state."""
    of_errors = f"{judged}, 0.0, 0.0" if request.law else f"0.0, 0.0, {judged}"
    return f"accept{tag}, memory{tag} = judge(memory{tag}, dt{tag}, {of_errors})"


def history(request: Request) -> tuple[str, ...]:
    """The fields of the controller's memory that change during a run."""
    return History._fields if request.law else Counted._fields


def memory(request: Request, values: Callable[[str], str], rtol: str, largest: str) -> str:
    """The controller's memory as text, with a law's numbers as literals.

    values          values(field) is the text for a field of `history`
    rtol, largest   the texts for the tolerance and the largest step of an adaptive controller
    """
    past = ", ".join(map(values, history(request)))
    if not request.law:
        return f"Counted({past})"
    known = settings_of(request.law, request.method.error_order)
    numbers = ", ".join(number(x) for x in known[2:-1])
    return f"Memory(Settings({rtol}, 0.0, {numbers}, {largest}), History({past}))"
