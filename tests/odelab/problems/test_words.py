"""Every factory of the catalogue explains its parameters and shows an example that runs."""

import doctest
import inspect
import warnings

import pytest

from odelab import problems

FACTORIES = {name: value for name, value in vars(problems).items() if inspect.isfunction(value)}
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", FACTORIES)
def test_parameters_are_explained_and_the_example_is_true(name):
    text = inspect.getdoc(FACTORIES[name])
    for parameter in inspect.signature(FACTORIES[name]).parameters:
        assert f"\n{parameter}  " in text, f"{name}: no entry for {parameter}"
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert test.examples
    told = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        doctest.DocTestRunner(optionflags=OPTIONS, verbose=False).run(test, out=told.append)
    assert not told, "".join(told)
