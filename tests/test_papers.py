"""docs/papers.md links to tests; a link must lead somewhere."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"`(tests/[\w/]+\.py)?::(\w+)`")


def linked_tests(text):
    """(file, test) of every link; `::name` alone continues in the file of the link before it."""
    file = ""
    for match in LINK.finditer(text):
        file = match[1] or file
        yield file, match[2]


def test_every_link_of_the_papers_page_leads_to_a_test():
    links = list(linked_tests((ROOT / "docs" / "papers.md").read_text()))
    assert len(links) > 30
    for file, name in links:
        tree = ast.parse((ROOT / file).read_text())
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{file}::{name}"
