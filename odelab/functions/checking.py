"""Is a graph what the plain function computes? Both are compared at 32 states before a graph is trusted."""

import math
from collections.abc import Callable

import numpy as np

from odelab.arrays import read_only
from odelab.graph.evaluation import evaluate
from odelab.graph.nodes import Graph, Node, Untraceable
from odelab.right_hand_side import DOMAIN_ERRORS, IN_PLACE, name_of

STATES = 32
NEAR = 10  # of these states are within a few per cent of the first one
TOLERANCE = 1e-12  # relative to the larger of two values: functions of the C library and sums in another order
DRAWS = 4  # how often inputs are moved by an ulp, to see what rounding can do to a component
ULPS = 64.0  # how many such moves two orders of the same operations may be apart


def difference(
    slopes: list[Node], function: Callable, form: str, t_span, u0, params, inputs: dict | None = None
) -> str | None:
    """What a graph computes differently from the plain function, in words; None where they agree.

    slopes    the nodes of the slopes, with the inputs "t", "u0", "u1", ... and "p0", "p1", ... for `params`
    form      COMPONENT, ARRAY or IN_PLACE
    inputs    {name: value} of further inputs

    The function is called with arrays that it cannot write to, as a run in plain Python calls it: twice at each state,
    to see whether it remembers something. Where it raises an error, `Graph.raised` of the graph must say so, or the
    error must be one of arithmetic, for which the graph has NaN or infinity.
    """
    if not slopes:
        return None
    graph, u0 = slopes[0].graph, np.asarray(u0, dtype=float)
    times, states = states_near(t_span, u0)
    values, raised = values_of_graph(graph, slopes, times, states, params, inputs or {})
    for k, (t, u) in enumerate(zip(times, states, strict=True)):
        found = difference_at(PlainSlopes(function, form, params), float(t), u, values[:, k], bool(raised[k]))
        if found:
            return f"at t = {t:g}, u = {short(u)} {found}"
    return None


def refuse_if(wrong: str | None, function):
    """Refuse a graph that computes something else than the function, which is told in words."""
    if wrong is not None:
        raise Untraceable(f"is not what its operations compute: {wrong}", "", name_of(function))


def states_near(t_span, u0: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times in the span and states of both signs, near the first state and far from it; the same on each call."""
    generator = np.random.default_rng(20_261_119)
    t0, t1 = (float(t) for t in t_span)
    times = t0 + (t1 - t0) * np.concatenate([[0.0], generator.uniform(0.0, 1.0, STATES - 1)])
    size = np.maximum(np.abs(u0), 0.1 * np.abs(u0).max(initial=0.0) + 1e-3)
    spread = np.concatenate([[0.0], np.geomspace(1e-6, 0.1, NEAR - 1), np.geomspace(0.3, 30.0, STATES - NEAR)])
    return times, u0 + spread[:, None] * size * generator.normal(size=(STATES, len(u0)))


def values_of_graph(graph: Graph, slopes, times, states, params, inputs: dict):
    """The slopes at all states, (n, STATES), and where the graph says that the function raises."""
    named = {f"u{i}": column for i, column in enumerate(states.T)} | {"t": times} | inputs
    if isinstance(params, tuple | list):
        named = {f"p{i}": value for i, value in enumerate(params)} | named
    values = evaluate(graph, [*slopes, *graph.raised], named)
    rows = [np.broadcast_to(value, len(times)) for value in values]
    return np.array(rows[: len(slopes)]), np.any([np.zeros(len(times), bool), *rows[len(slopes) :]], axis=0)


class PlainSlopes:
    """The user's function in array form. `error` is what it raised, NaN being the slopes then."""

    def __init__(self, function: Callable, form: str, params):
        self.function, self.form, self.params = function, form, params
        self.error: Exception | None = None

    def __call__(self, t: float, u: np.ndarray) -> np.ndarray:
        self.error = None
        try:
            with np.errstate(all="ignore"):
                slopes = np.array(self.answer(t, u))
            if slopes.dtype.kind not in "fiub":
                raise TypeError(f"slopes must be real, got dtype {slopes.dtype}")
            return slopes.astype(float)
        except Exception as error:
            self.error = error
            return np.full(len(u), math.nan)

    def answer(self, t: float, u: np.ndarray):
        if self.form != IN_PLACE:
            return self.function(t, read_only(u), self.params)
        out = np.full(len(u), math.nan)
        self.function(t, read_only(u), self.params, out)
        return out

    def leaves_domain(self) -> bool:
        """Is the error one for which plain Python's engine takes NaN?"""
        domain = isinstance(self.error, ValueError) and str(self.error).startswith(DOMAIN_ERRORS)
        return domain or isinstance(self.error, ArithmeticError)


def difference_at(plain: PlainSlopes, t: float, u: np.ndarray, graph_values: np.ndarray, raised: bool) -> str | None:
    values = plain(t, u)
    if plain.error is not None:
        if raised or plain.leaves_domain():
            return None
        return f"the function raises {type(plain.error).__name__}: {plain.error}; its graph does not"
    again = plain(t, u)
    if not same(values, again).all():
        return "the function returns something else when it is called again: it remembers something, or is random"
    if values.shape != graph_values.shape:
        return f"the function returns shape {values.shape}, its graph {graph_values.shape}"
    if raised or same(values, graph_values).all():
        return None
    wrong = np.flatnonzero(~close(plain, t, u, values, graph_values))
    if not len(wrong):
        return None
    i = int(wrong[0])
    return f"component {i} is {values[i]!r} and that of its graph {graph_values[i]!r}"


def same(a, b) -> np.ndarray:
    """Which numbers are equal, NaN to NaN."""
    return (a == b) | (np.isnan(a) & np.isnan(b)) if np.shape(a) == np.shape(b) else np.array([False])


def close(plain: PlainSlopes, t: float, u: np.ndarray, values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Which numbers agree up to rounding: relative to their size, and to what moving the inputs by an ulp does."""
    with np.errstate(all="ignore"):
        apart = np.abs(values - others)
        near = same(values, others) | (apart <= TOLERANCE * np.maximum(np.abs(values), np.abs(others)))
        return near if near.all() else near | (apart <= ULPS * moved_by_rounding(plain, t, u, values))


def moved_by_rounding(plain: PlainSlopes, t: float, u: np.ndarray, values: np.ndarray) -> np.ndarray:
    """How far the slopes move at most when time and state are moved by an ulp; jumps and NaN do not count."""
    generator = np.random.default_rng(7)
    moved = np.zeros(len(values))
    for _ in range(DRAWS):
        sides = generator.choice([-np.inf, np.inf], len(u) + 1)
        step = np.abs(plain(float(np.nextafter(t, sides[-1])), np.nextafter(u, sides[:-1])) - values)
        moved = np.fmax(moved, np.where(np.isfinite(step), step, 0.0))
    return np.minimum(moved, 1e-6 * np.maximum(np.abs(values), 1e-6))


def short(u: np.ndarray) -> str:
    text = ", ".join(f"{x:.3g}" for x in u[:4])
    return f"({text}{', ...' if len(u) > 4 else ''})"
