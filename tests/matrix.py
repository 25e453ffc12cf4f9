"""odelab alone under other Pythons and with the oldest packages it allows: `python -m tests.matrix`, `make matrix`.

Each row has an environment of its own in build/matrix, without torch; a Python that is not on this machine is left out
with a word. What is there already is not made again, and a row that has passed is not run again before something
changes. Ends with 1 if any test failed.
"""

import argparse
import dataclasses
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "matrix"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TOOLS = ("hypothesis", "pytest", "pytest-timeout")
TESTS = (  # what asks something of each package, in minutes
    "tests/odelab/methods",
    "tests/odelab/control",
    "tests/odelab/test_problem.py",
    "tests/odelab/test_saved.py",
    "tests/odelab/graph/test_llvm.py",
    "tests/odelab/kernels/loops/test_single.py",
    "tests/odelab/linear/test_solvers.py",
    "tests/odelab/engines/lanes/test_ensemble_calls.py",
    "tests/odelab/engines/numba/test_fingerprint.py",
    "tests/odelab/engines/test_scipys_solvers.py",
    "tests/odelab/runs/test_dense.py",
)


@dataclasses.dataclass(frozen=True)
class Row:
    """A Python and the packages beside it, "oldest" or "newest"."""

    python: str
    packages: str

    @property
    def name(self) -> str:
        return f"{self.python}-{self.packages}"

    @property
    def requirements(self) -> list[str]:
        """What is installed: what odelab needs, and the tools of the tests."""
        needs = PROJECT["dependencies"]
        return [*(oldest(need) if self.packages == "oldest" else need for need in needs), *TOOLS]


ROWS = tuple(
    Row(*one.split("-")) for one in ("3.11-oldest", "3.12-oldest", "3.12-newest", "3.13-newest", "3.14-newest")
)


def oldest(requirement: str) -> str:
    """A requirement that admits the oldest version alone."""
    return requirement.replace(">=", "==")


def interpreter(version: str) -> str | None:
    """A Python of this version: on the path, or one of pyenv's."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    kept = sorted(root.glob(f"versions/{version}.*/bin/python"))
    for path in (*map(str, reversed(kept)), shutil.which(f"python{version}")):
        if path and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
            return path
    return None


def environment(row: Row, python: str) -> Path:
    """The Python of the row's environment, which is made where it is not whole."""
    folder, wanted = PLACE / row.name, "\n".join([python, *row.requirements])
    ready = folder / "ready"
    if not ready.is_file() or ready.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([python, "-m", "venv", folder], check=True)
        install = [folder / "bin" / "python", "-m", "pip", "install", "-qq", "--only-binary", ":all:"]
        subprocess.run([*install, *row.requirements], check=True)
        ready.write_text(wanted)
    return folder / "bin" / "python"


def state() -> str:
    """A digest of everything that the tests depend on."""
    digest = hashlib.sha256("\n".join(TESTS).encode())
    for path in sorted([*ROOT.glob("odelab/**/*.py"), *ROOT.glob("tests/odelab/**/*.py"), ROOT / "pyproject.toml"]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def run(row: Row, python: Path) -> tuple[int, int, str]:
    """(tests passed, tests failed, what pytest printed) in a row's environment."""
    command = [python, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--no-header", "-rf", *TESTS]
    kept = {"PYTHONPATH": str(ROOT), "ODELAB_CACHE": str(PLACE / row.name / "kernels")}
    done = subprocess.run(command, cwd=ROOT, env=os.environ | kept, capture_output=True, text=True)
    counts = {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout)}
    failed = counts.get("failed", 0) + counts.get("error", 0)
    return counts.get("passed", 0), failed or int(done.returncode != 0), done.stdout[-4000:] + done.stderr[-2000:]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(row.name for row in ROWS)} (all)")
    asked = parser.parse_args(arguments).rows
    if unknown := set(asked) - {row.name for row in ROWS}:
        parser.error(f"no row {', '.join(sorted(unknown))}; there are {', '.join(row.name for row in ROWS)}.")
    failed, now = 0, state()
    for row in ROWS:
        if asked and row.name not in asked:
            continue
        passed = PLACE / row.name / "passed"
        python = interpreter(row.python)
        if python is None:
            print(f"{row.name}  left out: no Python {row.python} is installed here", flush=True)
            continue
        inside, start = environment(row, python), time.monotonic()
        if passed.is_file() and passed.read_text() == now:
            print(f"{row.name}  passed before, and nothing has changed", flush=True)
            continue
        right, wrong, words = run(row, inside)
        failed += wrong
        print(f"{row.name}  {right} passed, {wrong} failed, {time.monotonic() - start:.0f} s", flush=True)
        if wrong:
            print(words, flush=True)
        else:
            passed.write_text(now)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
