"""What runs elsewhere is what runs here: workflows name commands, rows and Pythons that there are; versions agree."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.matrix import ROWS, Row, oldest

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_yaml_with_jobs_that_end(path):
    yaml = pytest.importorskip("yaml")
    for job in yaml.safe_load(path.read_text())["jobs"].values():
        assert job["runs-on"]
        assert all(set(step) & {"uses", "run"} for step in job["steps"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_what_the_makefile_has(path):
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make (\w+)", path.read_text())) <= targets


def test_the_rows_of_the_workflow_are_those_of_the_matrix():
    rows = re.search(r"row: \[(.*)\]", (ROOT / ".github" / "workflows" / "tests.yml").read_text()).group(1)
    assert rows.split(", ") == [row.name for row in ROWS]


def test_every_python_that_is_promised_is_tried():
    """3.14 is tried, and not promised."""
    promised = {one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)}
    assert promised <= {row.python for row in ROWS}
    assert PROJECT["requires-python"] == f">={min(promised, key=lambda one: int(one.partition('.')[2]))}"


def test_the_oldest_versions_are_the_lower_bounds():
    assert oldest("numpy>=2.0") == "numpy==2.0"
    assert set(PROJECT["dependencies"]) <= set(Row("3.13", "newest").requirements)
    assert {one.replace(">=", "==") for one in PROJECT["dependencies"]} <= set(Row("3.11", "oldest").requirements)


def test_an_unknown_row_names_those_that_there_are():
    done = subprocess.run([sys.executable, "-m", "tests.matrix", "2.7"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "there are 3.11-oldest" in done.stderr
