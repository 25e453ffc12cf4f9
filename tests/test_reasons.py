"""Whoever leaves a test out says why in words that tests/conftest.py knows, also on machines that leave out nothing."""

import ast
from pathlib import Path

from tests.conftest import SKIPS

TESTS = Path(__file__).parent


def reasons(path: Path):
    """The words of each reason that a file of tests gives: of `pytest.skip(...)` and of `skipif(..., reason=...)`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if ast.unparse(node.func) == "pytest.skip":
                yield ast.unparse(node.args[0])
            elif node.func.attr in ("skip", "skipif"):
                yield from (ast.unparse(word.value) for word in node.keywords if word.arg == "reason")


def test_reasons_are_known():
    written = {(path.name, reason) for path in TESTS.rglob("*.py") for reason in reasons(path)}
    unknown = [place for place in sorted(written) if not any(known in place[1] for known in SKIPS)]
    assert len(written) > 10
    assert unknown == [], "add the reason to SKIPS in tests/conftest.py if a run may leave the test out"
