"""Training what is missing of `step_control`: a queue that several processes share and that a kill does not lose."""

import dataclasses
import json
from pathlib import Path

import filelock
import torch

import netbridge as nb
from netbridge.train import loop as train
from studies.lab.measure import BATCH, prepared
from studies.lab.results import commit
from studies.step_control import results as results
from studies.step_control.runs import Run

TRACED = 1000  # training images: the choice of blocks shall not have seen the test set


def carry_out(run: Run, data, work: Path, destination: Path, device=None, keep: bool = False) -> results.Result:
    """Train one network, or go on with it, trace it, and write down what it scored; the weights go unless kept."""
    path = work / f"{run.stem}.safetensors"
    if not path.is_file():
        torch.manual_seed(run.seed)
        net = nb.resnet(run.scale.depth, len(data.names), run.controller, on=run.acting)
        about = {"controller": run.label, "depth": run.scale.depth}
        chosen = data.train_images[: run.scale.images], data.train_labels[: run.scale.images]
        some = dataclasses.replace(data, train_images=chosen[0], train_labels=chosen[1])
        train.train(net, some, run.scale.recipe, run.seed, path, about, device)
    result = measured(run, nb.load(path), data, path, device)
    results.write(result, destination / f"{run.stem}.json")
    if not keep:
        for ending in (".safetensors", ".jsonl", ".resume"):
            path.with_suffix(ending).unlink(missing_ok=True)
    return result


def measured(run: Run, net, data, path: Path, device) -> results.Result:
    """From the finished network and its log."""
    head, *log = map(json.loads, path.with_suffix(".jsonl").read_text().splitlines())
    return results.Result(
        specification=run.specification,
        recipe=head["recipe"],
        test_errors=net.about["test_errors"],
        test_images=len(data.test_labels),
        test_loss=net.about["test_loss"],
        parameters=sum(p.numel() for p in net.parameters()),
        nsi=tuple(stiffness(net, data, device)),
        traced=min(TRACED, len(data.train_images)),
        log=log,
        made={
            "seconds": net.about["seconds"],
            "threads": torch.get_num_threads(),
            "device": head["device"],
            "torch": head["torch"],
            "commit": commit(),
        },
    )


def stiffness(net, data, device) -> list[float]:
    """Per block the mean NSI of its branch over training images."""
    net = net.to(device or train.best_device())
    parts = [
        nb.trace(net, prepared(net, data, images.to(next(net.parameters()).device)), of="slope")
        for images in data.train_images[:TRACED].split(BATCH)
    ]
    return nb.Record.merge(parts).nsi.mean(0).tolist()


def work_off(planned, find, data, work: Path, destination: Path, device=None, keep=False, say=print) -> list[str]:
    """Train all that `planned()` lists and `find` does not know, in order; returns the names of what diverged.

    `planned` is asked again after every network: which blocks are the stiffest is known once the plain network of that
    seed is there. A network another process is at is passed over.
    """
    work.mkdir(parents=True, exist_ok=True)
    while True:
        for run in planned():
            if find(run) is not None or results.divergence(run, work):
                continue
            try:
                with filelock.FileLock(work / f"{run.stem}.lock", timeout=0):
                    if find(run) is not None:
                        continue
                    result = carry_out(run, data, work, destination, device, keep)
            except filelock.Timeout:
                continue
            except train.Diverged as error:
                results.note_divergence(run, work, str(error))
                say(f"{run.stem}: {error}")
            else:
                if find(run) is None:  # or this loop would never end
                    raise RuntimeError(f"the result of {run.stem}, written to {destination}, is not found again.")
                say(f"{run.stem}: {result.accuracy:.2f} % on the test set, {result.made['seconds']:.0f} s of training.")
            break
        else:
            return [run.stem for run in planned() if results.divergence(run, work)]
