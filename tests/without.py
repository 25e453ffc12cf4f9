"""A plugin of pytest that leaves packages out, as if they were not installed: what is tested then does without them.

    WITHOUT=numba,torch python -m pytest -p tests.without tests/odelab

Programs that tests start leave them out, too: `leave_out` is the code that does it.
"""

import importlib.machinery
import os
import sys

LEFT_OUT = frozenset(filter(None, os.environ.get("WITHOUT", "").split(",")))


class Others(importlib.machinery.PathFinder):
    """Finds all modules on the path but those that are left out."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] in LEFT_OUT else super().find_spec(name, path, target)


if LEFT_OUT:
    sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = Others
