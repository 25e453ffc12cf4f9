"""The grammar of this project's docstrings: paragraphs, examples, and lists of entries "name   text"."""

import re
import textwrap
from collections.abc import Iterator

# names, then two blanks and a text, or the names on a line of their own with the text indented below
ENTRY = re.compile(r"^(\*{0,2}`?\w[\w.-]*`?(?:, \*{0,2}`?\w[\w.-]*`?)*)(?:\s{2,}(\S.*))?$")


def entries(paragraph: str) -> list[tuple[list[str], str]] | None:
    """[(names, text)] of a paragraph that is a list of entries; None for any other."""
    found: list[tuple[list[str], str]] = []
    waiting: list[str] = []  # names of lines whose text comes below them
    for line in paragraph.split("\n"):
        match = None if line.startswith(" ") else ENTRY.match(line)
        if match:
            waiting += [name.strip(" `") for name in match[1].split(",")]
            if match[2] is not None:
                found.append((waiting, match[2]))
                waiting = []
        elif line.startswith("   ") and waiting:
            found.append((waiting, line.strip()))
            waiting = []
        elif line.startswith("  ") and found:
            found[-1] = found[-1][0], f"{found[-1][1]} {line.strip()}"
        else:
            return None
    return None if waiting else found


def parts(text: str) -> Iterator[tuple[str, object]]:
    """("text", str), ("code", str), ("example", str) and ("entries", [(names, text)]), in their order."""
    for paragraph in re.split(r"\n\s*\n", textwrap.dedent(text).strip("\n")):
        listed = entries(paragraph)
        if paragraph.lstrip().startswith(">>> "):
            yield "example", textwrap.dedent(paragraph)
        elif listed:
            yield "entries", listed
        elif all(line.startswith("    ") for line in paragraph.split("\n")):
            yield "code", textwrap.dedent(paragraph)
        else:
            yield "text", paragraph
