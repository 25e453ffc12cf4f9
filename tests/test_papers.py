"""docs/papers.md links to tests; a link must lead somewhere."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"`(tests/[\w/]+\.py)?::([\w:]+)`")


def linked_tests(text):
    """(file, test or class::test) of every link; `::name` alone continues in the file of the link before it."""
    file = ""
    for match in LINK.finditer(text):
        file = match[1] or file
        yield file, match[2]


def test_every_link_of_the_papers_page_leads_to_a_test():
    links = list(linked_tests((ROOT / "docs" / "papers.md").read_text()))
    assert len(links) > 30
    for file, name in links:
        body = ast.parse((ROOT / file).read_text()).body
        for part in name.split("::"):
            found = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == part]
            assert found, f"{file}::{name}"
            body = found[0].body
