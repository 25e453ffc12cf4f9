"""For every test: the same random examples on every run, and Ctrl-C as a terminal would deliver it.

Three Hypothesis profiles. `settled` (the default, `make test` and CI) draws the same few examples every time, so that a
red test is the fault of the change. `explore` (`make explore`) draws fresh ones and many more; what it finds is kept in
`.hypothesis/` until it is mended and written down as an example. HYPOTHESIS_PROFILE chooses another.
"""

import gc
import os
import signal

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy is imported: threads of two workers wait for each other
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each program that a test starts would parse all modules again

import pytest
from hypothesis import HealthCheck, settings

# numba makes many objects that live long; to look through all of them as often as Python does by itself takes a tenth
# of the time that it takes to compile a kernel.
gc.set_threshold(50_000, 20, 10)

settings.register_profile("settled", max_examples=30, deadline=None, derandomize=True, print_blob=True)
settings.register_profile(
    "explore",
    deadline=None,
    max_examples=int(os.environ.get("EXAMPLES", "400")),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "settled"))


SKIPS = (  # words of the reasons for which a run may leave a test out; any other fails the run
    *("no browser", "CUDA", "GPU", "not installed", "could not import", "no C compiler", "fused operations"),
    *("ODELAB_PUBLIC_WEIGHTS", "resnet20", "CIFAR-10", "test_batch.png"),
    *(
        "this user",
        "this system",
        "rights of files",
        "owners of files",
        "forked",
        "limit on the size",
        "glibc",
        "POSIX",
    ),
)
skipped: list[str] = []


def pytest_addoption(parser):
    parser.addoption("--reversed", action="store_true", help="run the tests in reversed order")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--reversed"):
        items.reverse()


def pytest_runtest_logreport(report):
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = str(report.longrepr[2])
        if not any(known in reason for known in SKIPS):
            skipped.append(f"{report.nodeid}: {reason}")


def pytest_sessionfinish(session, exitstatus):
    """A test that is left out for a reason that nobody expected fails the run, which would hide it otherwise."""
    if skipped and not hasattr(session.config, "workerinput"):
        print("\nLeft out for a reason that tests/conftest.py does not know:", *skipped, sep="\n  ")
        session.exitstatus = 1


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_is_heard():
    """Restore the handler of Ctrl-C, which a shell switches off for programs it starts in the background."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
