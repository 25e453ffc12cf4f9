"""A result says which source made it, and a study names the results that other code than today's has measured."""

import functools
import json
import shlex
import types

import pytest

from netbridge import code_digests
from studies.lab import results
from studies.lab.command import start
from studies.lab.results import choose_current, describe_older, is_current, source


def measured(by: str | None, **more) -> types.SimpleNamespace:
    """A result that some code has measured, None: nobody knows which."""
    return types.SimpleNamespace(made={} if by is None else {"commit": "abc", "measured_by": by, **more})


def test_a_source_is_its_commit_and_both_digests():
    made = source()
    assert made == {
        "commit": results.commit(),
        "trained_by": code_digests.trained_by(),
        "measured_by": code_digests.measured_by(),
    }
    wider = source(measured=("netbridge/spectrum",))
    assert (wider["trained_by"], wider["rooms"]) == (made["trained_by"], ["netbridge/spectrum"])
    assert wider["measured_by"] != made["measured_by"]
    assert source(("netbridge/detect",))["trained_by"] != made["trained_by"]


def test_current_is_what_the_code_of_today_has_measured_by_the_same_rooms():
    wider = source(measured=("netbridge/spectrum",))
    assert is_current(source())
    assert is_current(wider)
    assert not is_current({key: value for key, value in wider.items() if key != "rooms"})
    assert not is_current({"commit": results.commit(), "trained_by": code_digests.trained_by()})
    assert not is_current({})


def test_of_several_results_the_one_of_today_is_taken_and_else_the_first():
    today, older, unknown = measured(code_digests.measured_by()), measured("0" * 12), measured(None)
    assert choose_current([]) is None
    assert choose_current([unknown, older]) is unknown
    assert choose_current([unknown, older, today, today]) is today


def test_how_many_are_older_is_said_in_one_sentence():
    same_numbers = min(results.SAME_NUMBERS - {code_digests.measured_by()})
    codes = (code_digests.measured_by(), "0" * 12, same_numbers, None)
    today, older, same, unknown = (measured(by).made for by in codes)
    assert describe_older([]) == describe_older([today, today]) == ""
    assert describe_older([today, older, unknown, unknown]) == (
        "3 of 4 stored results were measured by other code than today's: 1 by older code; 2 by code that was not "
        "recorded."
    )
    assert describe_older([same]) == (
        "1 of 1 stored results were measured by other code than today's: 1 by older code that gives the same numbers "
        "of shipped networks, as a test shows."
    )


def test_a_study_names_them_in_terminal_page_and_record(tmp_path, capsys):
    """Population is shown from one measurement of today's code, one of older code and one of nobody knows which."""
    from studies import population as study
    from studies.lab import measurements

    for place, job in enumerate(study.queue()[:3]):
        one = measurements.find(job, (study.SHIPPED,))
        one.numbers["made"] = {"seconds": 1.0} | (source(), {"measured_by": "0" * 12}, {})[place]
        measurements.write(one, tmp_path / "runs" / f"{job.stem}.npz")
    main = functools.partial(study.main, shipped=tmp_path / "none")
    start(main, study.Arguments, study.STUDY, "", ["--out", str(tmp_path)])
    words = "2 of 3 stored results were measured by other code than today's: 1 by older code; 1 by code that was not"
    out = shlex.quote(str(tmp_path))
    again = f"`python -m studies.population --out {out} --remeasure` trains and measures them again"
    said = " ".join(capsys.readouterr().out.split())  # in lines of the terminal
    assert said.count(words) == said.count(again) == 1
    page = (tmp_path / "report.md").read_text()
    assert page.count(words) == page.count(again) == 1
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["numbers"]["measured by"] == {"this code": 1, "0" * 12: 1, "not recorded": 1}


def test_a_file_in_the_place_of_the_folder_ends_the_study_in_one_line(tmp_path):
    (tmp_path / "taken").write_text("")
    for out in (tmp_path / "taken", tmp_path / "taken" / "below"):
        with pytest.raises(SystemExit, match=r"^studies.theorem2: `--out` = .* cannot be a folder: [^\n]*$"):
            results.Results("theorem2", types.SimpleNamespace(out=out))
