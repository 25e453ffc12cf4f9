"""The controller of a kernel: `odelab.control.feedback` with helpers made for compiled code, and text that calls it."""

import functools

from odelab.control import feedback
from odelab.control.controllers import judge_of_law, settings_of
from odelab.control.feedback import Counted, History
from odelab.engines.numba.request import Request
from odelab.engines.numba.text import number


@functools.cache
def judge_of_squares(smooth: bool):
    """The judge of a kernel, where `errors` is the square of the error over its tolerance."""

    def squared_error(errors, u, u_new, rtol, atol):
        return errors

    return judge_of_law(squared_error, smooth)


def left_over(components):
    """Zero where all components are finite, NaN where one is not."""
    total = 0.0
    for i in range(components.size):
        total += components[i] - components[i]
    return total


judge_of_state = functools.cache(feedback.accept_by)  # the same judge for each kernel, for `jit_once`


def control_text(request: Request, judge: str) -> str:
    """The definitions of `propose` and `judge`.

    `propose` is compiled without contraction of a * b + c, so that times are the same in every engine.

    judge    the judge, as text that calls a function of this module
    """
    propose = "propose_next" if request.law else "propose_counted"
    return "\n".join(
        [
            "from odelab.control.feedback import Counted, History, Memory, Settings",
            "from odelab.engines.numba.jit import jit_once",
            "from odelab.engines.numba.kernel_control import judge_of_squares, judge_of_state, left_over",
            "",
            f"propose = jit_once(control.{propose}, EXACT)",
            f'judge = jit_once({judge}, {{**OPTIONS, "forceinline": True}})',
        ]
    )


def judgement_line(request: Request, judged: str) -> str:
    """The line that judges an attempt; `judged` is the text of the squared error or of what tells of a finite state."""
    of_errors = f"{judged}, 0.0, 0.0" if request.law else f"0.0, 0.0, {judged}"
    return f"accept, memory = judge(memory, dt, {of_errors})"


def history_fields(request: Request) -> tuple[str, ...]:
    """The fields of the controller's memory that change during a run."""
    return History._fields if request.law else Counted._fields


def memory_text(request: Request, values: dict[str, str], rtol: str, largest: str) -> str:
    """The controller's memory as text, with a law's numbers as literals.

    values          the texts for the fields of `history_fields`
    rtol, largest   the texts for the tolerance and the largest step of an adaptive controller
    """
    past = ", ".join(values[name] for name in history_fields(request))
    if not request.law:
        return f"Counted({past})"
    known = settings_of(request.law, request.method.error_order)
    numbers = ", ".join(number(x) for x in known[2:-1])
    return f"Memory(Settings({rtol}, 0.0, {numbers}, {largest}), History({past}))"
