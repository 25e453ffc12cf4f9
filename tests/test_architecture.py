"""The house is what its pages say: rooms are small, no name hides a module, and the tree of the docs is this one."""

import ast
import contextlib
import graphlib
import importlib
import io
import pkgutil
import types
from pathlib import Path

import pytest

import odelab as ol

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
PACKAGES = ("odelab", "netbridge", "studies", "benchmarks")
UNCOUNTED = {"problems", "step_sizes", "studies"}  # catalogues: one file an entry, as many as there are entries


def folders(package: str) -> list[Path]:
    return sorted(path.parent for path in (ROOT / package).rglob("__init__.py"))


def docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text())) or ""


def first_sentence(path: Path) -> str:
    text = docstring(path).split("\n\n")[0].replace("\n", " ")
    return text.rstrip(".")


def tree(package: str) -> str:
    """The folders and files of a package, each with the first sentence it says of itself."""
    lines = [f"{package}/"]
    for folder in folders(package):
        depth = len(folder.relative_to(ROOT).parts) - 1
        indent = "  " * (depth + 1)
        if depth:
            lines.append(f"{'  ' * depth}{folder.name + '/':<{30 - 2 * depth}}{first_sentence(folder / '__init__.py')}")
        if folder.name in UNCOUNTED:
            continue
        for file in sorted(folder.glob("*.py")):
            if file.name != "__init__.py":
                lines.append(f"{indent}{file.name:<{28 - 2 * depth}}{first_sentence(file)}")
    return "\n".join(lines)


@pytest.mark.parametrize("package", ["odelab", "netbridge"])
def test_the_page_shows_the_tree(package):
    """Written by `python -m tests.test_architecture`; a new file needs a first sentence, then this command."""
    assert tree(package) in PAGE.read_text(), "run: python -m tests.test_architecture"


def kernel() -> str:
    """An attempt on van der Pol's oscillator with Heun's method, as `ol.show_kernel` prints it."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        ol.show_kernel(ol.problems.van_der_pol(), ol.HEUN)
    text = printed.getvalue()
    return text[text.index("in the attempt") :].rstrip()


def machine_code() -> str:
    """The loop's body of a kernel for u' = -rate u with Euler's method, as IR: an attempt without its record."""
    problem = ol.Problem(lambda t, u, params: (-params[0] * u[0],), [1.0], (0.0, 1.0), (2.0,))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        ol.show_kernel(problem, ol.EULER, ol.fixed(0.1), ir=True)
    lines = printed.getvalue().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("br label"))
    last = next(i for i, line in enumerate(lines[first:], first) if line.startswith("store i64"))
    return "\n".join(lines[first : last + 3])


def test_the_page_shows_a_kernel_as_it_is():
    """Written by `python -m tests.test_architecture`."""
    for text in (kernel(), machine_code()):
        assert text in PAGE.read_text(), "run: python -m tests.test_architecture"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_says_what_lives_there_and_what_does_not(package):
    for folder in folders(package):
        text = docstring(folder / "__init__.py")
        assert text.count(".") >= 2, f"{folder.relative_to(ROOT)}/__init__.py needs two sentences"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_says_what_it_is(package):
    for file in (ROOT / package).rglob("*.py"):
        assert len(first_sentence(file)) > 10, f"{file.relative_to(ROOT)} has no docstring"


@pytest.mark.parametrize("package", PACKAGES)
def test_a_folder_holds_at_most_sixteen_modules(package):
    for folder in folders(package):
        if folder.name not in UNCOUNTED:
            count = len(list(folder.glob("*.py"))) - 1
            assert count <= 16, f"{folder.relative_to(ROOT)} has {count} modules"


@pytest.mark.parametrize("package", ["odelab", "netbridge"])
def test_no_public_name_hides_a_module(package):
    """`package.room` is a module whenever there is a file or folder `room`, whatever is exported."""
    for folder in folders(package):
        name = ".".join(folder.relative_to(ROOT).parts)
        module = importlib.import_module(name)
        for found in pkgutil.iter_modules([str(folder)]):
            importlib.import_module(f"{name}.{found.name}")
            assert isinstance(getattr(module, found.name), types.ModuleType), f"{name}.{found.name} is hidden"


def rooms_imported(package: str) -> dict[str, set[str]]:
    """For each room below a package the rooms from which it imports, inside functions as well."""
    rooms: dict[str, set[str]] = {}
    for file in (ROOT / package).rglob("*.py"):
        here = ".".join(file.parent.relative_to(ROOT).parts)
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and here != package:
                below = {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
                folders = {name for name in below if (ROOT / name.replace(".", "/")).is_dir()}
                there = folders or {node.module.rpartition(".")[0]}
                rooms.setdefault(here, set()).update(there - {here, package})
    return {room: {other for other in others if other.startswith(f"{package}.")} for room, others in rooms.items()}


@pytest.mark.parametrize("package", ["odelab", "netbridge"])
def test_rooms_import_each_other_in_no_circle(package):
    rooms = rooms_imported(package)
    assert len(rooms) > 10
    graphlib.TopologicalSorter(rooms).prepare()  # names the circle, where there is one


def written(page: str) -> str:
    """The page with its trees and its kernel brought up to date; each stands in a code block of its own."""
    for mark, text in (("```text\n", kernel()), ("```llvm\n", machine_code())):
        start = page.index(mark) + len(mark)
        page = page[:start] + text + page[page.index("\n```", start) :]
    for package in ("odelab", "netbridge"):
        start = page.index(f"```\n{package}/\n") + 4
        end = page.index("\n```", start)
        page = page[:start] + tree(package) + page[end:]
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
    print(f"{PAGE.relative_to(ROOT)} shows the tree as it is.")
