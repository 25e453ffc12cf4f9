"""Docstrings of this project as reStructuredText: entries become fields, names in backticks become links.

Figures of the gallery are those that a script calls `figure`.
"""

import inspect
import re

from sphinx_gallery.scrapers import figure_rst

import netbridge
import odelab
from docs.site.entries import parts

LINKS: dict[str, str] = {}
for short, module in (("ol", odelab), ("nb", netbridge)):
    for name in module.__all__ if hasattr(module, "__all__") else vars(module):
        value = getattr(module, name)
        if not name.startswith("_") and callable(value) and not inspect.ismodule(value):
            full = f"{module.__name__}.{name}"
            LINKS |= {f"{short}.{name}": full, full: full}
            LINKS.setdefault(name, full)


def escaped(text: str) -> str:
    """Plain text in which stars, bars and trailing underscores are characters and backticks are code or links."""
    out = ""
    for piece in re.split(r"(``[^`]*``|`[^`]*`)", text):
        if piece.startswith("`"):
            inside = piece.strip("`")
            bare = re.sub(r"\(.*\)$", "", inside)
            said = f":py:obj:`{inside} <{LINKS[bare]}>`" if bare in LINKS else f"``{inside}``"
        else:
            said = re.sub(r"([\\*|])", r"\\\1", re.sub(r"(\w)_(?!\w)", r"\1\\_", piece))
        if said and ((out[-1:].isalnum() and said[0] in ":`") or (out.endswith("`") and said[0].isalnum())):
            out += "\\ "  # a role needs a blank or punctuation on both sides
        out += said
    return out


def rewrite(app, what, name, obj, options, lines):
    try:
        signature = inspect.signature(obj).parameters
    except (TypeError, ValueError):
        signature = {}
    out: list[str] = []
    for kind, body in parts("\n".join(lines)):
        if kind == "text":
            first = re.match(r"(Returns|Raises)\b(.*)", body, re.DOTALL)
            out += (f"**{first[1]}**{escaped(first[2])}" if first else escaped(body)).split("\n")
        elif kind == "code":
            out += ["::", "", *("    " + line for line in body.split("\n"))]
        elif kind == "example":
            out += body.split("\n")
        else:
            for names, text in body:
                for one in names:
                    field = "param" if one.lstrip("*") in signature else "ivar"
                    out.append(f":{field} {one.replace('*', chr(92) + '*')}: {escaped(text)}")
        out.append("")
    lines[:] = out


def drawn(block, variables, gallery_conf, **_):
    """The figure of an example, which matplotlib's pyplot does not know."""
    figure = variables["example_globals"].get("figure")
    if figure is None:
        return ""
    path = next(variables["image_path_iterator"])
    figure.savefig(path, dpi=150)
    return figure_rst([path], gallery_conf["src_dir"])


def setup(app):
    app.connect("autodoc-process-docstring", rewrite)
    return {"parallel_read_safe": True}
