"""What the page of a diagnosis shows: the pictures that a numerical analyst would draw, and what the methods cost."""

import numpy as np

from odelab.doctor.costs import in_words
from odelab.doctor.sheet import image, table
from odelab.methods.explicit import DOPRI5
from odelab.plot import style
from odelab.plot.region import stability_region
from odelab.plot.solution import draw_steps, fine

LOGARITHMIC = 100.0  # time has a logarithmic axis where half of the steps lie within the first 1 / 100 of the span
SHOWN = 8  # components
PANELS, DIFFERENT = 4, 30.0  # panels of their own for so few components, where sizes differ by such a factor


def sections(diagnosis):
    """(title, caption, what is shown) of each part of the page of a diagnosis."""
    yield from pictures(diagnosis)
    yield (
        "What the methods cost",
        "Errors are in units of the tolerance that was asked about.",
        costs_as_table(diagnosis),
    )


def pictures(diagnosis):
    """(title, caption, image) of each picture that the diagnosis has the numbers for."""
    limits, sol = diagnosis.limits, diagnosis.sol
    log = starts_fast(sol)
    binding = [] if limits is None else limits.binding
    shaded = " Grey: where stability and not accuracy would choose the steps of an explicit method." if binding else ""
    yield "The solution", f"By odelab.AUTO.{shaded}", image(draw_solution(sol, binding, log), "the solution")
    if limits is not None:
        caption = (
            f"Where the step that accuracy allows lies above the largest stable one, {limits.method.name} is held "
            f"back. Thick lines are the {len(limits.windows)} stretches on which both were measured; grey is what "
            "odelab.AUTO took."
        )
        yield "The two steps, over time", caption, image(diagnosis.plot("steps"), "accurate and stable steps")
    if limits is not None and sol.problem.size <= SHOWN:
        caption = (
            "Steps of the run by odelab.AUTO times the eigenvalues of the Jacobian: those outside of the region "
            f"are steps that {DOPRI5.name} could not have taken."
        )
        yield "Steps and stability", caption, image(stability_region(DOPRI5, sol), "the region of stability")
    yield "Cost", f"Each method at one error ({diagnosis.measured_in}).", image(diagnosis.plot("costs"), "costs")


def starts_fast(sol) -> bool:
    """Do half of the steps lie within a small first part of a span that begins at zero?"""
    t = np.asarray(sol.step_t)
    return bool(t[0] == 0.0 < t[-1] and t[-1] > LOGARITHMIC * t[len(t) // 2])


def prepared(axes, binding, log):
    """The stretches in which stability binds in grey, and time on a logarithmic axis where that is wanted."""
    for start, end in binding:
        axes.axvspan(start, end, color="#EBEBEB", zorder=0)
    if log:
        axes.set_xscale("log")


def draw_solution(sol, binding, log):
    """The components in one panel, or in panels of their own where their sizes differ."""
    t, u = fine(sol, log)
    sizes = np.abs(u).max(axis=0)
    shown = range(min(u.shape[1], SHOWN))
    apart = 1 < u.shape[1] <= PANELS and sizes.max() > DIFFERENT * sizes.min()
    rows = [[i] for i in shown] if apart else [shown]
    with style.figure(len(rows), height=1.3 * len(rows) + 0.5 if apart else 2.8, sharex=True) as (drawing, axes):
        for plane, members in zip(axes[:, 0], rows, strict=True):
            for i in members:
                plane.plot(t, u[:, i].real, color=style.COLOURS[i], label=f"$u_{{{i}}}$")
            prepared(plane, binding, log)
            plane.set_ylabel(f"$u_{{{members[0]}}}$" if apart else "u")
        axes[-1, 0].set_xlabel("t" if u.shape[1] <= SHOWN else f"t ({SHOWN} of {u.shape[1]} components)")
        if not apart and u.shape[1] > 1:
            axes[0, 0].legend(ncols=SHOWN, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2)
    return drawing


def step_limits(diagnosis):
    """The step that accuracy would allow, the largest stable one, and the one that was taken, over time."""
    limits, sol = diagnosis.limits, diagnosis.sol
    if limits is None:
        raise ValueError(f"the limits of steps were not measured, as {diagnosis.not_measured}; draw 'costs'.")
    edges = np.array([(window.start, window.end) for window in limits.windows])
    with style.figure(1, height=3.0) as (drawing, axes):
        plane = axes[0, 0]
        draw_steps(sol, plane, colour=style.GREY)
        plane.plot([], [], color=style.GREY, label="taken by AUTO")
        lines = (("accuracy would allow", limits.accurate), ("largest stable step", limits.stable))
        for colour, (words, sizes) in zip(style.COLOURS, lines, strict=False):
            plane.plot(edges.ravel(), np.repeat(sizes, 2), color=colour, linewidth=0.5)
            plane.hlines(sizes, *edges.T, color=colour, linewidth=3.0, label=words)
        prepared(plane, limits.binding, starts_fast(sol))
        plane.set_xlabel("t")
        plane.legend(ncols=3, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2)
    return drawing


def costs(diagnosis):
    """What each method that got through costs."""
    shown = sorted((one for one in diagnosis.costs if one.finished), key=lambda one: -one.seconds)
    with style.figure(1, height=0.6 + 0.28 * len(shown)) as (drawing, axes):
        plane = axes[0, 0]
        for row, one in enumerate(shown):
            explicit = one.method.is_explicit
            colour = style.COLOURS[0] if explicit else style.COLOURS[6 if one.method.switches else 1]
            plane.plot([one.seconds], [row], "o", color=colour)
            plane.annotate(in_words(one.seconds), (one.seconds, row), (7, -3), textcoords="offset points", fontsize=8)
        plane.set_yticks(range(len(shown)), [one.name for one in shown])
        plane.set(xscale="log", xlabel="seconds of processor time", ylim=(-0.6, len(shown) - 0.4))
        plane.margins(x=0.2)
    return drawing


def costs_as_table(diagnosis) -> str:
    """The costs as a table."""
    rows = []
    for one in diagnosis.costs:
        said = (
            "advised" if one is diagnosis.advice else "" if one.finished else f"given up at {100 * one.reached:.2g} %"
        )
        error = f"{one.error:.2g}" if one.finished else "-"
        cells = (one.name, in_words(one.seconds), f"{one.evaluations:,}", f"{one.steps:,}", error)
        rows.append((*cells, f"{one.controller.rtol:.2g}", said))
    return table(("method", "time", "evaluations", "steps", "error", "rtol", ""), rows)
