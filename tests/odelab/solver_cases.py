"""Problems and small helpers that several tests of the solver share; one function, one compilation."""

import numpy as np

import odelab as ol

EXPLICIT = tuple(ol.METHODS.values())
EMBEDDED = tuple(method for method in EXPLICIT if method.embedded)
NAMED = {"ids": lambda value: getattr(value, "name", None)}


def pendulum(t, u, params):
    """Nonlinear and driven, so that every elementary differential and the time of every stage matter."""
    x, v = u
    return (v, -ol.maths.sin(x) + 0.3 * ol.maths.cos(t) * x)


PENDULUM = ol.Problem(pendulum, [1.0, 0.5], (0.0, 4.0))


def oscillate(t, u, params):
    x, v = u
    return (v, -x)


CIRCLE = ol.Problem(oscillate, [1.0, 0.0], (0.0, 10.0), exact=lambda t, params: np.stack([np.cos(t), -np.sin(t)], -1))


class Recorder:
    """A right-hand side in array form that remembers every call."""

    def __init__(self, function):
        self.function, self.times, self.states = function, [], []

    def __call__(self, t, u, params):
        self.times.append(t)
        self.states.append(np.array(u))
        return self.function(t, u, params)


def one_step(method, rhs, t, u, h, params=()):
    """The core's step from u at t: (new state, S, errors, slopes)."""
    return method.step(rhs, params, t, u, rhs(t, u, params), h, h)[:4]


def replayed(sizes):
    """A controller that takes these steps, whatever the errors."""

    def propose(memory, t, t1, u, slope):
        return sizes[memory], sizes[memory], memory

    def judge(memory, dt, errors, u, u_new):
        return 1, memory + 1

    return ol.Controller(propose, judge, lambda run: (0, 0), name="replayed")


def unchecked(method, **changes):
    """A copy of a method with damaged fields, which its own checks would refuse."""
    copy = object.__new__(ol.Method)
    for name, value in {**vars(method), **changes}.items():
        if name in type(method).__dataclass_fields__:
            object.__setattr__(copy, name, value)
    return copy


def refused(build, name):
    """Whether building a method ends in a ValueError that says the method's name and, in backticks, a field's."""
    try:
        build()
    except ValueError as refusal:
        return name in str(refusal) and "`" in str(refusal)
    return False
