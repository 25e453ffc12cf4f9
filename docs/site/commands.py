"""The pages of the command lines: every `python -m ...` with its options, read from the parsers themselves."""

import argparse
import importlib
import re
import warnings
from pathlib import Path
from unittest import mock

from tyro.extras import get_parser

from docs.site.entries import parts
from docs.site.rst import code, contents, escaped, heading, table
from studies.__main__ import GROUPS
from studies.lab.command import explained

ROOT = Path(__file__).parent.parent.parent
MAIN = '\nif __name__ == "__main__":'
PARSERS = ("argparse", "start(main, Arguments")  # a module that holds one of these has options
TOOLS = ("docs", "release", "tests")  # commands of the checkout, which are not installed


class Caught(Exception):
    """A parser that was about to read the command line."""


def pages() -> dict[str, str]:
    """{file: text} of the pages of the commands."""
    words = (
        "Every command says the same with ``--help``. ``python -m studies`` lists the studies, and with ``--index`` it "
        "writes one page over all of their reports."
    )
    made, index = {}, [*heading("Command lines"), words]
    for title, members in listed().items():
        slug, lines, rows = re.sub(r"\W+", "-", title.lower()).strip("-"), heading(title), []
        for name in members:
            said, first = entry(name)
            lines += said
            rows.append((f":ref:`{name} <command-{name}>`", first))
        made[f"{slug}.rst"] = "\n".join(lines)
        index += ["", *heading(title, "-"), *table(rows)]
    made["index.rst"] = "\n".join([*index, *contents(made)])
    return made


def listed() -> dict[str, list[str]]:
    """{title: commands} of every page, in the order of the index."""
    every = commands()
    return {
        "Equations and networks": ["odelab", "netbridge"],
        **{f"Studies: {title}": [f"studies.{name}" for name in members] for title, members in GROUPS.items()},
        "Benchmarks": [name for name in every if name.startswith("benchmarks")],
        "Tools of the checkout": [name for name in every if name.split(".")[0] in TOOLS],
    }


def commands() -> list[str]:
    """The modules with options that can be run, as `python -m` calls them."""
    found = []
    for folder in ("odelab", "netbridge", "studies", "benchmarks", *TOOLS):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text()
            if MAIN in text and any(one in text for one in (*PARSERS, "command.parser(")):
                found.append(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__"))
    return found


def parser_of(name: str) -> tuple[argparse.ArgumentParser, str]:
    """The parser of a command, and what its module says of it."""
    is_package = (ROOT / name.replace(".", "/") / "__init__.py").is_file()  # a folder of old bytecode is none
    module = importlib.import_module(f"{name}.__main__" if is_package else name)
    if name.startswith("studies."):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of tyro, for a parser that is not run
            return get_parser(explained(module.Arguments)), module.__doc__ or ""
    with mock.patch.object(argparse.ArgumentParser, "parse_args", caught):
        try:
            module.main()
        except Caught as stopped:
            return stopped.args[0], module.__doc__ or ""
    raise LookupError(f"{name} reads no command line")


def caught(parser, *_, **__):
    raise Caught(parser)


def entry(name: str) -> tuple[list[str], str]:
    """What a page says of a command, and its first sentence for the list of all."""
    parser, doc = parser_of(name)
    first, *others = parts(doc)
    command = f"python -m {name}"
    actions = [one for one in parser._actions if one.dest != "help" and one.help != argparse.SUPPRESS]
    words = " ".join(invocation(one) for one in actions if not one.option_strings)
    usage = f"{command}{' [OPTIONS]' if actions else ''} {words}".rstrip()
    lines = [f".. _command-{name}:", "", *heading(name, "-"), f"``{usage}``", ""]
    lines += [line for part in (first, *others) for line in told(*part)]
    lines += [f".. program:: {command}", ""]
    for one in actions:
        lines += [f".. option:: {invocation(one)}", "", f"   {escaped(' '.join((one.help or '').split()))}", ""]
    return lines, told(*first)[0]


def told(kind: str, body) -> list[str]:
    """A part of a module's docstring, as `docs.site.entries.parts` has it."""
    if kind == "entries":
        return [*(f"- {', '.join(names)}: {escaped(text)}" for names, text in body), ""]
    return [escaped(" ".join(body.split())), ""] if kind == "text" else code(body, "text")


def invocation(action: argparse.Action) -> str:
    """An option as the help writes it: its names and what it takes."""
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    taken = "" if action.nargs == 0 else metavar or choices or action.dest.upper()
    if not action.option_strings:
        return metavar or action.dest
    return ", ".join(f"{one} {taken}".rstrip() for one in action.option_strings)
