"""The command line of a study: its help in whole paragraphs, and options read into the study's own class."""

import dataclasses

import pytest

from studies.lab import command


@dataclasses.dataclass
class Asked:
    """What every study of this test asks."""

    size: int = 3
    """How large the thing is, which takes so many words to say that the explanation is
    continued in a second line of the source."""
    smoke: bool = False
    """Small sizes."""


@dataclasses.dataclass
class Arguments(Asked):
    """The options of the study."""

    names: tuple[str, ...] = ()
    """Only these; all by default."""


DOC = """A study.

It claims something that
takes two lines."""


def test_help_ends_its_lines_where_the_terminal_ends_and_not_where_the_source_does(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "250")
    with pytest.raises(SystemExit):
        command.start(print, Arguments, "study", DOC, ["--help"])
    text = capsys.readouterr().out
    assert "A study.\n\nIt claims something that takes two lines." in text
    assert "the explanation is continued in a second line of the source. (default: 3)" in text
    assert "all by default." in text
    assert "all by default. (" not in text


def test_options_are_read_into_the_class_of_the_study():
    seen = []
    command.start(seen.append, Arguments, "study", DOC, ["--names", "a", "b"])
    assert seen == [Arguments(names=("a", "b"))]
    assert type(seen[0]) is Arguments
