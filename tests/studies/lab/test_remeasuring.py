"""`--remeasure` of studies that keep measurements: what other code measured is made anew, what is missing is not."""

import pytest

from studies import detect, population, tns_at_work, tricks
from studies.lab import jobs, measurements
from studies.lab.results import source


class Stopped(Exception):
    """What a study wanted to work off is known."""


@pytest.mark.parametrize("study", [population, tricks, tns_at_work, detect], ids=lambda study: study.STUDY)
def test_a_study_measures_again_what_other_code_measured(study, tmp_path, monkeypatch):
    """Two of its shipped results are there, one of them as today's code would have left it, and the rest is missing."""
    trained = (path for path in study.SHIPPED.glob("*.npz") if not path.stem.startswith("pruned"))
    older, today = sorted(trained)[:2]
    for path in (older, today):
        one = measurements.read(path)
        one.numbers["made"] = source() if path is today else {"measured_by": "0" * 12}
        measurements.write(one, tmp_path / "shipped" / path.name)
    asked: list[set[str]] = []

    def note(planned, find, carry_out, locks, say=print):
        asked.append({job.stem for job in planned() if find(job) is None})
        raise Stopped

    monkeypatch.setattr(jobs, "work_off", note)

    def wanted(**options):
        with pytest.raises(Stopped):
            study.main(study.Arguments(out=tmp_path / "out", **options), shipped=tmp_path / "shipped")
        return asked[-1]

    assert wanted(remeasure=True) == {older.stem}
    missing = wanted(train=True)
    assert len(missing) > 5
    assert not missing & {older.stem, today.stem}
    assert wanted(train=True, remeasure=True) == missing | {older.stem}
