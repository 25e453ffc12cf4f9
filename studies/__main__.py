"""`python -m studies` lists the studies by paper; --smoke runs each in its smallest size, --index writes one page."""

import ast
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = Path("results")
PAPERS = {  # the studies of every paper, in its order
    "Understanding Self-attention Mechanism via Dynamical System Perspective (2023)": (
        *("cifar_tns", "population", "tricks", "step_control", "trajectory", "transformer", "detect", "theorem2"),
        "three_body",
    ),
    "Block-level Stiffness Analysis of Residual Networks (ICLR 2023 submission)": ("block_stiffness", "stiff_euler"),
    "ASR: Attention-alike Structural Re-parameterization (2023)": ("asr",),
}
OWN = ("switching", "tns_at_work", "work_precision")
GROUPS = PAPERS | {
    "Questions of our own": OWN,
    "Tools": ("train", "table", "plan", "calibration", "prepare", "miniature"),
}


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


def index() -> int:
    """Write one page over all reports that are there."""
    from studies import _index  # here: it imports every study, and with them torch

    _index.write(RESULTS, PAPERS | {"Questions of our own": OWN})
    return 0


def print_list() -> int:
    """Every study with its headline, below its paper."""
    width = max(map(len, names()))
    for group, members in GROUPS.items():
        print(f"{group}\n")
        for name in members:
            print(f"  python -m studies.{name.ljust(width)}  {headline(name)}")
        print()
    print("Each has --help. --index writes one page over all reports in results/, --smoke tries every study.")
    return 0


def main() -> int:
    answers = {"": print_list, "--smoke": smoke, "--index": index}
    wanted = " ".join(sys.argv[1:])
    if wanted not in answers:
        print(
            f"python -m studies takes no argument but --smoke or --index, got {sys.argv[1:]}; "
            "run one with python -m studies.NAME --help"
        )
        return 2
    return answers[wanted]()


if __name__ == "__main__":
    sys.exit(main())
