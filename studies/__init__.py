"""The papers' experiments: `python -m studies` lists them, `python -m studies.NAME` runs one.

A small study is one file; a large one is a package whose `__main__.py` tells the story in order. What several studies
share is in `studies/lab`. No formula stands here: studies call `odelab` and `netbridge`, draw, and write down what
came out.
"""

import importlib.util
import os

missing = [
    one for one in ("docstring_parser", "jinja2", "matplotlib", "rich", "tyro") if not importlib.util.find_spec(one)
]
if missing:
    raise ModuleNotFoundError(f"studies need {', '.join(missing)}: pip install 'odelab[studies]'", name=missing[0])

# Threads of OpenMP that have nothing to do sleep instead of spinning: a spinning thread takes the processor from the
# thread it waits for, which made studies many times slower while other programs ran. OpenMP reads these settings once,
# when torch is imported, so they are made here, before any study imports it. What the user has set is left alone.
for name, value in {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0", "GOMP_SPINCOUNT": "0"}.items():
    os.environ.setdefault(name, value)
del name, value, missing
