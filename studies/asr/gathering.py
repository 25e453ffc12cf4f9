"""The evidence of a run: results of trainings that are there, and what is measured anew on finished networks."""

from pathlib import Path

from studies.asr import backbones, constants, design, measures, results, style
from studies.asr.findings.evidence import Evidence
from studies.asr.plan import Plan
from studies.asr.training import folders
from studies.lab import networks
from studies.lab.report.terminal import show_progress

MODULES = [
    networks.controller_name(controller) for controller in design.LIVE
]  # in shipped networks, with one number a channel
NAMES = {"constant": "plain"}  # what networks are called by their controllers, where it is not the controller's name
MAP_IMAGES, SPATIAL_IMAGES = 500, 600


def gather_evidence(parts, plan: Plan, data, sizes) -> Evidence:
    """Everything that the parts ask for."""
    arguments = plan.arguments
    smoke, seeds = arguments.smoke, (0,) if arguments.smoke else (0, 1)
    evidence = Evidence(rows=results_by_arm(plan))

    def subjects(*shipped: str) -> list[tuple[str, int | str, Path]]:
        """Name, seed and file of the networks to look at: the user's own, or shipped ones with these controllers."""
        if arguments.checkpoint:
            found = [identify(path) for path in networks.checkpoints(arguments.checkpoint)]
        else:
            found = [
                (identify(path)[0], seed, path)
                for one in shipped
                for seed, path in measures.shipped_files(data.name, one, seeds)
            ]
        return [one for one in found if not arguments.only or one[0] in arguments.only]

    if {"stripes", "replace"} & set(parts):
        for name, seed, path in subjects(*(design.LIVE[:1] if smoke else design.LIVE)):
            found, after = constants.measure_shares(name, seed, path, data, sizes["images"], sizes["resamples"])
            evidence.shares.append(found)
            if "replace" in parts:
                evidence.replaced.append(constants.replace_gates(found, after, path, data, sizes["tested"]))
            show_progress(f"{name}, seed {seed}: looked at.")
    if "theorem" in parts:
        count = 4 if smoke else results.BOUND_IMAGES
        evidence.bounds = [measures.measure_bound(*one, data, count) for one in subjects("constant", "asr-se")]
    if "gradcam" in parts:
        wanted = subjects(*("constant", "se", "srm")[: 2 if smoke else 3])
        evidence.maps = [measures.measure_class_maps(*one, data, min(MAP_IMAGES, sizes["tested"])) for one in wanted]
    if "spatial" in parts:
        count = min(SPATIAL_IMAGES, sizes["tested"])
        evidence.spatial = [
            measures.measure_spatial_gates(seed, path, data, count)
            for name, seed, path in subjects("cbam")
            if name == "CBAM"
        ]
        folder, count = networks.ZOO / f"{data.name}-vit", min(SPATIAL_IMAGES, sizes["tested"])
        for path in [] if arguments.checkpoint else sorted(folder.glob("*-constant-seed*.safetensors")):
            evidence.attention.append(measures.measure_attention("ViT", identify(path)[1], path, data, count))
    if "style" in parts:
        paintings = style.plan_paintings(arguments.seeds[: design.FEW])
        painted = (style.find(one, folders(arguments)) for one in paintings)
        evidence.painted = [one for one in painted if one is not None]
        evidence.originals = data.test_images[: style.SHOWN].numpy()
    if "merging" in parts:
        evidence.merging = backbones.merging_errors(backbones.FEW_GATES if smoke else backbones.GATES)
    if "backbones" in parts:
        evidence.shapes = backbones.places_of_steps(arguments.full)
    if "speed" in parts:
        depth, seconds = sizes["speed_depth"], sizes["seconds"]
        evidence.speeds = {
            f"{size} x {size}": backbones.measure_speeds(depth, size, batch, seconds / len(sizes["speeds"]))
            for size, batch in sizes["speeds"]
        }
    return evidence


def results_by_arm(plan: Plan) -> dict:
    """The results that are there: {(part, column): {arm: [Result]}}, arms without any included."""
    rows: dict = {}
    for run in plan.runs():
        arms = rows.setdefault((run.part, run.column), {})
        found = results.find(run, folders(plan.arguments))
        arms.setdefault(run.arm, []).extend([] if found is None else [found])
    return rows


def identify(path: Path) -> tuple[str, int | str, Path]:
    """Name, seed and file of a network; the file's name in place of a seed that is not known."""
    one = networks.read_subject(path)
    return NAMES.get(one.controller, one.controller), path.stem if one.seed is None else one.seed, path
