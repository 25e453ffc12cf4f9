"""`python -m benchmarks`: it says how long it takes before it begins, and runs every page."""

import subprocess
import sys

import pytest

from benchmarks import __main__ as everything
from benchmarks.harness import records


@pytest.fixture
def started(monkeypatch):
    """The commands that were started, none of which runs."""
    commands = []
    monkeypatch.setattr(everything.written, "write", lambda: commands.append("the page"))

    def run(command, check):
        commands.append(command)
        return subprocess.CompletedProcess(command, int("--stiff" in command))

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_it_says_beforehand_how_long_it_takes_and_runs_every_page(started, tmp_path, capsys):
    everything.main(["--quick", "--record", str(tmp_path / "record.json")])
    said = capsys.readouterr().out
    assert f"about {sum(page.quick for page in everything.PAGES):g} minutes in all" in said
    pages = [command[2:4] for command in started]
    assert ["benchmarks.net", "--quick"] in pages
    assert ["benchmarks.ode", "--doctor"] in pages
    assert len(started) == len({tuple(command) for command in started}) == len(everything.PAGES)
    assert all(command[0] == sys.executable and "--quick" in command for command in started)
    assert all(command[-1] == str(tmp_path / "record.json") for command in started)


def test_a_wrong_answer_on_any_page_ends_it_with_one(started):
    assert everything.main([]) == 1
    assert not any("--quick" in command for command in started)


def test_full_sizes_go_into_the_record_of_this_machine_of_which_the_page_is_written_at_the_end(started):
    everything.main(["--anew"])
    assert started.pop() == "the page"
    assert all(command[-3:] == ["--anew", "--record", str(records.path_here())] for command in started)
    started.clear()
    everything.main(["--quick"])
    assert not any("--record" in command for command in started)
