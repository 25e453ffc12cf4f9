"""Gates replaced by their means, and the other weights then trained on: the second half of Section 6 (1)."""

from pathlib import Path

from netbridge.train import loop
from studies.asr import constants, measures, results
from studies.lab.command import plain_errors
from studies.lab.networks import ZOO
from studies.lab.scores import remove_training


def carry_out(run, data, work: Path, destination: Path, device=None, keep: bool = False) -> results.Result:
    """Put constants in place of a shipped network's gates, train the other weights on, and compare with the gates.

    The constants do not learn: otherwise they would be another step size per channel and not the mean gates.
    """
    job = run.job
    live = ZOO / job.dataset / f"{job.stem}.safetensors"
    net = constants.constant_copy(live, data)
    for block in net.blocks:
        block.controller.requires_grad_(False)
    path = work / f"{run.stem}.safetensors"
    with plain_errors("asr"):
        about = {"controller": job.label, "depth": job.depth}
        net = loop.train(net, data, job.recipe, job.seed, path, about, device).to("cpu")
    before = measures.right_answers(measures.shipped_network(live), data, len(data.test_labels))
    change = measures.points_gained(before, measures.right_answers(net, data, len(data.test_labels)))
    beyond = tuple(results.five_digits(value) for value in (change.value, change.low, change.high))
    result = results.measure(run, net, data, path.with_suffix(".jsonl"), beyond)
    result.write(destination / f"{run.stem}.json")
    if not keep:
        remove_training(path)
    return result
