"""Step-size controllers: steps of one size (`fixed`), to listed times, or chosen by an error estimate (`adaptive`)"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from odelab.arrays import is_real_number, own_floats
from odelab.control import feedback as control
from odelab.control import powers
from odelab.control.laws import Law, law_named

SET_POINT = 0.9  # theta: the law aims at an error of theta^k times the tolerance; with 1 it would reject many steps
SMALLEST_RTOL = 100 * float(np.finfo(float).eps)
KEYS = frozenset((int, float, np.float64, str, type(None)))  # types of arguments that nobody can change


class Start(NamedTuple):
    """What a controller may look at when a run begins."""

    method: Any
    rhs: Callable  # in array form
    params: Any
    t0: float
    t1: float
    u0: np.ndarray
    slope0: np.ndarray
    first_step: float | None = None  # the size of the first step, where it was found already


@dataclasses.dataclass(frozen=True, eq=False)
class Controller:
    """A step-size controller: a function that proposes a step, one that judges it, and one that makes their memory.

    `ol.fixed` and `ol.adaptive` make the usual ones. For a controller of your own, write the functions `propose` and
    `judge`; nothing else in a run decides on its steps. A gate of a network is a `propose` together with a judge that
    accepts everything. If numba can compile the functions, a run with them can be compiled.

    propose        propose(memory, t, t1, u, slope) -> (dt, h, memory), before a step: time moves by `dt`, the slope is
                   multiplied by `h` (for an ODE they are equal); it must land on t1
    judge          judge(memory, dt, errors, u, u_new) -> (accept, memory), after it: 1 accepts, 0 rejects, -1 gives up
    start          start(run) -> (memory, evaluations): the first memory, and the evaluations this took; `run` has the
                   fields method, rhs (in array form), params, t0, t1, u0, slope0
    name           what messages call it
    needs_error    whether `judge` uses `errors`, so that the method needs an estimate of its error; default False
    rtol, atol     the tolerances of an adaptive controller; default None
    law            its Law; default None
    law_by_method  whether the method of a run may put its own usual law in the place of `law`; default False
    h              the step size of a fixed controller; default None
    ends           the times at which the steps of a listed controller end; default None
    first_step     the first step of an adaptive controller, None where it is found automatically
    max_step       the largest step; default infinity
    unseen         unseen(memory): how many evaluations were made that the driver cannot count, in `propose` and in
                   stages whose slopes a step does not return; default 0
    error          error(memory): the error over its tolerance of the last attempt, recorded with each step; default NaN

    >>> import odelab as ol
    >>> def halfway(memory, t, t1, u, slope):
    ...     dt = t1 - t if abs(t1 - t) < 0.1 else 0.5 * (t1 - t)
    ...     return dt, dt, memory
    >>> def accept(memory, dt, errors, u, u_new):
    ...     return 1, memory
    >>> controller = ol.Controller(halfway, accept, start=lambda run: (0.0, 0), name="halfway")
    >>> ol.solve(ol.problems.lorenz().replace(t_span=(0.0, 0.8)), ol.RK4, controller).step_t
    array([0. , 0.4, 0.6, 0.7, 0.8])
    """

    propose: Callable
    judge: Callable
    start: Callable[[Start], tuple[Any, int]]
    name: str
    needs_error: bool = False
    rtol: Any = None
    atol: Any = None
    law: Law | None = None
    law_by_method: bool = False
    h: float | None = None
    ends: np.ndarray | None = None
    first_step: float | None = None
    max_step: float = math.inf
    unseen: Callable[[Any], int] = lambda memory: 0
    error: Callable[[Any], float] = control.no_error

    def __repr__(self):
        return self.name

    def __reduce__(self):
        """Pickle the arguments it was made from; its functions cannot be pickled and are made again."""
        if self.law is not None:
            law = None if self.law_by_method else self.law
            return adaptive, (self.rtol, self.atol, law, self.first_step, self.max_step)
        if self.h is not None:
            return fixed, (self.h,)
        if self.ends is not None:
            return listed, (self.ends,)
        return super().__reduce_ex__(2)

    def suited_to(self, method) -> "Controller":
        """This controller with the usual law of a method, where its user has named none."""
        usual = method.law
        if not self.law_by_method or usual is None or law_named(usual) is self.law:
            return self
        return with_law(self, usual)


@functools.lru_cache(maxsize=64)
def with_law(controller: Controller, law: str) -> Controller:
    """The same adaptive controller with another law; cached, because many short runs ask for the same one."""
    return adaptive(controller.rtol, controller.atol, law, controller.first_step, controller.max_step)


def fixed(h: float) -> Controller:
    """Steps of one size; the last one is shortened to land on t1.

    h    the size of the steps, positive; the direction comes from `t_span`

    Returns a Controller. Raises ValueError when `h` is not a positive, finite number.

    >>> import odelab as ol
    >>> ol.solve(ol.problems.van_der_pol(), ol.RK4, ol.fixed(0.01)).status
    'ok'
    """
    return made_once(fixed_of, h)


@functools.lru_cache(maxsize=64, typed=True)
def fixed_of(h) -> Controller:
    if not (is_real_number(h) and math.isfinite(h) and h > 0):
        raise ValueError(f"`h` must be a positive, finite step size, got {h!r}; the direction comes from `t_span`.")
    size = float(h)

    def start(run: Start):
        return control.Counted(run.t0, math.copysign(size, run.t1 - run.t0), 0.0), 0

    return Controller(control.propose_counted, control.accept_finite, start, name=f"fixed(h={size:g})", h=size)


def listed(ends: Any) -> Controller:
    """Steps that end at listed times, for instance those of another run; the last one ends with the run.

    ends    the times, sorted in the direction of the run; those outside of its span are left out

    Returns a Controller. Raises ValueError where the times are not sorted, or not finite.

    >>> import odelab as ol
    >>> from odelab.control.controllers import listed
    >>> decay = ol.Problem(lambda t, u, params: (-u[0],), [1.0], (0.0, 1.0))
    >>> ol.solve(decay, ol.RK4, listed([0.25, 0.5, 2.0])).step_t
    array([0.  , 0.25, 0.5 , 1.  ])
    """
    times = own_floats(ends)
    if times.ndim != 1 or not np.isfinite(times).all() or np.abs(np.sign(np.diff(times)).sum()) != times.size - 1:
        raise ValueError(f"`ends` must be a row of finite times, rising or falling, got {ends!r}.")
    times.setflags(write=False)

    def start(run: Start):
        return control.Listed(ends_within(times, run.t0, run.t1), 0.0), 0

    name = f"listed({times.size} ends)"
    return Controller(control.propose_listed, control.accept_listed, start, name=name, ends=times)


def made_once(make: Any, *arguments) -> Controller:
    """The same controller for the same numbers and names, as problems remember their kernels by it.

    What else may be given, such as rows and tensors, can change afterwards, and makes a controller of its own.
    """
    return (make if KEYS.issuperset(map(type, arguments)) else make.__wrapped__)(*arguments)


def ends_within(ends: np.ndarray, t0: float, t1: float) -> np.ndarray:
    """The ends of the steps of a run from t0 to t1: the listed times between them, and t1."""
    between = np.sort(ends[(ends - t0) * (ends - t1) < 0.0])
    return np.append(between if t0 < t1 else between[::-1], t1)


def adaptive(
    rtol: float = 1e-6,
    atol: Any = 1e-9,
    law: str | Law | None = None,
    first_step: float | None = None,
    max_step: float = math.inf,
) -> Controller:
    """Steps chosen so that the estimated error of each stays near atol + rtol |u|, in the root mean square.

    rtol          tolerance relative to the size of the state, between 2.3e-14 and 1; default 1e-6
    atol          absolute tolerance, one number or one per component; default 1e-9
    law           how the next step follows from the errors: a name in `ol.LAWS`, "pi" (short for "pi42"), "pid" (short
                  for "h312pid"), or a Law of your own. None, the default, is what suits the method: "pi42" for explicit
                  ones, "pc11" for linearly implicit ones
    first_step    the size of the first step; by default found automatically (Hairer, Nørsett and Wanner)
    max_step      the largest step; default infinity

    Returns a Controller. Raises ValueError for an argument that is out of range.

    >>> import odelab as ol
    >>> ol.adaptive(1e-8, law="pid")
    adaptive(rtol=1e-08, atol=1e-09, law='h312pid')
    """
    return made_once(adaptive_of, rtol, atol, law, first_step, max_step)


@functools.lru_cache(maxsize=64, typed=True)
def adaptive_of(rtol, atol, law, first_step, max_step) -> Controller:
    rtol, atol = checked_tolerances(rtol, atol)
    chosen = law_named("pi42" if law is None else law)
    for argument, value in (("first_step", 1.0 if first_step is None else first_step), ("max_step", max_step)):
        if not (is_real_number(value) and value > 0):
            raise ValueError(f"`{argument}` must be positive, got {value!r}; the direction comes from `t_span`.")
    judge = error_judge(chosen.smooth)
    settings_for = functools.cache(lambda order: settings_of(chosen, order, rtol, atol, float(max_step)))

    def start(run: Start):
        known = run.first_step if first_step is None else first_step
        size, evaluations = (known, 0) if known is not None else initial_step(run, rtol, atol)
        size = math.copysign(min(size, max_step, abs(run.t1 - run.t0)), run.t1 - run.t0)
        settings = settings_for(run.method.error_order)
        return control.Memory(settings, control.History(size, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)), evaluations

    name = f"adaptive(rtol={rtol:g}, atol={atol if np.ndim(atol) else format(atol, 'g')}, law={chosen.name!r})"
    return Controller(
        control.propose_next,
        judge,
        start,
        name=name,
        needs_error=True,
        rtol=rtol,
        atol=atol,
        law=chosen,
        law_by_method=law is None,
        first_step=first_step,
        max_step=float(max_step),
        error=control.error_of_step,
    )


def settings_of(law: Law, order: int, rtol=math.nan, atol=math.nan, max_step=math.inf) -> control.Settings:
    """The settings for the judge of a law, with an error estimate of the given order."""
    b1, b2, b3, a2, a3 = (float(gain) for gain in (*law.b, *law.a))
    return control.Settings(rtol, atol, float(order), order * math.log2(SET_POINT), b1, b2, b3, a2, a3, max_step)


@functools.cache
def error_judge(smooth: bool) -> Callable:
    """The judge of a law: one for all filters, another for the laws whose change of step size is clipped.

    Gains and tolerances are in the memory, so that code compiled with a judge serves all of them.
    """
    return judge_of_law(squared_error, smooth)


def judge_of_law(squared_error, smooth: bool) -> Callable:
    """The judge of a law by a given measure of errors; see `odelab.control.feedback.error_control`."""
    limit = control.smooth_limiter(powers.arctan) if smooth else control.clip
    power = control.power_of_logarithm(powers.exp2)
    return control.error_control(squared_error, powers.log2, power, limit, not smooth)


def error_ratio(errors, u, u_new, rtol, atol):
    """Root mean square of error / (atol + rtol max(|u|, |u_new|)): 1 is just tolerable."""
    return math.sqrt(squared_error(errors, u, u_new, rtol, atol))


def squared_error(errors, u, u_new, rtol, atol):
    """The square of `error_ratio`.

    A pair of estimates counts as first^2 / sqrt(first^2 + (second/10)^2): the lower order corrects the higher
    (Hairer, Nørsett and Wanner, Solving ODEs I, II.10).
    """
    old, new = np.abs(u), np.abs(u_new)
    unit = 1.0 / (atol + rtol * np.where(new <= old, old, new))  # NaN where `new` is
    scaled = errors[0] * unit
    first = float((scaled * scaled).sum()) * (1.0 / scaled.size)
    if len(errors) == 1:
        return first
    scaled = errors[1] * unit
    both = first + 0.01 * (float((scaled * scaled).sum()) * (1.0 / scaled.size))
    if both > 0.0:
        return first * (first / both)
    return both


def initial_step(run: Start, rtol, atol) -> tuple[float, int]:
    """A first step from the sizes of u, u' and u'': Hairer, Nørsett and Wanner, Solving ODEs I, II.4."""
    scale = atol + rtol * np.abs(run.u0)
    span = abs(run.t1 - run.t0)

    def size(v):
        scaled = v / scale
        return math.sqrt((scaled * scaled).sum() / scaled.size)

    slope = size(run.slope0)
    trial = control.trial_step(size(run.u0), slope, span)
    if not trial > 0.0:  # an infinite or undefined slope: the run itself will say so
        return 1e-6 * span, 0
    ahead = math.copysign(trial, run.t1 - run.t0)
    bend = size(run.rhs(run.t0 + ahead, run.u0 + ahead * run.slope0, run.params) - run.slope0) / trial
    return control.first_step(trial, slope, bend, run.method.error_order, span), 1


def checked_tolerances(rtol, atol):
    if not (is_real_number(rtol) and 0 < rtol < 1):
        raise ValueError(f"`rtol` must be a number between 0 and 1, got {rtol!r}; try 1e-6.")
    if rtol < SMALLEST_RTOL:
        raise ValueError(
            f"`rtol` = {rtol:g} asks for more than double precision can tell; the smallest sensible is 2.3e-14."
        )
    try:
        tolerance = own_floats(atol)
    except (TypeError, ValueError):
        raise ValueError(f"`atol` must be one number, or one per component, got {atol!r}.") from None
    if not (np.isfinite(tolerance).all() and (tolerance >= 0).all()):
        raise ValueError(f"`atol` must be finite and not negative, got {atol!r}.")
    if tolerance.ndim == 0:
        return float(rtol), float(atol)
    if tolerance.ndim > 1:
        raise ValueError(f"`atol` must be one number, or one per component, got shape {tolerance.shape}.")
    tolerance.setflags(write=False)
    return float(rtol), tolerance


def is_known(controller: Controller) -> bool:
    """Is it as this module makes it, with none of its functions replaced?"""
    halves: tuple
    if controller.ends is not None:
        halves = (control.propose_listed, control.accept_listed)
    elif controller.law is None:
        halves = (control.propose_counted, control.accept_finite) if controller.h is not None else ()
    else:
        halves = (control.propose_next, error_judge(controller.law.smooth))
    start = getattr(controller.start, "__module__", "")
    return (controller.propose, controller.judge) == halves and start == __name__
