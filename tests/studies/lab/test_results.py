"""A result says which source made it, by what the files hold and not by the name of a commit alone."""

import types

import pytest

from studies.lab import results


def test_the_digest_is_of_every_file_that_training_goes_through(tmp_path, monkeypatch):
    core, room = tmp_path / "core.py", tmp_path / "room"
    room.mkdir()
    core.write_text("a = 1\n")
    (room / "loop.py").write_text("b = 2\n")
    monkeypatch.setattr(results, "ROOT", tmp_path)
    monkeypatch.setattr(results, "TRAINED_BY", (core, room))
    seen = [results.source()["code"]]
    (room / "notes.txt").write_text("no code")
    assert results.source()["code"] == seen[0]
    (room / "loop.py").write_text("b = 3\n")
    seen.append(results.source()["code"])
    (room / "loop.py").rename(room / "other.py")
    seen.append(results.source()["code"])
    core.write_text("a = 2\n")
    seen.append(results.source()["code"])
    assert len(set(seen)) == 4


def test_there_is_something_in_every_place_that_is_looked_at():
    for path in results.TRAINED_BY:
        assert path.is_file() or any(path.rglob("*.py"))


def test_a_file_in_the_place_of_the_folder_ends_the_study_in_one_line(tmp_path):
    (tmp_path / "taken").write_text("")
    for out in (tmp_path / "taken", tmp_path / "taken" / "below"):
        with pytest.raises(SystemExit, match=r"^studies.theorem2: `--out` = .* cannot be a folder: [^\n]*$"):
            results.Results("theorem2", types.SimpleNamespace(out=out))
