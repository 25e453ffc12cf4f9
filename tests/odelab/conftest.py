"""Strictness for every test of the solver: one arithmetic."""

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def arithmetic_is_left_as_it_was():
    """NumPy's warnings are errors here; whoever silences them for a while has to put them back."""
    before = np.geterr()
    yield
    after = np.geterr()
    np.seterr(**before)
    assert after == before
