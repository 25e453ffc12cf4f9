"""Pages whose code runs: every block prints what stands below it, and how that is compared and written."""

import json
import re

import pytest

from docs import snippets
from docs.site.__main__ import DOCS, pages
from netbridge.step_sizes.base import REGISTRY

FOLDERS = ("learn", "howto", "explain", "coming_from")
RUN = [
    page
    for page in pages()
    if "```python" in page.read_text() and (page.parent.name in FOLDERS or page.stem in ("faq", "formats"))
]
SLOW = (
    "controller",
    "study",
    "choose_a_method",
    "formats",
    "fold_and_export",
    "go_on_after_an_interruption",
    "spectrum_of_a_block",
)


@pytest.fixture
def registered():
    """A page finds the controllers of netbridge alone, as in a fresh process, and leaves none of its own."""
    known = dict(REGISTRY)
    for name, controller in known.items():
        if not controller.__module__.startswith("netbridge."):
            del REGISTRY[name]
    yield
    REGISTRY.clear()
    REGISTRY.update(known)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=pytest.mark.slow if p.stem in SLOW else ()) for p in RUN],
    ids=lambda page: f"{page.parent.name}-{page.stem}",
)  # fmt: skip
def test_a_page_prints_what_it_says(page):
    for snippet in snippets.run(page):
        assert snippet.as_said, f"printed:\n{snippet.printed}\nthe page says:\n{snippet.expected}"


def test_there_are_six_tutorials_eighteen_recipes_and_eight_explanations():
    counts = {name: len([*(DOCS / name).glob("*.md")]) - 1 for name in ("learn", "howto")}
    assert counts == {"learn": 6, "howto": 18}
    assert len(re.findall(r"^- \[", (DOCS / "explain" / "index.md").read_text(), re.MULTILINE)) == 8


@pytest.mark.parametrize("page", [p for p in RUN if p.parent.name == "howto"], ids=lambda page: page.stem)
def test_a_recipe_is_one_task_and_one_block(page):
    text = page.read_text()
    assert text.count("```python") == 1
    assert len(text.splitlines()) <= 45
    assert f"({page.name})" in (DOCS / "howto" / "index.md").read_text()


def test_what_needs_torch_says_so():
    """Recipes on equations, and tutorials before the fourth, run where odelab is installed alone."""
    needs = re.compile(r"^ *(?:import|from) (?:torch|netbridge|studies)", re.MULTILINE)
    equations = (DOCS / "howto" / "index.md").read_text().split("## Networks")[0]
    entries = re.findall(r"^- .*\((\w+\.md)\).*$", equations, re.MULTILINE)
    lines = [line for line in equations.splitlines() if line.startswith("- [")]
    for name, line in zip(entries, lines, strict=True):
        assert bool(needs.search((DOCS / "howto" / name).read_text())) == ("torch" in line), name
    tutorials = re.findall(r"^\d\. \[.*\]\((\w+\.md)\)", (DOCS / "learn" / "index.md").read_text(), re.MULTILINE)
    assert [bool(needs.search((DOCS / "learn" / name).read_text())) for name in tutorials] == [False] * 3 + [True] * 3


def test_numbers_are_compared_to_the_digits_that_are_shown():
    assert snippets.alike("about 3.14 in 1,801 steps", "about 3.15 in 1,801 steps")
    assert not snippets.alike("about 3.14", "about 3.18")
    assert snippets.alike("3035 steps", "3040 steps")
    assert not snippets.alike("3035 steps", "3075 steps")
    assert not snippets.alike("(16, 6)", "(17, 6)")
    assert not snippets.alike("1 step", "1 steps")
    assert snippets.alike("2.5e-6", "2.6e-06")
    assert not snippets.alike("2.5e-6", "2.5e-7")
    assert snippets.alike("a  b\nc", "a b c")


def test_loose_numbers_may_differ_by_half_of_themselves():
    assert snippets.alike("90 %", "60 %", loose=True)
    assert not snippets.alike("90 %", "40 %", loose=True)
    assert not snippets.alike("90 % right", "90 % wrong", loose=True)


PAGE = """# Title

```python
x = 1
print(x, 2.0)
```

```text
1 3.0
```

Words.

```python
print("no output shown")
```
"""


def test_what_a_page_says_is_written_anew_where_it_is_wrong(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    assert [snippet.as_said for snippet in snippets.run(path)] == [False, True]
    snippets.main([str(path)])
    assert path.read_text() == PAGE.replace("1 3.0", "1 2.0")
    snippets.main([str(path), "--add"])
    assert path.read_text().endswith("```\n\n```text\nno output shown\n```\n")
    before = path.read_text()
    snippets.main([str(path), "--add"])
    assert path.read_text() == before


def test_a_page_becomes_a_notebook_with_its_outputs(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(PAGE + "\n```python\nimport odelab as ol\n\nol.spectrum([[-1.0]]).plot()\n```\n")
    ran = list(snippets.run(path))
    cells = json.loads(snippets.notebook(path.read_text(), ran))["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "markdown", "code", "code"]
    assert cells[1]["outputs"][0]["text"] == "1 2.0\n"
    assert "image/png" in cells[-1]["outputs"][0]["data"]
    assert ran[-1].picture.startswith(b"\x89PNG")


def test_lines_are_those_of_a_file_into_which_the_page_is_copied(tmp_path):
    path = tmp_path / "page.md"
    first, second = "def first():\n    pass\n", "import inspect\n\n\ndef second():\n    pass\n"
    shown = "print(second.__code__.co_firstlineno, inspect.getsource(first), inspect.getsource(second))\n"
    path.write_text(f"```python\n{first}```\n\n```python\n{second}{shown}```\n")
    (_, snippet) = snippets.run(path)
    assert snippet.printed.split("\n") == ["6 def first():", "    pass", " def second():", "    pass", "", ""]


def test_a_warning_in_a_page_is_an_error(tmp_path):
    path = tmp_path / "page.md"
    path.write_text('```python\nimport warnings\n\nwarnings.warn("old")\n```\n')
    with pytest.raises(UserWarning, match="old"):
        list(snippets.run(path))
