"""A bar on a terminal, and not a character elsewhere."""

import sys

from netbridge.progress import progress_bar


def work(total=3):
    with progress_bar("fetching", total) as advance:
        for number in range(3):
            advance(1, f"part {number}")


def test_nothing_is_written_where_there_is_no_terminal(capsys):
    work()
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_title_and_note(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    for total in (3, 0):
        work(total)
        shown = capsys.readouterr().err
        assert "fetching" in shown
        assert "part 2" in shown
