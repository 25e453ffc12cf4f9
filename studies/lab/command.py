"""How a study is started from the command line, how it ends, and the command that repeats a run."""

import contextlib
import copy
import dataclasses
import math
import shlex
import sys
from collections.abc import Sequence
from typing import Annotated, Any, get_args, get_type_hints

import docstring_parser  # comes with tyro, which reads the explanations of options with it
import tyro

typed: dict[str, str] = {}  # the command line of a study that `start` is running, by its name
POSITIONAL = get_args(tyro.conf.Positional[str])[1:]
ALWAYS = ("smoke", "verbose", "out", "device", "threads", "data_root")  # options that --smoke leaves to the user


def start(main, arguments_type, study: str, doc: str, words: Sequence[str] | None = None) -> None:
    """Read the command line into `arguments_type` and call `main` with it; `words` stand in place of this process's.

    Ctrl-C and options that --smoke would ignore end the process with one line and a code that is not zero; a training
    that a signal has asked to stop, with 0 where it can go on.
    """
    arguments = read_arguments(arguments_type, study, doc, words)
    ignored = [flag for name, flag, _ in changed_options(arguments) if name not in ALWAYS]
    if arguments.smoke and ignored:
        raise SystemExit(f"studies.{study}: `--smoke` chooses its own sizes and would ignore {', '.join(ignored)}.")
    require_numbers(study, arguments)
    root = getattr(arguments, "data_root", None)
    if root is not None and not root.is_dir():
        raise SystemExit(f"studies.{study}: `--data-root` = {str(root)!r} is not a folder.")
    typed[study] = command_line(study, arguments)
    try:
        main(arguments)
    except KeyboardInterrupt as stop:  # a training says in its text what is kept
        words = f"{str(stop) or 'stopped.'} Start again with: {command(study, arguments)}"
        print(f"\nstudies.{study}: {words}", file=sys.stderr)
        raise SystemExit(getattr(stop, "code", 130)) from None
    finally:
        del typed[study]


def read_arguments(kind, study: str, doc: str, words: Sequence[str] | None = None):
    """The options of the command line. In the help, lines end where the terminal ends and not where the source does."""
    read: Any = tyro.cli(explained(kind), prog=f"python -m studies.{study}", description=join_lines(doc), args=words)
    return kind(**{field.name: getattr(read, field.name) for field in dataclasses.fields(kind)})


def explained(kind):
    """The options of a study as tyro reads them: a dataclass with an explanation at each field."""
    explanations = {
        one.arg_name: join_lines(one.description or "")
        for base in reversed(kind.__mro__[:-1])
        for one in docstring_parser.parse_from_object(base).params
    }
    hints, fields = get_type_hints(kind, include_extras=True), []
    for field in dataclasses.fields(kind):
        hint = "" if field.default in (None, ()) else None  # such a default says nothing; None: "(default: ...)"
        option = tyro.conf.arg(help=explanations[field.name], help_behavior_hint=hint)
        fields.append((field.name, Annotated[hints[field.name], option], copy.copy(field)))
    return dataclasses.make_dataclass(kind.__name__, fields)


def join_lines(text: str) -> str:
    """The same text with every paragraph in one line."""
    return "\n\n".join(" ".join(part.split()) for part in text.strip().split("\n\n"))


def command(study: str, arguments) -> str:
    """What to type to repeat a run, quoted for a shell.

    For a run from the command line this is what was typed there, even where the study has filled in options since. For
    a run that was called from Python it lists the options whose values are not the default.
    """
    return typed.get(study) or command_line(study, arguments)


def command_line(study: str, arguments) -> str:
    """The command line with every option whose value is not the default."""
    words = ["python", "-m", f"studies.{study}"]
    for name, flag, value in changed_options(arguments):
        if arguments.smoke and name not in ALWAYS:  # --smoke has chosen these values
            continue
        if flag:
            words.append(flag)
        if not isinstance(value, bool):
            words += [str(part) for part in (value if isinstance(value, tuple) else (value,))]
    return shlex.join(words)


def changed_options(arguments) -> list[tuple[str, str, object]]:
    """The name, the flag and the value of every option that is not at its default; a positional one has no flag."""
    options = [(field, getattr(arguments, field.name)) for field in dataclasses.fields(arguments)]
    return [(field.name, flag_of(field, value), value) for field, value in options if value != field.default]


def flag_of(field: dataclasses.Field, value=None) -> str:
    """How an option is written on the command line; "" for a positional one, which is only its value."""
    if set(POSITIONAL) <= set(getattr(field.type, "__metadata__", ())):
        return ""
    return f"--{'no-' if value is False else ''}{field.name.replace('_', '-')}"


def require_at_least(least, arguments, *names: str) -> None:
    """End the study where an option is below its least sensible value; an option that is None is not given."""
    for name in names:
        value = getattr(arguments, name)
        if value is not None and not value >= least:  # NaN is not
            raise SystemExit(f"`--{name.replace('_', '-')}` must be at least {least}, got {value}.")


def require_positive(arguments, *names: str) -> None:
    """End the study where an option, or one of the numbers it holds, is not a positive, finite number."""
    for name in names:
        value = getattr(arguments, name)
        for one in value if isinstance(value, tuple) else (value,):
            if not 0 < one < math.inf:
                raise SystemExit(f"`--{name.replace('_', '-')}` must be a positive number, got {one}.")


def require_numbers(study: str, arguments) -> None:
    """End the study where an option is NaN, which no comparison finds, or a seed is negative, whatever the study."""
    for field in dataclasses.fields(arguments):
        value = getattr(arguments, field.name)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, float) and math.isnan(one):
                raise SystemExit(f"studies.{study}: `{flag_of(field)}` must be a number, got nan.")
            if field.name in ("seed", "seeds") and one is not None and one < 0:
                raise SystemExit(f"studies.{study}: `{flag_of(field)}` must be a whole number from 0 on, got {one}.")


@contextlib.contextmanager
def plain_errors(study: str):
    """A context manager: an error of `odelab` or `netbridge` for a wrong value ends the study with its text alone."""
    try:
        yield
    except (ValueError, TypeError, KeyError) as error:
        raise SystemExit(f"studies.{study}: {error}") from None
