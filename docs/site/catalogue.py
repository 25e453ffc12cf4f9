"""The pages of the problems: of each what it is, what is known of it, its right-hand side, and what limits its steps.

Everything comes from the catalogue or is measured; pictures are kept, and drawn anew where the text has changed.
"""

import hashlib
import inspect
import json
import textwrap
from pathlib import Path
from types import SimpleNamespace

import odelab as ol
from docs.site.rst import code, contents, escaped, heading, public_names, table
from odelab.doctor import page
from odelab.doctor.costs import number
from odelab.doctor.examination import obstacle_to_eigenvalues
from odelab.doctor.step_limits import step_limits
from odelab.right_hand_side import unwrap

GROUPS = {  # pages, by the modules of the problems
    "One component, and linear systems": ("scalar", "linear_systems", "forced"),
    "Chemistry": ("chemistry", "pollution"),
    "Oscillators and relaxation": ("oscillators", "relaxation"),
    "Bodies": ("celestial", "ellipse", "gravity", "mechanics", "pendulum", "seven_bodies", "three_bodies"),
    "Lines of a partial differential equation": ("method_of_lines", "transport"),
    "Algebraic equations": ("algebraic",),
}
RTOL, ATOL = 1e-6, 1e-9
MEASURED = {"e5": {"t_span": (0.0, 1000.0)}}  # beyond, 1e-9 is far above its concentrations
LEGEND = (
    "Grey in the pictures: where stability and not accuracy would choose the steps of an explicit method. Thick lines "
    "are the stretches on which both steps were measured; the thin grey line is what ``ol.AUTO`` took."
)
LONGEST = 60  # lines of a right-hand side that is shown


def pages(folder: Path) -> dict[str, str]:
    """{file: text} of the pages of the problems; pictures go into the folder."""
    factories = {**ol.problems.catalogue(), **ol.problems.daes()}
    others = [name for name in public_names("odelab.problems") if name not in factories]
    made, rows = {}, []
    for title, modules in GROUPS.items():
        slug = title.lower().replace(",", "").replace(" ", "-")
        members = [name for name in factories if module_of(name) in modules]
        lines = [*heading(title), LEGEND, ""]
        for name in members:
            said, row = entry(name, factories[name](), folder)
            lines += said
            rows.append((f":ref:`{name} <problem-{name}>`", *row))
        for name in others:
            if module_of(name) in modules:
                lines += [f".. autofunction:: odelab.problems.{name}", ""]
        made[f"{slug}.rst"] = "\n".join(lines)
    words = (
        "Every problem of ``ol.problems``. Each factory is called without arguments, ``ol.problems.lorenz()``, or with "
        f"parameters of its own. *Stiff* is what the doctor says at rtol = {RTOL:g} and atol = {ATOL:g}: by how much "
        "stability multiplies the steps of an explicit method (DOPRI5), from 2 on, and over which share of the time "
        "it chooses them."
    )
    lines = [*heading("Problems"), words, ""]
    lines += table(rows, ("problem", "components", "time", "stiff", "times the steps", "share of the time"))
    for name in others:
        if module_of(name) == "problems":
            lines += [f".. autofunction:: odelab.problems.{name}", ""]
    made["index.rst"] = "\n".join([*lines, *contents(made)])
    return made


def module_of(name: str) -> str:
    return public_names("odelab.problems")[name].__module__.rpartition(".")[2]


def entry(name: str, problem: ol.Problem, folder: Path) -> tuple[list[str], tuple[str, ...]]:
    """What a page says of a problem, and its row in the table of all."""
    text = "\n".join([*facts(problem), *right_hand_side(problem)])
    found = measured(name, problem, text, folder)
    pictures = [
        line
        for number, words in enumerate(found["pictures"])
        for line in (f".. image:: {name}-{number}.png", "   :width: 520px", f"   :alt: {name}: {words}", "")
    ]
    lines = [f".. _problem-{name}:", "", *heading(name, "-"), f".. autofunction:: odelab.problems.{name}", ""]
    lines += [text, escaped(found["said"]), "", *pictures]
    start, end = problem.t_span
    cells = (f"{start:g} to {end:.4g}", *found["row"])
    return lines, (str(problem.size), *(cell.replace(" ", "\N{NO-BREAK SPACE}") for cell in cells))


def facts(problem: ol.Problem) -> list[str]:
    """Size, span, parameters, what is known, and where it comes from."""
    start, end = problem.t_span
    numbers = ", ".join(f"{one:.6g}" for one in problem.params) or "none"
    known = ["the exact solution"] if problem.exact else []
    known += [f"the state at t = {one.t:g} to {one.digits:.0f} digits" for one in problem.references]
    known += [f"{one.name} is kept" for one in problem.invariants]
    known += ["the Jacobian"] if problem.jacobian else []
    sources = sorted({one.source for one in problem.references})
    rows = [
        ("components", f"{problem.size}, in {problem.form} form"),
        ("time", f"{start:g} to {end:.6g}"),
        ("parameters", numbers),
        ("known", escaped("; ".join(known) or "nothing")),
        *((("digits from", escaped("; ".join(sources))),) if sources else ()),
        ("source", escaped(problem.about)),
    ]
    return table(rows)


def right_hand_side(problem: ol.Problem) -> list[str]:
    """The lines that compute it."""
    source = textwrap.dedent(inspect.getsource(unwrap(problem.rhs)))
    return code(source) if source.count("\n") < LONGEST else []


def measured(name: str, problem: ol.Problem, text: str, folder: Path) -> dict:
    """What limits the steps, in words, as cells of a row, and as pictures."""
    stamp, made_of = folder / f"{name}.measured", hashlib.sha256(text.encode()).hexdigest()
    if stamp.is_file() and (found := json.loads(stamp.read_text()))["made of"] == made_of:
        return found
    problem = problem.replace(**MEASURED.get(name, {}))
    sol = ol.solve(problem, ol.AUTO, ol.adaptive(RTOL, ATOL))
    obstacle = obstacle_to_eigenvalues(problem)
    limits = None if obstacle else step_limits(problem, RTOL, ATOL)
    binding = [] if limits is None else limits.binding
    pictures = {"the solution": page.draw_solution(sol, binding, page.starts_fast(sol))}
    if limits is not None:
        examined = SimpleNamespace(limits=limits, sol=sol)
        pictures["the step that accuracy allows, and the largest stable one"] = page.step_limits(examined)
    folder.mkdir(parents=True, exist_ok=True)
    for count, drawing in enumerate(pictures.values()):
        drawing.savefig(folder / f"{name}-{count}.png", dpi=120)
    found = {"made of": made_of, "pictures": [*pictures], **in_words(problem, limits, obstacle)}
    stamp.write_text(json.dumps(found))
    return found


def in_words(problem: ol.Problem, limits, obstacle: str) -> dict:
    """A paragraph on stiffness, and the cells "stiff", "times the steps" and "share of the time"."""
    end = problem.t_span[1]
    if limits is None:
        return {"said": f"What limits an explicit method was not measured, as {obstacle}.", "row": ["", "", ""]}
    kind = "Stiff" if limits.stiff else "Hardly stiff" if limits.times_more >= 1.05 else "Not stiff"
    at = f"{kind} at rtol = {RTOL:g}, atol = {ATOL:g}, up to t = {end:.4g}"
    most = number(limits.ratio.max())
    if kind == "Not stiff":
        said = f"{at}: accuracy chooses the steps of DOPRI5, which are at most {most} times the largest stable ones."
    else:
        said = (
            f"{at}: stability multiplies the steps of DOPRI5 by {number(limits.times_more)}, to about "
            f"{number(limits.steps)}; over {100 * limits.share:.0f} % of the time it binds, where accuracy would allow "
            f"steps up to {most} times the stable ones."
        )
        t, u = limits.worst.start, limits.worst.at_start
        said += f" Where it costs most, at t = {t:.4g}: {ol.modes(problem, t, u)}."
    row = [kind.lower(), number(limits.times_more), f"{100 * limits.share:.0f} %"]
    return {"said": said, "row": row}
