"""Networks and data sets that a user's own file defines, by their names.

A file given with `--define` may hold, beside classes of controllers, two dictionaries:

    NETWORKS = {"tiny": function}    function(classes) returns an untrained torch module that maps images to logits
    DATASETS = {"pets": function}    function(root) returns a data set; root is `--data-root` or None
"""

from collections.abc import Callable
from typing import Any

networks: dict[str, Callable[[int], Any]] = {}
datasets: dict[str, Callable[[Any], Any]] = {}


def take(module) -> None:
    """Remember what a module defines; a name that is there already is replaced."""
    for name, known in (("NETWORKS", networks), ("DATASETS", datasets)):
        found = getattr(module, name, {})
        if not (isinstance(found, dict) and all(callable(one) for one in found.values())):
            raise SystemExit(f"{module.__file__}: `{name}` must be a dictionary of functions by their names.")
        known |= found
