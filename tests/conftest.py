"""For every test: the same examples wherever it matters, and an ear for Ctrl-C."""

import os
import signal

import pytest
from hypothesis import settings

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "here"))


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_is_heard():
    """A shell starts what runs in the background deaf to it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
