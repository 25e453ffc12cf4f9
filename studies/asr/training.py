"""Training what is missing: the queue of networks and paintings, which processes with one folder share.

Fine-tuning is the second half of Section 6 (1): gates replaced by their means, and the other weights then trained on.
"""

from pathlib import Path

from netbridge.train import loop
from studies.asr import constants, design, measures, results, style
from studies.asr.plan import Plan, Run
from studies.lab import jobs
from studies.lab.command import plain_errors
from studies.lab.measurements import remove_training
from studies.lab.networks import ZOO
from studies.lab.options import which_jobs


def folders(arguments) -> tuple:
    """Where results are looked for."""
    own = arguments.out / "runs"
    return (own,) if arguments.own else (own, results.SHIPPED)


def train(plan: Plan, data, painted: bool):
    """Train what is missing of the plan, and with `painted` the networks that repaint pictures."""
    arguments = plan.arguments
    own = arguments.out / "runs"
    place = results.SHIPPED if arguments.ship else own

    def find(one):
        kind = style if isinstance(one, style.Painting) else results
        return kind.find(one, folders(arguments))

    def carry_out(one):
        if isinstance(one, style.Painting):
            found = style.paint(one, data)
            style.write(found, place / f"{one.stem}.json")
            return found
        how = fine_tune if one.part == "finetuned" else results.carry_out
        return how(one, data, own, place, arguments.device, arguments.keep)

    jobs.work_off(lambda: queue(plan, painted), jobs.finder(find, **which_jobs(arguments)), carry_out, own)


def fine_tune(run, data, work: Path, destination: Path, device=None, keep: bool = False) -> results.Result:
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


def queue(plan: Plan, painted: bool) -> list:
    """Everything to train in its order: the first style's networks stand among the claims, those of the others last."""
    runs = plan.queue()
    if not painted:
        return runs
    paintings = style.plan_paintings(plan.arguments.seeds[: design.FEW])
    first = [one for one in paintings if one.style == paintings[0].style]
    early = [run for run in runs if plan.turn(run)[0] < design.PAINTED]
    return early + first + runs[len(early) :] + [one for one in paintings if one not in first]


def smoke(plan: Plan, data):
    """One network of a few layers, with noise, for one epoch on a few digits: the whole way of a result."""
    recipe = jobs.recipe_of("digits", "digits", epochs=1)
    job = jobs.Job("digits", "asr(se(reduction=4))", 0, recipe, 8, 4, images=128, noise=(0.8, 0.8, 0.1))
    run = Run("noise", design.FAITHFUL, job, "(0.8, 0.8)")
    own = plan.arguments.out / "runs"
    if results.find(run, [own]) is None:
        results.carry_out(run, data, own, own, "cpu")
