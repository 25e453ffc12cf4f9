"""`help(...)` is enough to work from: every public name explains its parameters and has an example that runs."""

import doctest
import inspect
import re
import types
import warnings

import pytest

import netbridge as nb
import odelab as ol

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
ENTRY = re.compile(r"^\s*((?:\*{0,2}`?\w+`?)(?:, \*{0,2}`?\w+`?)*)(?:\s{2,}\S|$)", re.MULTILINE)


def public_names():
    """(dotted name, object) of every function and class that the packages export."""
    for package in (ol, nb, ol.plot, ol.maths, nb.data, nb.train, nb.detect):
        for name, value in sorted(vars(package).items()):
            ours = getattr(value, "__module__", "") or ""
            if not name.startswith("_") and callable(value) and ours.startswith(("odelab", "netbridge")):
                yield f"{package.__name__}.{name}", value


NAMES = dict(public_names())


def parameters(value) -> list[str]:
    """The names a caller may pass; `self`, and what an exception takes, are nobody's choice."""
    if isinstance(value, type) and issubclass(value, BaseException):
        return []
    try:
        names = list(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return []
    return [name for name in names if not name.startswith("_")]


def explained(text: str) -> set[str]:
    """The names that an entry of a docstring begins with: `name   text`, or `a, b   text`."""
    found = set()
    for match in ENTRY.finditer(text):
        found |= {name.strip(" *`") for name in match[1].split(",")}
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_explained(name):
    value = NAMES[name]
    text = inspect.getdoc(value) or ""
    missing = [parameter for parameter in parameters(value) if parameter not in explained(text)]
    assert not missing, f"{name}: no entry for {', '.join(missing)}"


@pytest.mark.parametrize("name", NAMES)
def test_there_is_an_example(name):
    text = inspect.getdoc(NAMES[name]) or ""
    assert ">>> " in text, f"{name} has no example"


@pytest.mark.parametrize("name", NAMES)
def test_the_example_is_true(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    value = NAMES[name]
    if isinstance(value, types.FunctionType | type):
        finder = doctest.DocTestFinder(recurse=isinstance(value, type), exclude_empty=True)
        tests = [test for test in finder.find(value, name, module=False) if test.examples]
    else:  # an object that is called, such as a tableau
        parser = doctest.DocTestParser()
        tests = [parser.get_doctest(inspect.getdoc(value) or "", {}, name, None, 0)]
    for test in tests:
        test.globs.clear()
        told = []
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            doctest.DocTestRunner(optionflags=OPTIONS, verbose=False).run(test, out=told.append, clear_globs=True)
        assert not told, "".join(told)
