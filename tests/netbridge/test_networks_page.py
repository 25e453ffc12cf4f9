"""docs/networks.md: its code runs as it stands, one block after the other."""

import re
import warnings
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent.parent / "docs" / "networks.md"


@pytest.mark.slow
def test_the_page_runs():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile("\n".join(blocks), PAGE.name, "exec"), {"__name__": "page"})
