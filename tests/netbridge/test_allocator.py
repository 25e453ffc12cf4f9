"""The allocator's settings: asked for, they are set, and nothing is set unasked. In processes of their own."""

import ctypes
import logging
import os
import subprocess
import sys

import pytest

import netbridge as nb
from netbridge import allocator

GLIBC = hasattr(ctypes.CDLL(None), "gnu_get_libc_version")

# A block of 64 MB is a mapping of its own, hence far from the heap's end, unless malloc was told otherwise.
PROBE = """
import ctypes
import netbridge as nb
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.sbrk.restype = ctypes.c_void_p
{call}
block = libc.malloc(ctypes.c_size_t(64 << 20))
print(0 <= libc.sbrk(ctypes.c_long(0)) - block < 1 << 32)
"""


@pytest.mark.slow
@pytest.mark.skipif(not GLIBC, reason="glibc only")
@pytest.mark.parametrize(("call", "on_the_heap"), [("", False), ("assert nb.tune_allocator() is True", True)])
def test_settings_take_effect_when_asked_for(call, on_the_heap):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for name in [name for name in environment if name.startswith("MALLOC_")]:
        del environment[name]
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(call=call)], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.strip() == str(on_the_heap)


def test_elsewhere_nothing_happens_and_a_word_is_said(monkeypatch, caplog):
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda name: object())
    with caplog.at_level(logging.WARNING, "netbridge"):
        assert nb.tune_allocator() is False
    assert "not glibc; nothing changed" in caplog.text
