"""Imports every module of some packages first and alone; `tests.test_imports` runs this file and reads what it prints.

A fresh interpreter for each module would load torch hundreds of times. So one process loads the libraries, and every
module is imported in a fork of that process. Of our own code, a fork holds only what Python itself loads ahead of that
module in a fresh interpreter: the packages in which the module lies. A module that its package has loaded by itself
needs no fork.

Run as `python -P tests/import_each.py LIBRARY,... PACKAGE LIBRARY,... PACKAGE ...` with the packages' folder in
PYTHONPATH, each package behind those that it imports, and behind the libraries that take long, "" for none: a fork of a
process without torch takes half the time. `import odelab` is done once ahead of all forks for the packages behind it,
which saves most of the time. It changes nothing, because Python runs `odelab/__init__.py` to its end before any module
of odelab.

For every module a line of JSON is printed: its name, and the traceback of its failure, "" where there is none.
"""

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import sys
import traceback


def report(name: str, failure: str) -> None:
    """Print a line at once, since a fork ends without emptying its buffers."""
    os.write(sys.stdout.fileno(), (json.dumps([name, failure]) + "\n").encode())


def visit(name: str) -> None:
    """Import a module here, then each module within it in a fork of its own."""
    try:
        module = importlib.import_module(name)
    except BaseException:  # a module that ends the program cannot be imported either
        report(name, traceback.format_exc())
        return
    report(name, "")
    for inner in pkgutil.iter_modules(getattr(module, "__path__", ())):
        inner_name = f"{name}.{inner.name}"
        visit(inner_name) if inner_name in sys.modules else visit_in_a_fork(inner_name)


def visit_in_a_fork(name: str) -> None:
    process = os.fork()
    if process == 0:
        try:
            visit(name)
        finally:
            os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if status:
        report(name, f"The process that imported it ended with code {status}.\n")


def main(libraries: list[str], packages: list[str]) -> None:
    gc.disable()  # a collection would touch, and so copy, the memory that forks share
    for number, package in enumerate(packages):
        for library in filter(None, libraries[number].split(",")):
            importlib.import_module(library)
        visit_in_a_fork(package)
        with contextlib.suppress(BaseException):  # the fork has reported it
            importlib.import_module(package)
        for later in packages[number + 1 :]:
            if later in sys.modules:
                report(package, f"ImportError: it imports {later}, which must not be known to it.\n")


if __name__ == "__main__":
    main(sys.argv[1::2], sys.argv[2::2])
