"""A rehearsal of the papers' scale: every plan from data to page, on made-up data in the official formats.

`make rehearse` runs all parts, two at a time; `python -m tests.rehearse asr detect` runs some. Networks have the
paper's depth and width, but for Table 4 (29 layers of bottlenecks) and ASR's ablations (83), where many are trained;
epochs are one, pictures a few, so that every number in these pages is nonsense. What a rehearsal shows is that the
commands that are meant for days of a GPU begin, end and write their pages, and that no network of made-up pictures
stands in a cell of a real table. `make slow` runs the same parts as tests. A step of ResNet-164 takes up to 6 GB at the
papers' batches, and two parts run at once.
"""

import concurrent.futures
import csv
import os
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import torch

import netbridge as nb
from netbridge import data, detect
from tests.netbridge.test_foreign_weights import foreign_state

ROOT = Path(__file__).parents[1]
AT_ONCE = 2


def make_data(folder: Path, *names: str) -> Path:
    """A folder with made-up data of these names: batches of 128 for CIFAR-100, of 16 for STL-10."""
    sizes = {"cifar100": {"classes": 4, "each": 32}, "stl10": {"classes": 4, "each": 4}}
    sizes["imagenet"] = {"classes": 4, "each": 4, "height": 40}
    for name in names:
        if name == "coco":
            detect.shapes(folder, 4, 2, 64)
        else:
            data.miniature(name, folder, **sizes[name])
    return folder


def run(folder: Path, study: str, *words) -> str:
    """Run a study in a folder, one thread; what it prints. A study that fails ends the rehearsal with its words."""
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    command = [sys.executable, "-m", f"studies.{study}", *map(str, words)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        words = f"{' '.join(command[1:])} ended with {done.returncode}; -9 is most often a want of memory."
        raise AssertionError(f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-5000:]}")
    return done.stdout


def report(folder: Path, out: str) -> str:
    """The page that a study has written."""
    assert (folder / out / "report.html").stat().st_size > 10_000
    return (folder / out / "report.md").read_text()


def rehearse_table(folder: Path) -> None:
    """Tables 1 and 2 of the StepNet paper: ResNet-164 on CIFAR-100 and STL-10, ResNet-34 on ImageNet; then its page."""
    root = make_data(folder / "data", "cifar100", "stl10", "imagenet")
    columns = (("cifar100", 32, ("constant", "stepnet", "se")), ("stl10", 4, ("constant", "stepnet")))
    for dataset, batch, controllers in columns:
        for controller in controllers:
            run(
                folder, "train", "--dataset", dataset, "--data-root", root, "--depth", 164, "--recipe", "paper",
                "--controller", controller, "--epochs", 1, "--batch", batch, "--out", f"results/train/{dataset}-paper",
            )  # fmt: skip
    small = ("--dataset", "imagenet", "--data-root", root, "--size", 64, "--resize", 72)
    run(folder, "train", *small, "--depth", 34, "--recipe", "imagenet-256", "--batch", 8, "--epochs", 1)
    run(folder, "train", *small, "--network", "vit-s", "--recipe", "imagenet-vit", "--batch", 8, "--epochs", 1)
    run(
        folder, "cifar_tns", "--dataset", "cifar100", "--data-root", root, "--checkpoint",
        "results/train/cifar100-paper", "--images", 32, "--resamples", 20, "--out", "results/cifar_tns",
    )  # fmt: skip
    assert "resnet164-stepnet-seed0" in report(folder, "results/cifar_tns")
    run(folder, "table")
    report(folder, "results/table")
    for number in (1, 2, 7):
        with (folder / "results/table" / f"table{number}_missing.csv").open() as file:
            assert {row["found"] for row in csv.DictReader(file)} == {"0"}, number
    with (folder / "results/table" / "elsewhere.csv").open() as file:
        rehearsed = [row for row in csv.DictReader(file) if row["data set"].endswith(("-miniature", "-of-16"))]
    assert len(rehearsed) == 7


def rehearse_asr(folder: Path) -> None:
    """The ASR paper's controls and backbones at its depth, on CIFAR-100."""
    root = make_data(folder / "data", "cifar100")
    arms = ("plain", "gamma", "ASR(SE), paper's units")
    common = ("--full", "--dataset", "cifar100", "--data-root", root, "--epochs", 1, "--seeds", 1, "--only", *arms)
    parts = ("--part", "controls", "backbones", "--tier", 1, 3)
    run(folder, "asr", *common, *parts, "--train", "--preset", "quick")
    page = report(folder, "results/asr")
    assert "ResNet-164 on cifar100-miniature, 1 epochs by `paper`" in page
    made = sorted((folder / "results/asr/runs").glob("*.json"))
    assert len(made) == 3 + 6 * 2 + 2
    assert all(path.name.startswith("cifar100-miniature-") for path in made)


def rehearse_asr_ablations(folder: Path) -> None:
    """ASR beside a live module, its uses, vectors that do not learn, and dynamics, ResNet-83 on STL-10."""
    root = make_data(folder / "data", "stl10")
    arms = ("SE", "SE + ASR(SE)", "2 uses", "psi = 0.1", "psi ~ N(0, 0.1)", "psi from 0.2", "vector from 0.1")
    common = ("--full", "--dataset", "stl10", "--data-root", root, "--epochs", 1, "--seeds", 1, "--depth", 83)
    parts = ("--part", "beside", "ablation", "dynamics", "--tier", 2, 4, 5)
    run(folder, "asr", *common, *parts, "--only", *arms, "SE, steps", "--train")
    page = report(folder, "results/asr")
    assert "ResNet-83 on stl10-miniature" in page
    assert len(list((folder / "results/asr/runs").glob("stl10-miniature-*.json"))) == len(arms) + 1


def rehearse_tricks(folder: Path) -> None:
    """Figure 8 at the paper's depth, on STL-10 with its 96 pixels."""
    root = make_data(folder / "data", "stl10")
    words = ("--full", "--dataset", "stl10", "--data-root", root, "--seeds", 1, "--epochs", 1)
    run(folder, "tricks", *words, "--train")
    page = report(folder, "results/tricks")
    assert "10 ResNet-164 of 16 channels" in page
    assert "of 96 pixels of stl10-miniature" in page


def rehearse_step_control(folder: Path) -> None:
    """Table 4 and the tickets on CIFAR-100, with 29 layers."""
    root = make_data(folder / "data", "cifar100")
    words = ("--full", "--dataset", "cifar100", "--data-root", root, "--seeds", 1, "--epochs", 1, "--depth", 29)
    run(folder, "step_control", *words, "--train", "--blocks", "counted", "--few", 2)
    assert "ResNet-29 on cifar100-miniature" in report(folder, "results/step_control")
    run(folder, "step_control", *words, "--blocks", "counted", "--few", 2)  # what was trained is found again


def rehearse_transformer(folder: Path) -> None:
    """Table 7, the project's own transformer."""
    root = make_data(folder / "data", "cifar100")
    words = ("--dataset", "cifar100", "--data-root", root, "--seeds", 0, "--epochs", 1, "--resamples", 20)
    run(folder, "transformer", "--train", "--preset", "full", *words)
    assert "Transformers as trajectories, on cifar100-miniature" in report(folder, "results/transformer")


def rehearse_detect(folder: Path) -> None:
    """Table 3: a ResNet-50 from ImageNet's layout, then Faster R-CNN on it in COCO's, pictures of 96 pixels.

    The backbone takes forty steps at a small rate: a detector keeps its running statistics, which must be somebody's.
    """
    root = make_data(folder / "data", "imagenet", "coco")
    for controller in ("constant", "stepnet"):
        run(
            folder, "train", "--dataset", "imagenet", "--data-root", root, "--depth", 50, "--size", 64, "--resize", 72,
            "--recipe", "imagenet-256", "--batch", 8, "--epochs", 20, "--lr", 0.01, "--controller", controller,
            "--out", "results/train/imagenet-256",
        )  # fmt: skip
    run(
        folder, "detect", "--data-root", root, "--depth", 50, "--weights", "results/train/imagenet-256", "--seeds", 1,
        "--controllers", "constant", "stepnet", "--epochs", 1, "--short", 96, "--batch", 2, "--workers", 0, "--train",
    )  # fmt: skip
    assert "NOT COCO: made-up scenes in its format" in report(folder, "results/detect")
    runs = folder / "results/detect/runs"
    diverged = [path.read_text() for path in runs.glob("*.diverged.txt")]
    assert len(list(runs.glob("resnet50-*.npz"))) == 2, diverged


def rehearse_blocks(folder: Path) -> None:
    """The block-level paper's networks as published weights, on the digits: ResNet-18, and ResNet-50 an eighth as wide.

    In full width all eigenvalues of a ResNet-50 take an hour.
    """
    for depth, widths in ((18, None), (50, (8, 16, 32, 64))):
        torch.manual_seed(depth)
        net = nb.resnet(depth, 10, stem="cifar-pooled", widths=widths)
        torch.save(foreign_state(net), folder / f"resnet{depth}.pt")
    how = ("--stem", "cifar-pooled", "--mean", 0.31, 0.31, 0.31, "--std", 0.38, 0.38, 0.38)
    sizes = ("--dataset", "digits", "--images", 1, "--epochs", 0, "--no-ode-net", "--workers", 1, "--resamples", 20)
    run(folder, "block_stiffness", "--checkpoint", "resnet18.pt", "resnet50.pt", *how, *sizes)
    report(folder, "results/block_stiffness")
    with (folder / "results/block_stiffness/by_block.csv").open() as file:
        last = [row for row in csv.DictReader(file) if row["block"] == "8"]
    assert {row["reading"] for row in last} == {"slices", "whole block", "branch"}
    assert {row["S, paper"] for row in last} == {"-12.99"}
    with (folder / "results/block_stiffness/by_block_2.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["block"] for row in rows} == {str(number) for number in range(1, 17)}
    assert not [row for row in rows if "S, paper" in row]  # it is not the paper's width


PARTS: dict[str, Callable[[Path], None]] = {
    "asr": rehearse_asr,
    "table": rehearse_table,
    "tricks": rehearse_tricks,
    "step_control": rehearse_step_control,
    "asr_ablations": rehearse_asr_ablations,
    "detect": rehearse_detect,
    "transformer": rehearse_transformer,
    "blocks": rehearse_blocks,
}


def rehearse(name: str) -> tuple[str, float, str]:
    """(part, seconds, what went wrong or "") of one part in a folder of its own, which is removed."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        try:
            PARTS[name](Path(folder))
        except AssertionError:
            return name, time.perf_counter() - began, traceback.format_exc()
    return name, time.perf_counter() - began, ""


def main(names: list[str]) -> int:
    """Run the parts, two at a time; 0 where all went through."""
    if unknown := [name for name in names if name not in PARTS]:
        print(f"python -m tests.rehearse knows {', '.join(PARTS)}; got {', '.join(unknown)}.")
        return 2
    failed, began = 0, time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for name, seconds, words in pool.map(rehearse, names or PARTS):
            failed += bool(words)
            print(f"{name}: {'FAILED' if words else 'went through'} in {seconds:.0f} s\n{words}".strip(), flush=True)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = (spent.ru_utime + spent.ru_stime) / 60
    print(f"{(time.perf_counter() - began) / 60:.1f} minutes, {processor:.1f} of a processor.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
