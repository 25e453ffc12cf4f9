"""The reference: every public name on one page, by the groups of the packages' docstrings, methods with their facts."""

import ast
import importlib
import inspect
import re
import sys
import textwrap

from docs.site.rst import PACKAGES, code, contents, escaped, heading, indented, public_names
from odelab.methods.interface import StepMethod

HEADING = re.compile(r"^\S.*\n-{3,}\n", re.MULTILINE)
GROUP = re.compile(r"^ {0,4}([a-z][a-z ]*?) {2,}(?=\S)", re.MULTILINE)
LONGEST = 40  # lines of a definition that is shown
ELSEWHERE = "odelab.problems"  # has pages of its own, see `docs.site.catalogue`


def pages() -> dict[str, str]:
    """{file: text} of the pages of the reference: one for each group of names of a package, one for each module."""
    made, listed = {}, []
    for package, short in PACKAGES.items():
        if package == ELSEWHERE:
            continue
        grouped = groups(package) if "." not in package else {"": list(public_names(package))}
        for title, names in grouped.items():
            slug = f"{package}-{title.replace(' ', '-')}" if title else package.replace(".", "-")
            lines = heading(f"{short}: {title}" if title else short)
            if not title:
                said = importlib.import_module(package).__doc__ or ""
                lines += [escaped(" ".join(said.split("\n\n")[0].split())), ""]
            for name in names:
                lines += entry(package, name)
            made[f"{slug}.rst"] = "\n".join(lines)
            listed.append(slug)
    words = (
        "Every public name, on one page each; those of ``ol.problems`` are among the :doc:`problems </problems/index>`."
    )
    made["index.rst"] = "\n".join([*heading("Reference"), words, "", *contents(listed)])
    return made


def groups(package: str) -> dict[str, list[str]]:
    """{title: names} of the public names of a package, as its docstring groups them."""
    sections = HEADING.split(importlib.import_module(package).__doc__ or "")
    text = sections[min(1, len(sections) - 1)]  # the first under a heading, where there are headings
    starts = [*GROUP.finditer(text)]
    found: dict[str, list[str]] = {}
    names = [*public_names(package)]
    for start, following in zip(starts, [*starts[1:], None], strict=True):
        said = text[start.end() : following.start() if following else len(text)].split("\n\n")[0]
        places = {name: re.search(rf"(?<![\w.]){name}(?!\w)", said) for name in names}
        mine = {name: place.start() for name, place in places.items() if place}
        if mine:
            found[start[1].strip()] = sorted(mine, key=mine.__getitem__)
            names = [name for name in names if name not in mine]
    return found | ({"more": names} if names else {})


def entry(package: str, name: str) -> list[str]:
    """What the page says of a name: functions and classes by their docstrings, others by what they are."""
    value = public_names(package)[name]
    if inspect.isclass(value):
        return [f".. autoclass:: {package}.{name}", "   :members:", ""]
    if callable(value) and not isinstance(value, StepMethod):
        return [f".. autofunction:: {package}.{name}", ""]
    called = f"{PACKAGES[package]}.{name}"
    said = of_method(called, value) if isinstance(value, StepMethod) else of_value(called, value)
    return [f".. py:data:: {package}.{name}", *indented(["", *said, *source(name, value)]), ""]


def of_method(called: str, method: StepMethod) -> list[str]:
    """What a method is, and a run by it."""
    published, kind = getattr(method, "about", ""), type(method).__name__
    words = [f"{method}.", *([f"From: {published}."] if published else [])]
    words += [f"A :py:class:`~odelab.{kind}`."] if kind in public_names("odelab") else []
    asked = "" if method.embedded else ", ol.fixed(0.01)"
    return [
        " ".join(words),
        "",
        ">>> import odelab as ol",
        f">>> ol.solve(ol.problems.dahlquist(), {called}{asked}).ok",
        "True",
        "",
    ]


def of_value(called: str, value) -> list[str]:
    """What a dictionary or a row holds, or what it is otherwise."""
    short = called.split(".")[0]
    package = {short: full for full, short in PACKAGES.items()}[short]
    asked, shown = (f"list({called})", [*value]) if isinstance(value, dict | tuple) else (called, value)
    answer = textwrap.fill(repr(shown), 100, break_on_hyphens=False).split("\n")
    kind = type(value).__name__
    words = "A dictionary, by these names." if kind == "dict" else f"A :py:class:`~{type(value).__module__}.{kind}`."
    return [words, "", f">>> import {package} as {short}", f">>> {asked}", *answer, ""]


def source(name: str, value) -> list[str]:
    """Where a value is defined, and how where that is short."""
    module, text = definition(name, value)
    short = text.count("\n") < LONGEST
    return [f"Source: ``{module.replace('.', '/')}.py``", "", *(code(text) if short else [])]


def definition(name: str, value) -> tuple[str, str]:
    """(module, source) of the statement that gives an object its name."""
    for module in [one for key, one in sys.modules.items() if key.startswith(("odelab.", "netbridge."))]:
        if vars(module).get(name) is value:
            source = inspect.getsource(module)
            for statement in ast.parse(source).body:
                targets = getattr(statement, "targets", [])
                if any(getattr(target, "id", "") == name for target in targets):
                    return module.__name__, ast.get_source_segment(source, statement) or ""
    raise LookupError(name)
