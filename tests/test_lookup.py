"""What the site's pages to look up say is what the code says: names, problems, command lines, words, files."""

import doctest
import inspect
import re
from pathlib import Path

import pytest

import odelab as ol
from docs.site import catalogue, commands, reference
from docs.site.entries import parts
from docs.site.rst import PACKAGES, escaped, public_names
from netbridge.tracing.explain import WHY
from odelab.plot.along_a_run import REASONS
from odelab.status import Status
from studies.__main__ import names as studies
from studies.lab.verdicts import KINDS

DOCS = Path(__file__).parent.parent / "docs"
NAMES = {f"{package}.{name}": value for package in PACKAGES for name, value in public_names(package).items()}
VALUES = [name for name, value in NAMES.items() if not (inspect.isroutine(value) or inspect.isclass(value))]
DIRECTIVE = re.compile(r"^\.\. (?:auto\w+|py:data):: (\S+)$", re.MULTILINE)


def test_text_is_text_and_names_are_links():
    assert escaped("|u|, *args and H_") == r"\|u\|, \*args and H\_"
    assert escaped("H. Robertson") == r"\H. Robertson"
    assert escaped("see `ol.solve(problem)`, `x`") == "see :py:obj:`ol.solve(problem) <odelab.solve>`, ``x``"
    assert escaped("`ol.Event`s") == r":py:obj:`ol.Event <odelab.Event>`\ s"
    assert escaped("an hour with --no-train, `--train`") == "an hour with ``--no-train``, ``--train``"


@pytest.fixture(scope="module")
def problem_pages(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalogue, "measured", lambda *_: {"said": "", "row": ("", "", ""), "pictures": []})
        return catalogue.pages(tmp_path_factory.mktemp("problems"))


def test_every_public_name_is_on_exactly_one_page(problem_pages):
    texts = [*reference.pages().values(), *problem_pages.values()]
    on_pages = [name for text in texts for name in DIRECTIVE.findall(text)]
    assert sorted(on_pages) == sorted(NAMES)
    assert len(NAMES) >= 150


@pytest.mark.parametrize("package", ["odelab", "netbridge"])
def test_a_package_has_no_name_outside_of_its_groups(package):
    assert "more" not in reference.groups(package)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_site_finds_the_parameters_of_every_public_function(package):
    for name, value in public_names(package).items():
        if inspect.isfunction(value):
            sections = [body for kind, body in parts(inspect.getdoc(value) or "") if kind == "entries"]
            listed = {one.strip("*") for body in sections for names, _ in body for one in names}
            assert {one for one in inspect.signature(value).parameters if not one.startswith("_")} <= listed, name


@pytest.mark.parametrize("name", VALUES)
def test_what_is_no_function_has_a_source_and_an_example_that_is_true(name):
    package, _, last = name.rpartition(".")
    text = "\n".join(reference.entry(package, last))
    assert re.search(r"Source: ``(.*)``", text)
    assert (DOCS.parent / re.search(r"Source: ``(.*)``", text)[1]).is_file()
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert test.examples
    told = []
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(optionflags=options, verbose=False).run(test, out=told.append)
    assert not told, "".join(told)


def test_every_problem_has_its_size_source_and_right_hand_side(problem_pages):
    text = "\n".join(problem_pages.values())
    for name, factory in {**ol.problems.catalogue(), **ol.problems.daes()}.items():
        _, said = text.split(f".. _problem-{name}:")
        said = said.split(".. _problem-")[0]
        assert f"{factory().size}, in " in said
        assert "- source" in said
        assert ".. code-block:: python" in said or name == "pleiades", name


@pytest.mark.slow
def test_what_is_said_of_stiffness_is_what_the_doctor_says(tmp_path):
    problem = ol.problems.stiff_linear()
    found = catalogue.measured("stiff_linear", problem, "text", tmp_path)
    assert found["said"].startswith("Stiff at rtol = 1e-06")
    assert found["row"] == ["stiff", "14", "99 %"]
    assert (tmp_path / "stiff_linear-1.png").stat().st_size > 1000
    (tmp_path / "stiff_linear-1.png").unlink()
    assert catalogue.measured("stiff_linear", problem, "text", tmp_path) == found
    assert not (tmp_path / "stiff_linear-1.png").is_file()  # it is drawn anew where the text has changed


def test_every_command_is_on_exactly_one_page():
    listed = [name for members in commands.listed().values() for name in members]
    assert sorted(listed) == sorted(commands.commands())
    assert {f"studies.{name}" for name in studies()} < set(listed)


@pytest.mark.slow
def test_every_option_of_every_command_is_explained():
    for name in commands.commands():
        parser, doc = commands.parser_of(name)
        assert doc
        for action in parser._actions:
            assert action.help, (name, action.dest)


def test_an_option_is_written_as_its_help_writes_it():
    text = "\n".join(commands.entry("odelab")[0])
    assert "``python -m odelab [OPTIONS] problem``" in text
    assert ".. option:: --rtol RTOL\n\n   the relative tolerance; 1e-6" in text


def words(page: str, heading: str) -> list[str]:
    """The first cells of the table below a heading."""
    section = (DOCS / page).read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| ")][1:]


def test_the_page_of_status_words_has_every_word_and_no_other():
    inside = {Status.SINGULAR, Status.RAISED}  # never the end of a run
    ends = {status.word for status in Status if status not in inside} | {"solver_failed"}
    assert {word.strip("`") for word in words("status.md", "How a run ended")} == ends
    assert {word.strip("`") for word in words("status.md", "What limited a step")} == set(REASONS)
    named = words("status.md", "Warnings and errors with a name")
    errors = {name for name, value in NAMES.items() if inspect.isclass(value) and issubclass(value, BaseException)}
    assert {word.strip("`").split(".")[-1] for word in named} == {name.split(".")[-1] for name in errors}
    said = set(words("status.md", "Why a factor counts as a step size, or does not"))
    assert said == {word for word in WHY.values() if word} | {"number", "parameter", "not computed from the images"}
    assert words("status.md", "The verdict on a claim") == [kind.kind for kind in KINDS]


def test_the_page_of_formats_has_the_numbers_of_statuses():
    said = " ".join((DOCS / "formats.md").read_text().split("`codes` are")[1].split("[Status")[0].split())
    shown = {int(number): word for number, word in re.findall(r"(\d+) `(\w+)`", said)}
    assert shown == {int(one): one.word for one in Status if one not in (Status.SINGULAR, Status.RAISED)}
