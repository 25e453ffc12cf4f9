"""Docstrings of this project as reStructuredText: entries become fields, names in backticks become links.

Figures of the gallery are those that a script calls `figure`.
"""

import inspect
import re

from sphinx_gallery.scrapers import figure_rst

from docs.site.entries import parts
from docs.site.rst import escaped


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


def without_private(app, what, name, obj, options, signature, returned):
    """A signature without what catches unknown arguments, which is nobody's choice."""
    return re.sub(r", \*\*_\w+", "", signature) if signature else signature, returned


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
    app.connect("autodoc-process-signature", without_private)
    return {"parallel_read_safe": True}
