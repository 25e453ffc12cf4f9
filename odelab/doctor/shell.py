"""What a command line names as FILE.py:NAME: a value that the file defines, or what a function of it returns."""

import runpy
from pathlib import Path
from typing import Any


def value_of(text: str, kind: type, plural: str) -> Any:
    """The value that FILE.py:NAME is, or that it returns where it is a function.

    text    FILE.py:NAME; the file is run
    kind    the class that the value must be of
    plural  what values of this class are called, for the message that lists those of the file

    Raises ValueError where there is no such file, name or value.
    """
    file, _, name = text.rpartition(":")
    if not Path(file).is_file():
        raise ValueError(f"there is no file {file!r}")
    defined = runpy.run_path(file)
    if name not in defined:
        known = [key for key, value in defined.items() if isinstance(value, kind)]
        raise ValueError(f"{file} has no {name!r}; its {plural} are: {', '.join(known) or 'none'}")
    value = defined[name]
    value = value if isinstance(value, kind) or not callable(value) else value()
    if not isinstance(value, kind):
        module = kind.__module__.partition(".")[0]
        raise ValueError(f"{name} of {file} is no {module}.{kind.__name__}, but {type(value).__name__}")
    return value
