"""Strictness for every test of the solver: one arithmetic, no deadline, the same examples in continuous integration."""

import os

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(autouse=True)
def arithmetic_is_left_as_it_was():
    """NumPy's warnings are errors here; whoever silences them for a while has to put them back."""
    before = np.geterr()
    yield
    after = np.geterr()
    np.seterr(**before)
    assert after == before
