"""The tests that depend on the processor, on emulated ones: `python -m tests.machines [SETTING ...]`, `make machines`.

Libraries choose code by the processor they find, and environment variables make them choose as on another one. A
setting is first checked to act, and left out with a word where it cannot here; then the tests run that can depend on
it. No variable emulates ARM, macOS or Windows. Ends with 1 if any test failed, and with a line that counts the tests.
"""

import argparse
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ARITHMETIC = (  # what adds and multiplies in NumPy, SciPy and OpenBLAS
    "tests/odelab/methods",
    "tests/odelab/problems/test_problem_references.py",
    "tests/odelab/linear",
    "tests/odelab/stiffness/test_spectrum.py",
    "tests/odelab/stiffness/test_theorem2.py",
    "tests/odelab/test_accuracy.py",
)
KERNELS = (  # what numba and LLVM compile
    "tests/netbridge/recording/test_norms.py",
    "tests/odelab/control/test_powers.py",
    "tests/odelab/graph/test_llvm.py",
    "tests/odelab/kernels",
    "tests/odelab/engines/large",
    "tests/odelab/engines/lanes/test_ensemble.py",
)
NETWORKS = (  # what torch computes
    "tests/netbridge/tracing",
    "tests/netbridge/surgery/test_merge.py",
    "tests/netbridge/spectrum/test_block_spectrum.py",
)
FILES = (  # what reads and writes files
    "tests/odelab/engines/numba/test_cache.py",
    "tests/netbridge/test_checkpoint.py",
    "tests/studies/lab",
    "tests/odelab/plot",
)
WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")  # of Linux's util-linux


@dataclasses.dataclass(frozen=True)
class Setting:
    """A machine to emulate.

    name         what the command line calls it
    tests        files and folders whose tests can depend on it
    environment  variables that emulate it
    check        a Python expression that is true where the variables act; "" where there is nothing to check
    needs        a word of /proc/cpuinfo that the processor must have; "" for none
    options      more options of pytest
    plain        without the rights of root, which reads and writes everybody's files
    cores        how many processors the tests may use; None for all
    """

    name: str
    tests: tuple[str, ...]
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    check: str = ""
    needs: str = ""
    options: tuple[str, ...] = ()
    plain: bool = False
    cores: int | None = None


def blas(kernels: str) -> str:
    """An expression: does OpenBLAS use these kernels?"""
    called = {"SkylakeX": "skylakex", "Haswell": "haswell", "Prescott": "katmai prescott core2"}[kernels]
    return (
        "(lambda found: any(str(one['architecture']).lower() in " + repr(called) + " for one in found))"
        "([one for one in __import__('threadpoolctl').threadpool_info() if one['internal_api'] == 'openblas'])"
    )


def dispatched() -> str:
    """The names of the processor's features that NumPy has code for, as NPY_DISABLE_CPU_FEATURES takes them."""
    asked = (
        "from numpy._core._multiarray_umath import __cpu_features__ as f, __cpu_dispatch__ as d; "
        "print(*(name for name in d if f.get(name)))"
    )
    return subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout.strip()


def settings() -> list[Setting]:
    """All machines, in the order in which they are tried."""
    features = dispatched()
    found = "__import__('numpy')._core._multiarray_umath.__cpu_features__"
    switched_off = f"not any({found}[name] for name in {features!r}.split())"
    generic = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "ODELAB_PROCESSOR": "x86-64"}
    return [
        Setting("blas-avx512", ARITHMETIC, {"OPENBLAS_CORETYPE": "SkylakeX"}, blas("SkylakeX"), needs="avx512f"),
        Setting("blas-avx2", ARITHMETIC, {"OPENBLAS_CORETYPE": "Haswell"}, blas("Haswell"), needs="avx2"),
        Setting("blas-sse", ARITHMETIC, {"OPENBLAS_CORETYPE": "Prescott"}, blas("Prescott")),
        Setting("numpy-baseline", ARITHMETIC[:2], {"NPY_DISABLE_CPU_FEATURES": features}, switched_off),
        Setting("numba-generic", KERNELS, generic, "__import__('numba').config.CPU_NAME == 'generic'"),
        Setting(
            "torch-baseline",
            NETWORKS,
            {"ATEN_CPU_CAPABILITY": "default"},
            "__import__('torch').backends.cpu.get_cpu_capability() in ('DEFAULT', 'NO AVX')",
        ),
        Setting(
            "torch-avx2",
            NETWORKS[1:],
            {"ATEN_CPU_CAPABILITY": "avx2"},
            "__import__('torch').backends.cpu.get_cpu_capability() == 'AVX2'",
            needs="avx2",
        ),
        Setting("one-core", ("tests/odelab/engines/lanes",), options=("-n", "0"), cores=1),
        Setting("reversed", ("tests/odelab/control", "tests/netbridge/model"), options=("-n", "0", "--reversed")),
        Setting("blanks", FILES, {"TMPDIR": "a folder with blanks"}),
        Setting("no-home", FILES[:2], {"HOME": "/proc/nowhere", "XDG_CACHE_HOME": "/proc/nowhere"}),
        Setting("plain-user", (FILES[0], "tests/odelab/engines/numba/test_cache_processes.py"), plain=True),
    ]


def why_not(setting: Setting, environment: dict[str, str]) -> str:
    """Why a setting cannot be tried on this machine; "" where it can."""
    if setting.needs and setting.needs not in Path("/proc/cpuinfo").read_text().split():
        return f"this processor has no {setting.needs}"
    if setting.plain and os.geteuid() != 0:
        return "this user has no more rights than others, so every run is of this kind"
    if setting.plain and shutil.which(WITHOUT_RIGHTS[0]) is None:
        return f"{WITHOUT_RIGHTS[0]} is not installed"
    if setting.check:
        done = subprocess.run(
            [sys.executable, "-c", f"import numpy, scipy.linalg; print(bool({setting.check}))"],
            env=environment,
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
        if done.stdout.split()[-1:] != ["True"]:
            return f"the variables do not act here ({done.stdout.strip() or done.stderr.strip().splitlines()[-1:]})"
    return ""


def run(setting: Setting, folder: Path, processes: int) -> tuple[int, int, str]:
    """(tests passed, tests failed, what pytest printed) on one emulated machine."""
    environment = dict(os.environ) | setting.environment
    if "TMPDIR" in setting.environment:
        place = folder / setting.environment["TMPDIR"]
        place.mkdir()
        environment["TMPDIR"] = str(place)
    if "NUMBA_CPU_NAME" in setting.environment:  # kernels for another processor stay out of the user's cache
        environment["ODELAB_CACHE"] = str(folder / setting.name)
    if reason := why_not(setting, environment):
        return 0, 0, f"left out: {reason}"
    command = [
        *(WITHOUT_RIGHTS if setting.plain else ()),
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-m",
        "not slow",
        "-p",
        "no:cacheprovider",
        "--no-header",
        "-rf",
    ]
    command += [*(setting.options or ("-n", str(processes), "--dist", "worksteal")), *setting.tests]
    allowed = sorted(os.sched_getaffinity(0))[: setting.cores]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, allowed),
    )
    counts = {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout)}
    failed = counts.get("failed", 0) + counts.get("error", 0)
    words = done.stdout[-4000:] + done.stderr[-2000:]
    return counts.get("passed", 0), failed or int(done.returncode != 0), words


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.machines", description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=2, help="test processes side by side (2)")
    parser.add_argument("settings", nargs="*", help="names of settings (all)")
    options = parser.parse_args(arguments)
    known = settings()
    if unknown := set(options.settings) - {one.name for one in known}:
        print(f"no setting {', '.join(sorted(unknown))}; there are {', '.join(one.name for one in known)}.")
        return 2
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for setting in known:
            if options.settings and setting.name not in options.settings:
                continue
            start = time.monotonic()
            right, wrong, words = run(setting, Path(folder), options.processes)
            passed, failed = passed + right, failed + wrong
            told = words if words.startswith("left out") else f"{right} passed, {wrong} failed"
            print(f"{setting.name.ljust(16)} {told}, {time.monotonic() - start:.0f} s", flush=True)
            if wrong:
                print(words, flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
