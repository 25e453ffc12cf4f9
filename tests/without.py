"""A plugin of pytest that leaves packages out, as if they were not installed: what is tested then does without them.

    WITHOUT=numba,torch python -m pytest -p tests.without tests/odelab

Programs that tests start leave them out, too, if they begin with `import tests.without`. Tests that cannot do without
numba are marked `needs_numba`.
"""

import importlib.machinery
import importlib.util
import os
import sys

import pytest

LEFT_OUT = frozenset(filter(None, os.environ.get("WITHOUT", "").split(",")))


class Others(importlib.machinery.PathFinder):
    """Finds all modules on the path but those that are left out."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] in LEFT_OUT else super().find_spec(name, path, target)


if LEFT_OUT:
    sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = Others

needs_numba = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed")
