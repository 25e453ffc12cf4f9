"""A user's own problems and indices: what they may be called, what they may return, and that they change nothing."""

import numpy as np
import pytest

from studies.switching import batch, yours
from studies.switching.design import PRESETS

STATE = (np.diag([-2.0, -1.0]), np.ones(2), np.zeros(2), np.ones(2), np.full(2, 1e-3), 1e-4)


def written(folder, text: str) -> str:
    path = folder / "mine.py"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n", "neither `PROBLEMS` nor `INDICES`"),
        ("INDICES = [1]\n", "must be a dictionary of functions"),
        ("INDICES = {'SAI': len}\n", "a name that the study has itself"),
        ("INDICES = {'always implicit': len}\n", "a name that the study has itself"),
        ("PROBLEMS = {'hires': len}\n", "a name that the study has itself"),
        ("PROBLEMS = {'timings': len}\n", "a name that the study has itself"),
        ("PROBLEMS = {'a b': len, 'a_b': len}\n", "has 'a_b'"),
        ("PROBLEMS = {'a/b': len}\n", "no file's"),
        ("PROBLEMS = {3: len}\n", "has 3"),
    ],
)
def test_what_a_users_file_must_hold(tmp_path, text, words):
    with pytest.raises(SystemExit, match=words):
        yours.adopt(written(tmp_path, text))


def test_a_file_that_has_changed_is_read_again(tmp_path):
    """A worker of a cluster may have read an earlier one."""
    for value in (1.0, 2.0):
        path = written(tmp_path, f"INDICES = {{'mine': lambda *given: {value}}}\n")
        assert yours.value_of("mine", yours.adopt(path).indices["mine"], *STATE) == value


def test_a_worker_with_another_file_measures_nothing(tmp_path):
    path = written(tmp_path, "INDICES = {'mine': lambda *given: 1.0}\n")
    with pytest.raises(ValueError, match="is not the same file for the worker"):
        batch.measure_by_name("robertson", PRESETS["smoke"], "DOPRI5", "RODAS4", path, "INDICES = {}\n")


@pytest.mark.parametrize("answer", [np.ones(2), None, "3", 1j, (1.0, 2.0)])
def test_an_index_must_return_one_number(answer):
    with pytest.raises(ValueError, match="must return one real number"):
        yours.value_of("mine", lambda *given: answer, *STATE)


@pytest.mark.parametrize("answer", [2, np.float32(2.0), np.array(2.0), True, np.nan, np.inf])
def test_any_kind_of_number_will_do(answer):
    assert yours.value_of("mine", lambda *given: answer, *STATE) == pytest.approx(float(answer), nan_ok=True)


def test_an_index_cannot_change_what_others_see():
    def greedy(J, f, f_t, u, scale, tol):
        for array in (J, f, f_t, u, scale):
            array *= 0.0
        return 1.0

    before = [np.array(one) for one in STATE]
    yours.value_of("mine", greedy, *STATE)
    for one, other in zip(before, STATE, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_index_that_remembers_is_refused():
    seen = []
    with pytest.raises(ValueError, match="must depend on its arguments alone"):
        yours.value_of("mine", lambda *given: seen.append(1) or len(seen), *STATE)


def test_what_a_function_raises_is_told_with_its_line():
    def wrong(*given):
        return 1.0 / 0.0

    with pytest.raises(ValueError, match=r"the index 'mine' of .* raised ZeroDivisionError in line \d+ of test_y"):
        yours.value_of("mine", wrong, *STATE)
    with pytest.raises(ValueError, match="the problem 'mine' of `--define` raised ZeroDivisionError"):
        yours.problem_of("mine", wrong)
    with pytest.raises(TypeError, match=r"must return an odelab\.Problem, got 3"):
        yours.problem_of("mine", lambda: 3)
