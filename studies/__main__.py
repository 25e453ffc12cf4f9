"""`python -m studies` lists the studies; `python -m studies --smoke` runs each of them in its smallest size."""

import ast
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent


def source_of(name: str) -> Path:
    """The file with a study's docstring: NAME.py, or NAME/__main__.py of a package."""
    return HERE / f"{name}.py" if (HERE / f"{name}.py").is_file() else HERE / name / "__main__.py"


def names() -> list[str]:
    files = (path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))
    return sorted([*files, *(path.parent.name for path in HERE.glob("*/__main__.py"))])


def headline(name: str) -> str:
    """The first line of a study's docstring: what it reproduces and how long it takes."""
    text = ast.get_docstring(ast.parse(source_of(name).read_text())) or ""
    return text.splitlines()[0] if text else ""


def smoke() -> int:
    """Run every study with --smoke; each must end well within ten seconds of work."""
    failed = []
    for name in names():
        with tempfile.TemporaryDirectory() as out:
            start = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-m", f"studies.{name}", "--smoke", "--out", out], capture_output=True, text=True
            )
            print(
                f"{name}: {'ok' if done.returncode == 0 else 'FAILED'} in {time.perf_counter() - start:.1f} s",
                flush=True,
            )
            if done.returncode != 0:
                failed.append(name)
                print(done.stdout[-2000:], done.stderr[-4000:], sep="\n")
    return 1 if failed else 0


def main() -> int:
    if sys.argv[1:] == ["--smoke"]:
        return smoke()
    if sys.argv[1:]:
        print(
            f"python -m studies takes no argument but --smoke, got {sys.argv[1:]}; "
            "run one with python -m studies.NAME --help"
        )
        return 2
    width = max(map(len, names()))
    for name in names():
        print(f"python -m studies.{name.ljust(width)}  {headline(name)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
