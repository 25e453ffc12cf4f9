"""The machine class and the versions behind a table: enough to read its figures, nothing that names a machine."""

import datetime
import importlib.metadata
import os
import platform
import shutil
import subprocess
from pathlib import Path

VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2", "avx": "AVX", "asimd": "NEON"}
PACKAGES = (
    *("numpy", "scipy", "numba", "llvmlite", "torch", "torchdiffeq", "torchode", "jax", "diffrax", "numbalsoda"),
    *("scikit-sundae", "heyoka", "pydiffsol", "CyRK", "casadi"),
)


def processor() -> dict[str, str]:
    """Fields of the first processor in /proc/cpuinfo; empty where there is none."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return {}
    first = path.read_text().split("\n\n")[0]
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in first.splitlines())}


def cores() -> int:
    """Those this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def vectors(flags: str) -> str:
    """The widest vector unit named among the processor's flags."""
    present = set(flags.split())
    return next((name for flag, name in VECTORS.items() if flag in present), "no vector unit known")


def processor_name() -> str:
    """For example "AMD EPYC (family 26, model 2)"."""
    cpu = processor()
    name = cpu.get("model name") or platform.processor() or platform.machine()
    return f"{name} (family {cpu['cpu family']}, model {cpu.get('model', '?')})" if "cpu family" in cpu else name


def machine_class() -> str:
    """For example "AMD EPYC (family 26, model 2), 2 cores, AVX-512, Linux x86_64"."""
    cpu = processor()
    flags = cpu.get("flags") or cpu.get("Features") or ""
    return f"{processor_name()}, {cores()} cores, {vectors(flags)}, {platform.system()} {platform.machine()}"


def versions() -> dict[str, str]:
    """Python, compilers and packages; what is not installed is left out."""
    found = {"python": platform.python_version()}
    for compiler in ("gcc", "clang"):
        line = first_line(compiler)
        if line:
            found[compiler] = line.split()[-1] if compiler == "gcc" else line.partition("version ")[2].split()[0]
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def first_line(program: str) -> str:
    if shutil.which(program) is None:
        return ""
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[0] if done.returncode == 0 and done.stdout else ""


def load() -> float:
    """Processes wanting a core, averaged over a minute; above 0 before a benchmark starts, its figures are noisy."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def processor_seconds() -> float:
    """What this process and its children that have ended have used."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def describe() -> str:
    """Two lines to stand above a table."""
    named = ", ".join(f"{name} {version}" for name, version in versions().items())
    return f"{datetime.date.today().isoformat()}, {machine_class()}, load {load():.1f} at the start\n{named}"
