"""Pages whose code runs from their first line to their last: each block may be followed by what it prints.

A block of Python that is followed by a block of text prints exactly that. Numbers may differ in the last digit that is
shown or by a hundredth, as rounding differs between processors and long runs count their steps by it; whole numbers
below a hundred may not. Where a comment says that numbers depend "on the machine", as trained networks do, they may
differ by half of themselves. A block that ends in an expression whose value is a figure shows the figure, on the site
and in the notebook of the page.

`python -m docs.snippets PAGE...` runs pages and writes into them what their blocks print, where it has changed; with
`--add` also below blocks that show nothing so far.
"""

import argparse
import ast
import base64
import contextlib
import dataclasses
import io
import json
import linecache
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<printed>.*?)^```\n)?", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"[-+]?\d+(?:,\d{3})*(?:\.\d*)?(?:e[-+]?\d+)?")
LOOSE = "on the machine"


@dataclasses.dataclass(frozen=True)
class Snippet:
    """A block of a page that was run.

    block    where it stands: the match of `BLOCK`
    printed  what it printed
    picture  the figure that its last expression is, as PNG; None where it is none
    """

    block: re.Match
    printed: str
    picture: bytes | None

    @property
    def expected(self) -> str | None:
        """What the page says that it prints; None where the page says nothing."""
        return self.block["printed"]

    @property
    def as_said(self) -> bool:
        """Does it print what the page says? A block of which the page shows nothing may print anything."""
        return self.expected is None or alike(self.expected, self.printed, LOOSE in self.block["code"])


def run(path: Path) -> Iterator[Snippet]:
    """Run the blocks of a page in one namespace, in an empty folder of their own; warnings are errors."""
    page, name, lines = path.read_text(), f"{path.stem}.py", []
    names: dict[str, Any] = {"__name__": "page"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("error")
        for block in BLOCK.finditer(page):
            code = "\n" * len(lines) + block["code"]  # lines are those of a file into which all blocks are copied
            lines += block["code"].splitlines(keepends=True)
            linecache.cache[name] = len(page), None, lines, name
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                value = execute(code, names, name)
            said = "".join(line.rstrip() + "\n" for line in printed.getvalue().splitlines())
            yield Snippet(block, said, value._repr_png_() if hasattr(value, "_repr_png_") else None)


def execute(code: str, names: dict[str, Any], name: str) -> Any:
    """Run a block; the value of its last statement where that is an expression, else None."""
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), names)
    return eval(compile(ast.Expression(last.value), name, "eval"), names) if isinstance(last, ast.Expr) else None


def alike(expected: str, printed: str, loose: bool = False) -> bool:
    """The same words, and numbers that are near enough; much nearer where they are not `loose`."""
    if [*map(blank, NUMBER.split(expected))] != [*map(blank, NUMBER.split(printed))]:
        return False
    pairs = zip(NUMBER.findall(expected), NUMBER.findall(printed), strict=True)
    return all(abs(number(a) - number(b)) <= slack(a, b, loose) for a, b in pairs)


def slack(a: str, b: str, loose: bool) -> float:
    """By how much two numbers may differ."""
    if loose:
        return max(last_digit(a), last_digit(b), 0.5 * abs(number(a)))
    if a.isdigit() and number(a) < 100.0:
        return 0.0
    return max(last_digit(a), last_digit(b), 0.01 * abs(number(a)))


def blank(text: str) -> str:
    return " ".join(text.split())


def number(text: str) -> float:
    return float(text.replace(",", ""))


def last_digit(text: str) -> float:
    """What the last digit of a number counts: 0.01 in 3.14, 1e-7 in 2.5e-6. A little more, for its own rounding."""
    mantissa, _, power = text.replace(",", "").partition("e")
    return 1.001 * 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))


def written(page: str, snippets: list[Snippet], everywhere: bool) -> str:
    """The page with what its blocks print: where it says something else, or `everywhere` that something is printed."""
    for snippet in reversed(snippets):
        if not snippet.as_said or (everywhere and snippet.printed and snippet.expected is None):
            start, end = snippet.block.span()
            code = snippet.block["code"]
            page = f"{page[:start]}```python\n{code}```\n\n```text\n{snippet.printed}```\n{page[end:]}"
    return page


def notebook(page: str, snippets: list[Snippet]) -> str:
    """The page as a Jupyter notebook that has been run: its text, its code, what that printed and drew."""
    cells, place = [], 0
    for count, snippet in enumerate(snippets, start=1):
        start, end = snippet.block.span()
        cells += text_cell(page[place:start])
        outputs: list[dict] = []
        if snippet.printed:
            outputs.append({"output_type": "stream", "name": "stdout", "text": snippet.printed})
        if snippet.picture:
            data = {"image/png": base64.b64encode(snippet.picture).decode()}
            outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
        code = {"source": snippet.block["code"].rstrip(), "execution_count": count, "outputs": outputs}
        cells.append({"cell_type": "code", "metadata": {}, **code})
        place = end
    cells += text_cell(page[place:])
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    about = {"nbformat": 4, "nbformat_minor": 4, "metadata": kernel}
    return json.dumps({**about, "cells": cells}, indent=1, ensure_ascii=False) + "\n"


def text_cell(text: str) -> list[dict]:
    return [{"cell_type": "markdown", "metadata": {}, "source": text.strip()}] if text.strip() else []


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m docs.snippets", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("pages", nargs="+", type=Path, help="Markdown files")
    parser.add_argument(
        "--add", action="store_true", help="what blocks print that have no output in the page so far, too"
    )
    asked = parser.parse_args(arguments)
    for path in asked.pages:
        page = path.read_text()
        new = written(page, list(run(path)), asked.add)
        print(f"{path}: {'written' if new != page else 'prints what it says'}")
        path.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
