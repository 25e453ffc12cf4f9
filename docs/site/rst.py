"""Plain text of docstrings and parsers as reStructuredText; names in backticks become links to the reference."""

import importlib
import inspect
import re
from collections.abc import Iterable, Sequence

# the packages and modules whose names are the reference, and what users call them
PACKAGES = {
    "odelab": "ol",
    "netbridge": "nb",
    "odelab.plot": "ol.plot",
    "odelab.maths": "ol.maths",
    "odelab.problems": "ol.problems",
    "netbridge.data": "nb.data",
    "netbridge.train": "nb.train",
    "netbridge.detect": "nb.detect",
}


def public_names(package: str) -> dict[str, object]:
    """The public names of a package that are this project's own, in the order of its source, but for modules."""
    return {
        name: value
        for name, value in vars(importlib.import_module(package)).items()
        if not name.startswith("_") and not inspect.ismodule(value) and ours(name, value)
        if not (package == "odelab.problems" and inspect.isclass(value))  # Problem is odelab's
    }


def ours(name: str, value) -> bool:
    """Is it made here? Of plain Python, those in capitals are: dictionaries and rows of names."""
    module = getattr(value, "__module__", None) or type(value).__module__
    return module.startswith(("odelab", "netbridge")) or (name.isupper() and isinstance(value, dict | tuple))


LINKS: dict[str, str] = {}
for package, short in PACKAGES.items():
    for public in public_names(package):
        LINKS |= {f"{short}.{public}": f"{package}.{public}", f"{package}.{public}": f"{package}.{public}"}
        if package in ("odelab", "netbridge"):
            LINKS.setdefault(public, f"{package}.{public}")


OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*|tcp://[\w:]+")  # neither a dash nor an address to follow


def escaped(text: str) -> str:
    """Plain text in which stars, bars and trailing underscores are characters and backticks are code or links."""
    out = ""
    for piece in re.split(r"(``[^`]*``|`[^`]*`)", text):
        if piece.startswith("`"):
            inside = piece.strip("`")
            bare = re.sub(r"\(.*\)$", "", inside)
            said = f":py:obj:`{inside} <{LINKS[bare]}>`" if bare in LINKS else f"``{inside}``"
        else:
            said = re.sub(r"(\w)_(?!\w)", r"\1\\_", re.sub(r"([\\*|])", r"\\\1", piece))
            said = OPTION.sub(r"``\g<0>``", said)
        if said and ((out[-1:].isalnum() and said[0] in ":`") or (out.endswith("`") and said[0].isalnum())):
            out += "\\ "  # a role needs a blank or punctuation on both sides
        out += said
    return re.sub(r"^(\w+\.)(?=\s)", r"\\\1", out)  # "H. Robertson" is no list of an item H


def heading(text: str, line: str = "=") -> list[str]:
    return [text, line * len(text), ""]


def indented(lines: Iterable[str]) -> list[str]:
    return [f"   {line}" if line else "" for line in lines]


def code(text: str, language: str = "python") -> list[str]:
    return [f".. code-block:: {language}", "", *indented(text.rstrip().split("\n")), ""]


def table(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> list[str]:
    """A table whose cells are reStructuredText of one line."""
    out = [".. list-table::", *(["   :header-rows: 1"] if head else []), ""]
    for row in ([head] if head else []) + [*rows]:
        out += [f"   {'*' if number == 0 else ' '} - {cell}".rstrip() for number, cell in enumerate(row)]
    return [*out, ""]


def contents(pages: Iterable[str], depth: int = 1) -> list[str]:
    return [".. toctree::", f"   :maxdepth: {depth}", "", *indented(pages), ""]
