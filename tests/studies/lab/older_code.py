"""What older code measured of shipped networks, by which later code can be held to it.

    python -m tests.studies.lab.older_code COMMIT ...

takes the code of those commits out of the history, lets it measure four shipped networks of the digits in double
precision, and adds them to `older_code.json`: the digests of the code, and its numbers. A commit whose numbers differ
from those of the code of today is refused: its digests do not belong among `SAME_NUMBERS` of `studies.lab.results`.
"""

import io
import json
import math
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from netbridge import code_digests

FILE = Path(__file__).with_suffix(".json")
NETWORKS = tuple(f"resnet32-width4-{name}-seed0" for name in ("constant", "se", "stepnet", "asr-se"))
DIGITS = 12  # significant, that are kept; arithmetic has 16
TOLERANCE = 1e-10  # two digits are left to the order of sums, which differs between processors
ROOMS = ((), ("netbridge/spectrum",))  # of measurements, and of those of asr

# Run with the code of any day, in a process of its own: it uses what has not changed its name since the first commit.
MEASURE = """
import json, math, sys
import torch
import netbridge as nb
from netbridge import data
torch.set_num_threads(1)
digits = data.load("digits")
images = digits.normalised(digits.test_images[:32]).double()
for path in sys.argv[1:]:
    net = nb.load(path).double()
    records = nb.trace(net, images, of=("slope", "increment"))
    bound = nb.perturbation_bound(net, images[:4])
    numbers = {f"nsi {of}": records[of].nsi.mean(0).tolist() for of in ("slope", "increment")}
    for of in ("slope", "increment"):
        for mu in ("sample", "dataset"):
            numbers[f"tns {of} {mu}"] = [float(records[of].tns(mu).mean())]
    numbers["gates"] = [float(gates.h.mean()) for gates in nb.gates(net, images)]
    numbers["bound"] = [math.log10(float(bound.bound[-1])), float(bound.measured[-1])]
    print(json.dumps(numbers))
"""


def measure(root: Path) -> dict[str, dict[str, list[float]]]:
    """What the code under `root` measures, by network and by name; NaN where a number is not defined."""
    zoo = code_digests.ROOT / "netbridge" / "zoo" / "digits"
    paths = [str(zoo / f"{name}.safetensors") for name in NETWORKS]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *paths],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(zip(NETWORKS, map(json.loads, done.stdout.splitlines()), strict=True))


def differences(here: dict, there: dict) -> list[str]:
    """What of two measurements differs by more than TOLERANCE, in words."""
    return [
        f"{network}, {name}: {here[network][name]} and {values}"
        for network in NETWORKS
        for name, values in there[network].items()
        if not all(map(same, here[network][name], values))
    ]


def same(a: float | None, b: float | None) -> bool:
    undefined = [x is None or math.isnan(x) for x in (a, b)]
    return all(undefined) if any(undefined) else math.isclose(a, b, rel_tol=TOLERANCE)


def code_of(commit: str, folder: str) -> Path:
    """The packages as they were at a commit, in a folder."""
    packages = ["odelab", "netbridge"]
    archive = subprocess.run(
        ["git", "archive", commit, *packages], cwd=code_digests.ROOT, capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(folder, filter="data")
    return Path(folder)


def main(commits: list[str]) -> None:
    today = measure(code_digests.ROOT)
    codes = json.loads(FILE.read_text())["codes"]  # a test holds today's numbers to those of these commits
    for commit in commits:
        with tempfile.TemporaryDirectory() as folder:
            root = code_of(commit, folder)
            if wrong := differences(today, measure(root)):
                raise SystemExit(f"{commit} measures something else than today's code: {'; '.join(wrong)}.")
            codes[commit] = [code_digests.measured_by(rooms, root) for rooms in ROOMS]
        print(f"{commit}: {', '.join(codes[commit])}", flush=True)
    rounded = {
        network: {name: [rounded_number(value) for value in values] for name, values in numbers.items()}
        for network, numbers in today.items()
    }
    FILE.write_text(json.dumps({"codes": codes, "numbers": rounded}, indent=1, allow_nan=False) + "\n")


def rounded_number(value: float) -> float | None:
    return None if math.isnan(value) else float(f"{value:.{DIGITS}g}")


if __name__ == "__main__":
    main(sys.argv[1:])
