"""The sections of the report, in the order of the claims; what was not looked at is left out."""

from studies.asr import design, figures, tables
from studies.asr.findings.evidence import Evidence
from studies.asr.plan import Plan
from studies.lab.networks import USUAL


def write_sections(page, e: Evidence, speed_depth: int, plan: Plan):
    """Everything that the evidence holds, in words for the networks that are planned.

    speed_depth  layers of the networks that speed was measured on
    plan         which networks were to be trained: their depth, recipe and data set
    """
    controls(page, e, plan)
    noise(page, e, plan)
    stripes(page, e)
    replacement(page, e)
    growth(page, e)
    activation_maps(page, e)
    positions(page, e)
    style_transfer(page, e, plan)
    speed(page, e, speed_depth)
    backbones(page, e, plan)
    dynamics(page, e, plan)
    ablations(page, e, plan)


def of_scale(plan: Plan) -> str:
    """The networks of the large scale, in words: how deep, how trained, on what."""
    return f"ResNet-{plan.arguments.depth} on {data_name(plan)}, {plan.recipe.epochs} epochs by `{plan.recipe.name}`"


def data_name(plan: Plan) -> str:
    """The data set of the plan, written out."""
    return USUAL.get(plan.arguments.dataset, plan.arguments.dataset)


def of_small_scale(plan: Plan) -> str:
    """The networks of the small scale, in words."""
    job = plan.small_job(design.CONTROLS[design.PLAIN], 0)
    size = "" if job.size is None else f"{job.size} x {job.size} pixels, "
    images = "all" if job.images is None else f"the first {job.images:,}"
    return f"ResNet-{job.depth}, {size}{images} training images, {job.recipe.epochs} epochs"


def of_head(plan: Plan) -> str:
    """What SE's head looks like in these ResNets, in words."""
    reduction = design.reduction_for(plan.arguments.depth)
    if reduction == design.PAPERS_REDUCTION:
        return (
            f"SE's reduction is {reduction}, as in the paper, and its head has the paper's 4, 8 and 16 hidden units in "
            f"the three stages: {design.FAITHFUL} and {design.LITERAL} are the same network, and the first name stands "
            "for both."
        )
    return (
        f"At these widths SE's head has 1, 2 and 4 hidden units with the paper's reduction of "
        f"{design.PAPERS_REDUCTION} ({design.LITERAL}), and the paper's 4, 8 and 16 with a reduction of {reduction} "
        f"({design.FAITHFUL})."
    )


def controls(page, e: Evidence, plan: Plan):
    """ASR beside arms that have no attention."""
    known = {part: e.accuracies(part) for part in ("small", "controls")}
    scales = {part: groups for part, groups in known.items() if sum(map(bool, groups.values())) > 1}
    if not scales:
        return
    page.heading("ASR and its controls")
    page.words(
        "half is a constant 0.5; gamma has no gate, but the scale of each branch's last normalisation starts at 0.5; "
        "bias is the sigmoid of a free vector. All are folded away behind training, as ASR is. psi does not decay. "
        f"{of_head(plan)} The large scale: {of_scale(plan)}."
        + ("" if plan.arguments.full else f" The small one: {of_small_scale(plan)}, otherwise the same recipe.")
    )
    dataset = plan.arguments.dataset
    page.figure(
        figures.controls_figure(scales),
        "controls",
        "Every arm against the mean of the plain networks, last epoch. Dots: single seeds; squares: Dunnett's "
        "simultaneous 95 % intervals over all arms that have at least three seeds. The verdict on a claim takes the "
        "arms of that claim alone, so that its intervals are narrower.",
    )
    page.table("controls_small", tables.result_rows(e, "small", dataset=dataset), "At the small scale")
    page.table("controls", tables.result_rows(e, "controls", dataset=dataset), "At the large scale")
    page.table("origin", tables.result_rows(e, "origin", dataset=dataset), "Live SE, its biases at 0, and psi decayed")
    page.table("psi", tables.psi_rows(e), "What becomes of psi", printed=False)


def noise(page, e: Evidence, plan: Plan):
    """Accuracy under noise in the normalisations."""
    noisy = tables.noise_rows(e)
    if not noisy:
        return
    page.heading("Noise in the normalisations (Table 8)")
    page.words(
        f"{of_scale(plan) if plan.arguments.full else of_small_scale(plan)}; noise in every normalisation. Constant "
        "noise (a, b) is a batch normalisation whose scale starts at a and whose shift starts at b: the same "
        "functions, begun elsewhere. Random noise of standard deviation s is drawn per batch and channel."
    )
    page.figure(figures.noise_figure(e), "noise", "Test accuracy by noise and arm, every seed a mark.")
    page.table("noise", noisy, "Table 8")


def stripes(page, e: Evidence):
    """How much of the gates' variance is the channel's."""
    if not e.shares:
        return
    page.heading("Stripes: are attention values constants? (Figures 2, 22 to 28)")
    page.words(
        "The share of the gates' variance that is the channel's: the variance over channels of the mean gates, "
        "over that plus the mean over channels of the variance over images. 1 means perfect stripes. Deviations "
        "are never compared with those of the input: a sigmoid divides them by four at least."
    )
    page.figure(
        figures.stripes_figure(e.shares),
        "stripes",
        "Twenty images (rows) by sixty channels (columns) of two blocks of a network of each module: the block whose "
        "share is the median of the network's, and the one whose share is the least; the share stands beside it. From "
        "the left: the mean of the slope over the map, which the module sees; its gates; and the gates of the same "
        "network before training. One colour throughout: gates that do not vary before training.",
    )
    page.figure(
        figures.shares_figure(e.shares),
        "shares",
        "Share of the gates' variance that is the channel's, by block, with 95 % intervals over images. Dotted: "
        "before training; nothing is drawn where untrained gates are exactly constant.",
    )
    if any(one.origin for one in e.shares):
        page.figure(
            figures.origin_figure(e.shares),
            "origin",
            "The mean gate of every channel of all blocks before training and after it. On the grey line it has "
            "not moved.",
        )
    page.table("shares", tables.share_rows(e.shares), "Share by block", printed=False)


def replacement(page, e: Evidence):
    """What constants in the place of gates cost."""
    if not e.replaced:
        return
    page.heading("Gates replaced by their means (Section 6)")
    page.figure(
        figures.replacement_figure(e.replaced),
        "replacement",
        "Points of test accuracy that are gained when every gate becomes its mean over training images. Open "
        "marks: with the statistics of the normalisations taken anew. Constants taken block after block, where the "
        "blocks before have theirs, are in the table.",
    )
    page.table("replaced", tables.replaced_rows(e.replaced), "Replacement")
    page.table("finetuned", tables.finetuned_rows(e), "Replacement, and an epoch of training at rate 0.01")


def growth(page, e: Evidence):
    """The bound on a perturbation's growth beside the largest growth found."""
    if not e.bounds:
        return
    page.heading("Theorem 6.1")
    page.figure(
        figures.bounds_figure(e.bounds),
        "bounds",
        "Behind each block, of the shipped networks: the bound on a perturbation's growth, and the largest growth "
        "that a search has found on sixteen test images.",
    )
    page.table("bounds", tables.bound_rows(e.bounds), "Bound and growth")


def activation_maps(page, e: Evidence):
    """Where in a picture the networks look."""
    if not e.maps:
        return
    page.heading("Class activation maps (Figure 4)")
    page.words("Behind an average over the map and a linear layer, Grad-CAM is CAM: one forward pass.")
    page.figure(figures.maps_figure(e.maps), "gradcam", "Mean maps, of the pictures straight and rolled by 6 pixels.")
    page.table("gradcam", tables.map_rows(e.maps), "Mass of the maps")


def positions(page, e: Evidence):
    """How constant spatial gates and the attention of transformers are."""
    if not (e.spatial or e.attention):
        return
    page.heading("Spatial and transformer attention (Section 6 (4), Figure 29)")
    page.words(
        "The share of the variance that is the position's: for CBAM's spatial gate over the pixels of the map, for "
        "a transformer's attention over heads and pairs of tokens. 1 means the same map for every image."
    )
    if e.spatial:
        page.figure(
            figures.spatial_figure(e.spatial[0], "block"),
            "spatial",
            "The mean spatial gate of CBAM by block (seed 0; light is large, each on its own scale), and the share "
            "of its variance that is the position's.",
        )
    if e.attention:
        page.figure(
            figures.spatial_figure(e.attention[0], "block"),
            "attention",
            "The mean attention of a shipped transformer by block, its heads averaged: how much every token (row) "
            "takes from every other (column), 64 tokens line by line of the picture; light is large, each on its "
            "own scale. Above, the share of the variance that is the position's.",
        )
    rows = tables.spatial_rows(e.spatial, e.attention)
    page.table("spatial", rows, "How constant spatial gates and attention are", printed=False)


def style_transfer(page, e: Evidence, plan: Plan):
    """Pictures repainted, and their scores."""
    if not e.painted:
        return
    page.heading("Style transfer (Figures 5 and 19 to 21)")
    page.words(
        f"Networks with three residual steps repaint {data_name(plan)} in a made-up style; a ResNet-20 that comes with "
        "the repository, trained on CIFAR-10, gives content and Gram losses. In training mode batch normalisation of "
        "one picture alone is instance normalisation; so scores are of running statistics, and beside them of those of "
        "200 pictures at once. Gradients are a mean squared difference of neighbouring pixels, which blur takes away."
    )
    page.figure(
        figures.style_figure(e.painted, e.originals),
        "style",
        "The style, and six held-out pictures as they are and as each network repaints them, first seed.",
    )
    page.figure(
        figures.style_losses_figure(e.painted),
        "style_losses",
        "Content and style loss on 200 held-out pictures, a mark per network. Filled: running statistics; hollow: "
        "statistics of the pictures themselves, as in training.",
    )
    page.table("style", tables.style_rows(e.painted), "Losses on held-out pictures, mean over seeds")


def speed(page, e: Evidence, depth: int):
    """Speed of networks with modules, and how exact merging is."""
    if e.speeds:
        page.heading("Speed and merging (Table 1, Figure 3)")
        page.figure(
            figures.speed_figure(e.speeds),
            "speed",
            f"Speed of a ResNet-{depth} by the processor time of one thread, over the plain network's "
            "in the same round: median and quartiles of the rounds, for CIFAR's and STL's sizes. Dashed: 36 % slower. "
            "How far a second plain network is from 1 is what such a measurement is worth.",
        )
        page.table("speed", tables.speed_rows(e.speeds), "Speed")
    page.table(
        "merging",
        tables.merging_rows(e.merging),
        "Merged and folded networks against unmerged ones",
        "The largest difference of a logit over all gates of the table, over the largest logit. Normalisations whose "
        "statistics are each image's own cannot be folded, which is said and not done.",
        printed=False,
    )


def backbones(page, e: Evidence, plan: Plan):
    """Where h stands in other networks than ResNets, and their accuracies."""
    if not e.shapes:
        return
    page.heading("Other backbones (Tables 2, 3 and 5)")
    page.words(
        "Where there is no step, h is a gain and no step size. In VGG and MobileNetV1 a uniform gate before a "
        "normalised convolution changes nothing while training: half is plain there, and what ASR gains, if it "
        "gains, is of another kind than on ResNets. RepVGG's h multiplies its shortcut too."
    )
    page.table("places", e.shapes, "Where h stands and what it is", printed=False)
    page.table(
        "backbones",
        tables.backbone_rows(e, plan.arguments.dataset),
        f"Backbones at the {'paper' if plan.arguments.full else 'small scale'}'s sizes",
        "The transformer is this project's: the paper's are in its Table 2, on ImageNet.",
    )


def dynamics(page, e: Evidence, plan: Plan):
    """How far everything moves from epoch to epoch."""
    if not any(e.rows.get(("dynamics", ""), {}).values()):
        return
    page.heading("What converges when (Figures 2c, 11 to 18)")
    page.figure(
        figures.dynamics_figure(e),
        "dynamics",
        "How far gates, scales of normalisations and logits move from one epoch to the next, relative to their own "
        f"spread. The rate drops after epochs {' and '.join(map(str, plan.usual_dynamics['drops']))} where it drops.",
    )


def ablations(page, e: Evidence, plan: Plan):
    """The tables of the other parts."""
    dataset = plan.arguments.dataset
    for part, title in (
        ("beside", "ASR alone and beside a live module (Tables 3 and 4)"),
        ("uses", "Several uses, and constants of the same size (Tables 6 and 14)"),
        ("fixed", "psi that is not learnt (Table 7)"),
        ("starts", "Where psi starts (Table 13)"),
        ("bare", "A vector without a module (Table 9)"),
    ):
        page.table(f"{part}_small", tables.result_rows(e, part, design.SMALL_SCALE, dataset), f"{title}, small scale")
        page.table(part, tables.result_rows(e, part, dataset=dataset), title)
