"""All shipped networks: which blocks are stiff, whether any is, and whether S tells where a step is wrong.

One network has seven blocks or so, too few for a correlation of blocks. All shipped networks together show whether what
one of them says holds for other seeds and other step-size controllers. What is kept of each block is a summary over
images, a line of JSON; `every_network.jsonl` is what the last large run left, marked by date and commit.
"""

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from rich.progress import track
from scipy import stats

import netbridge as nb
from netbridge.pretrained_networks import Pretrained
from netbridge.spectrum.survey import ROW
from odelab.plot import style
from studies.block_stiffness.evidence import (
    CALLED,
    ENDS,
    LABELS,
    REMEDY,
    SHIPPED,
    Everything,
    Evidence,
    Relation,
    correlation_interval,
    readable,
    rounded,
    today,
    write_lines,
)
from studies.block_stiffness.measures import (
    KIND_OF,
    LARGEST_FULL,
    ROOMS,
    Measured,
    accuracy_of,
    finite,
    first_images,
    inner_blocks,
    rows_of,
    stage_of,
)
from studies.lab.exhibits import Exhibit
from studies.lab.figures import plain_ticks
from studies.lab.networks import shipped_resnets
from studies.lab.page import Page
from studies.lab.results import source
from studies.lab.statistics import (
    Estimate,
    chance_text,
    correlate_rows,
    interval_text,
    listing,
    mean_with_interval,
    rank_correlation,
)
from studies.lab.stiffness import prepare, step_sizes_of
from studies.lab.verdicts import (
    CONTRADICTED,
    NOT_RUN,
    SUPPORTED,
    UNDECIDED,
    Finding,
    Verdict,
    Worlds,
    corrected,
    enough,
    of_cases,
    of_each,
    of_interval,
    rule,
)

# ---- What is measured of every network, and where it is kept ----

FILE = SHIPPED / "every_network.jsonl"
STATISTICS = ("median", "mean", "smallest", "largest")  # over images, in this order in the file
FROZEN = ("max_re", "min_re", "stiffness_index", "spectral_radius")
LIVE = ("max_re", "min_re")
NORMS = ("log_norm", "soderlind", "largest_singular")
ERROR = ("step_error", "nsi", "alive")
SHARES = ("negative", "zero", "positive", "non_normality", "stiff")  # means over the images with all eigenvalues
LIVE_IMAGES = 2  # gates are differentiated too, at five times the cost, at this many images or a fifth of all
FULL_IMAGES = 2  # at which all eigenvalues are found where that takes seconds, which also checks the ends
NORM_IMAGES = 4  # at which norms of the whole Jacobian are taken
WHOLE = 2048  # units of a block up to which all eigenvalues are cheaper than both ends
OF_NETWORK = ("network", "controller", "seed", "accuracy", "images")  # the same in every row of a network


def networks_of(dataset: str) -> list[Pretrained]:
    """The shipped ResNets trained on a data set but for the deep ones, those with constant step sizes first."""
    return sorted(shipped_resnets(dataset), key=lambda net: (net.controller != "constant", net.seed, net.name))


def look_at_all(data, images: int, work: dict, names: Sequence[str]) -> Everything:
    """Every shipped network of the data set that has one of these names, at the same `images` test images."""
    chosen = [network for network in networks_of(data.name) if network.name in names]
    rows = [
        row
        for network in track(chosen, "every shipped network", transient=True)
        for row in look_at(network, data, images, work)
    ]
    about = {"date": today(), **source(measured=ROOMS), "dataset": data.name, "images": images}
    return Everything(about, rows)


def look_at(about: Pretrained, data, count: int, work: dict) -> list[dict]:
    """A summary of every block that keeps the shape, over `count` test images.

    The gates of step sizes computed from the state are held, so that eigenvalues are those of h f'; at a few images
    they are differentiated too, and the difference is what the controller itself adds. A controller that changes the
    branch (IEBN) leaves no chain of convolutions and is differentiated automatically, at LIVE_IMAGES images.
    """
    net = nb.pretrained(about.name).eval()
    dear = any(block.controller.modifies_branch for block in net.blocks)
    labels = data.test_labels.numpy()
    chosen = first_images(labels, count, len(data.names))[: LIVE_IMAGES if dear else count]
    images = prepare(net, data, data.test_images[chosen])
    inner = inner_blocks(net)
    units = {name: state[0].numel() for name, state in nb.block_states(net, images[:1], inner).items()}
    small = [] if dear else [name for name in inner if units[name] <= WHOLE]
    large = [name for name in inner if name not in small]
    reduced = [] if dear else [name for name in large if units[name] <= LARGEST_FULL]  # all eigenvalues take seconds
    few = 0 if dear or about.controller == "constant" else min(LIVE_IMAGES, -(-count // 5))

    def survey(kind, blocks, images, values="extremes", gate="frozen"):
        some = blocks and len(images)
        return nb.block_survey(net, images, kind, blocks, values, gate, **work) if some else np.empty(0, ROW)

    def both(images, gate="frozen"):
        tables = [survey("increment", large, images, gate=gate), survey("increment", small, images, "full", gate)]
        return np.concatenate(tables), tables[1]

    held, all_of_small = both(images)
    some = survey("increment", reduced, images[:FULL_IMAGES], "full")
    tables = (
        held,  # ends of h f' with gates held
        np.concatenate([some, all_of_small]),  # all eigenvalues of it, at fewer images and of the smaller blocks
        survey("norms", inner, images[:NORM_IMAGES]),
        survey("error", inner, images),
        both(images[:few], "live")[0],  # ends with gates differentiated, at fewer images still
    )
    return summaries(about, net, tables, nb.trace(net, images), labels[chosen], len(data.names))


def summaries(about: Pretrained, net, tables: tuple, steps, labels: np.ndarray, classes: int) -> list[dict]:
    """A row per block: medians and so on of each measure, and both ends with gates held and gates differentiated.

    tables   of `nb.block_survey`, as `look_at` has them
    labels   of the images, each as often as the others where there are enough images
    classes  how many labels there are
    """
    result = []
    for number, name in enumerate(net.block_names, 1):
        rows, whole, norms, wrong, live = (table[table["block"] == name] for table in tables)
        if not len(rows):
            continue
        line = {
            "network": about.name, "controller": about.controller, "seed": about.seed,
            "accuracy": about.test_accuracy, "block": number, "stage": stage_of(name), "images": len(rows),
            "step_size": rounded(steps.step_sizes[:, steps.names.index(name)].mean()),
        }  # fmt: skip
        for measures, table in ((FROZEN, rows), (NORMS, norms), (ERROR, wrong)):
            line |= {measure: summarise(table[measure]) for measure in measures}
        line["converged"] = rounded(rows["converged"].mean())
        if len(set(labels)) == classes:  # means by label are kept for the labels' order
            for measure in ENDS:
                by_label = [rows[measure][labels[rows["image"]] == label] for label in range(classes)]
                line[f"{measure}_by_label"] = [rounded(values.mean(), 4) for values in by_label]
        if len(whole):
            line |= {measure: rounded(whole[measure].mean()) for measure in SHARES}
            line["ends_missed"] = error_of_ends(rows[np.isin(rows["image"], whole["image"])], whole)
        if len(live):
            both = rows[np.isin(rows["image"], live["image"])], live
            line |= {f"{measure}_held_and_live": [rounded(t[measure].mean()) for t in both] for measure in LIVE}
        result.append(line)
    return result


def error_of_ends(ends: np.ndarray, whole: np.ndarray) -> float:
    """By how much ends from products with vectors differ from those of all eigenvalues, relative to the radius."""
    return rounded(np.max([np.abs(ends[name] - whole[name]) / whole["spectral_radius"] for name in LIVE]))


def summarise(values: np.ndarray) -> list[float]:
    """The STATISTICS of the values that are numbers; nothing where none is."""
    values = finite(values)
    return [rounded(statistic(values)) for statistic in (np.median, np.mean, np.min, np.max)] if len(values) else []


def write_all(everything: Everything, path: Path = FILE) -> None:
    """A line about the run; one about each network, then one a block. Other data sets that the file holds stay."""
    runs = [run for run in read_all(path) if run.about["dataset"] != everything.about["dataset"]]
    runs = sorted([*runs, everything], key=lambda run: run.about["dataset"])
    write_lines(path, itertools.chain.from_iterable(map(lines_of, runs)))


def lines_of(run: Everything) -> Iterator[dict]:
    """The lines of a run: what the rows of a network share stands ahead of them, once."""
    yield run.about
    shared: dict = {}
    for row in run.rows:
        own = {name: row[name] for name in OF_NETWORK if name in row}
        if own != shared:
            shared = own
            yield shared
        yield {name: cell for name, cell in row.items() if name not in OF_NETWORK}


def read_all(path: Path = FILE) -> list[Everything]:
    """Every run that the file holds, one a data set."""
    runs: list[Everything] = []
    shared: dict = {}
    for line in path.read_text().splitlines() if path.is_file() else ():
        row = json.loads(line)
        if "commit" in row:
            runs.append(Everything(row, []))
        elif "block" in row:
            runs[-1].rows.append(shared | row)
        else:
            shared = row
    return runs


def shipped_run(dataset: str, path: Path = FILE) -> Everything:
    """The last large run for a data set; empty where there was none."""
    return next((run for run in read_all(path) if run.about["dataset"] == dataset), Everything({}, []))


def rows_of_network(measured: Measured, inner: Iterable[str]) -> list[dict]:
    """One network as rows of a run over all: numbers of each block over the images looked at."""
    return [
        {
            "network": measured.name,
            "controller": "",
            "block": measured.blocks.index(block) + 1,
            "stage": stage_of(block),
        }
        | {
            measure: float(np.median(values))
            for measure in ("stiffness_index", "negative", "min_re", "step_error")
            if len(values := finite(rows_of(measured, block, KIND_OF.get(measure, "residual"))[measure]))
        }
        for block in inner
    ]


# ---- What the rules share: rows of networks, and made-up ones ----

SIGNS = {"stiffness_index": -1, "negative": 1}  # of the change that makes a block stiffer, by the paper's two measures
FEWEST_NETWORKS = 3
LIMIT = -2.0  # below it a decaying mode grows under Euler's step of size 1
SHAPE = ((0, 0, 0, 1, 1, 2, 2), 23)  # of the worlds: the stages of a ResNet-20's counted blocks, and its networks


def value(row: dict, measure: str, statistic: str = "median") -> float:
    """A statistic of a measure over images; NaN where the row has none. Of some measures the mean alone is there."""
    cell = row.get(measure)
    if isinstance(cell, float):
        return cell
    return cell[STATISTICS.index(statistic)] if cell else float("nan")


def lowest_real_part(row: dict) -> float:
    """The most negative real part of h lambda at any image, with gates held."""
    return value(row, "min_re", "smallest")


def by_network(rows: Iterable[dict]) -> dict[str, list[dict]]:
    """The rows of each network in the order of its blocks."""
    groups: dict[str, list[dict]] = {}
    for row in rows:
        groups.setdefault(row["network"], []).append(row)
    return groups


def too_few(rows: Sequence[dict]) -> str:
    return enough({"shipped networks": list(by_network(rows))}, FEWEST_NETWORKS, "networks")


def made_up_networks(columns: dict[str, np.ndarray], stages: Sequence[int] = SHAPE[0]) -> list[dict]:
    """Rows of networks from columns (networks, blocks)."""
    return [
        {"network": str(net), "block": block + 1, "stage": stages[block]}
        | {name: float(values[net, block]) for name, values in columns.items()}
        for net in range(len(next(iter(columns.values()))))
        for block in range(len(stages))
    ]


# ---- Late blocks are stiffer: Tables 2 and 5 ----


def changes_with_depth(rows: Iterable[dict], measure: str) -> dict[str, np.ndarray]:
    """By network: the mean of a measure in the last stage less that in the first one that has it, and within stages."""
    between, within = [], []
    for blocks in by_network(rows).values():
        by_stage: dict[int, list[float]] = {}
        for row in blocks:
            if np.isfinite(value(row, measure)):
                by_stage.setdefault(row["stage"], []).append(value(row, measure))
        if len(by_stage) > 1:
            between.append(np.mean(by_stage[max(by_stage)]) - np.mean(by_stage[min(by_stage)]))
        several = [values for values in by_stage.values() if len(values) > 1]
        if several:
            within.append(np.mean([values[-1] - values[0] for values in several]))
    return {"from stage to stage": np.array(between), "within a stage": np.array(within)}


def worlds_along_depth(chance, effect: float, n: int) -> tuple:
    """Networks whose blocks have S and percentages as Table 2 has them by stage, or in any order."""
    stages = np.array(SHAPE[0])
    late = np.linspace(0.0, 1.0, len(stages))
    s = -4.0 - 8.0 * late * effect + 3.0 * chance.standard_normal((n, len(stages)))
    percent = 0.05 + 0.20 * late * effect + 0.05 * chance.standard_normal((n, len(stages)))
    return made_up_networks({"stiffness_index": s, "negative": percent, "min_re": s}), None


@rule(
    "late blocks are stiffer",
    "Tables 2, 5",
    fixed="after the data: with S and the percentages of these networks known, because -min Re, by which it had been "
    "judged, is not one of the paper's measures; by the old rule the verdict was that it is true of some and false of "
    "others",
    fewest=FEWEST_NETWORKS,
    worlds=Worlds(
        worlds_along_depth,
        23,
        "networks",
        "S that falls by 8 and percentages that rise by 20 points along depth, as in Table 2",
    ),
)
def judge_depth(rows: Sequence[dict], slices: tuple[float, float] | None) -> tuple[Verdict, str]:
    """By the paper's two measures, S (the more negative, the stiffer) and the percentage of eigenvalues with negative
    real part (the larger, the stiffer), of the branch. Each is asked twice: the mean of the last stage less that of the
    first stage where it is known (percentages need all eigenvalues, which the first stage of a ResNet-20 is too large
    for), and the last block of a stage less its first, at one size of map. Supported where all of them certainly make
    late blocks the stiffer ones, contradicted where all certainly do not. Intervals are over networks of one shape and
    hold together; another shape may differ."""
    several = too_few(rows)
    changes = {
        (measure, where): values
        for measure in SIGNS
        for where, values in changes_with_depth(rows, measure).items()
        if len(values) > 1
    }
    level = corrected(len(changes))
    beyond = {(measure, where): mean_with_interval(values, level) for (measure, where), values in changes.items()}
    verdict = of_cases(of_interval(e, SIGNS[measure]) for (measure, _), e in beyond.items())
    form = {"stiffness_index": "+.2f", "negative": "+.1%"}
    listed = "; ".join(
        f"{CALLED[measure]} {where} {interval_text(e, form[measure])}" for (measure, where), e in beyond.items()
    )
    n = len(by_network(rows))
    words = [f"Changes along depth over n = {n} networks of one shape: {listed or 'nothing to compare'}."]
    ends = {
        where: mean_with_interval(values)
        for where, values in changes_with_depth(rows, "min_re").items()
        if len(values) > 1
    }
    if ends:
        words.append(
            f"S = max Re / min Re also grows where blocks decay more slowly: min_re itself changes {listing(ends)} "
            "(above 0: it decays more slowly), and a mode is stiff for Euler's step where it decays fast."
        )
    if slices is not None:
        words.append(
            f"The slices' percentage rises with depth ({slices[0]:+.2f}, p {chance_text(slices[1])}) because smaller "
            "maps leave a slice fewer rows that must be zero."
        )
    return (UNDECIDED if several else verdict), several + " ".join(words)


def slice_relation(measured: Measured) -> tuple[float, float] | None:
    """Spearman's correlation, and its p, of a block's number and the percentage of its slices; None without slices."""
    tables = [rows_of(measured, block, "slices")["negative"] for block in measured.blocks]
    if not sum(map(len, tables)):
        return None
    return rank_correlation(np.arange(len(tables)), [float(table.mean()) for table in tables], stats.spearmanr)


# ---- ResNets are stiff equations: Sections 1, 5 and 6 ----

NTH = ("first", "second", "third", "fourth")


def worlds_near_the_limit(chance, effect: float, n: int) -> tuple:
    """Networks whose stiffest block is at Euler's limit, or beyond it by a tenth."""
    lowest = chance.normal(LIMIT * (1.0 + 0.1 * effect), 0.2, n)
    others = chance.uniform(-1.2, -0.3, (n, len(SHAPE[0]) - 1))
    return (made_up_networks({"min_re": np.column_stack([lowest, others])}),)


@rule(
    "ResNets are stiff, numerically unstable equations",
    "Sections 1, 5, 6",
    fixed="after the data: with the numbers of images and networks that have such a mode known, because whether any "
    "image of any block has one depends on how many are looked at; by the old rule the verdict was that it is true of "
    "some and false of others",
    fewest=FEWEST_NETWORKS,
    worlds=Worlds(
        worlds_near_the_limit,
        23,
        "networks",
        "a real part of -2.2 in the stiffest block (without an effect: -2, the limit)",
    ),
)
def judge_stiff(rows: Sequence[dict]) -> tuple[Verdict, str]:
    """A step of size 1 of Euler's method lets a mode grow that decays where h lambda is below -2 on the real axis.
    Supported where in the stiffest block of a network the most negative real part of h lambda, the median over images,
    is certainly below -2, contradicted where it is certainly above; the interval is over networks."""
    networks = by_network(rows).values()
    if not networks:
        return NOT_RUN, "n = 0 networks; `--every-network 100` looks at them."
    few = too_few(rows)
    lowest = [min(value(row, "min_re") for row in blocks) for blocks in networks]
    typical = mean_with_interval(lowest)
    beyond = [[row["stage"] for row in blocks if lowest_real_part(row) < LIMIT] for blocks in networks]
    stages = list(itertools.chain.from_iterable(beyond))
    where = ", ".join(f"{stages.count(stage)} in the {NTH[stage]} stage" for stage in sorted(set(stages)))
    words = (
        f"The most negative real part of h lambda in the stiffest block of a network, at a typical image: "
        f"{interval_text(typical, '.2f')}, n = {len(lowest)} networks; Euler's limit is {LIMIT:g}. At some image "
        f"{sum(map(bool, beyond))} of them have a mode beyond it"
        + (f", in {len(stages)} blocks: {where}." if stages else ".")
    )
    verdict = of_interval(typical.less(LIMIT), sign=-1)
    return (UNDECIDED if few else verdict), few + words


# ---- S tells where a step is wrong: Section 4 ----

PREDICTORS = (
    "nsi", "alive", "max_re", "min_re", "stiffness_index", "spectral_radius", "log_norm", "soderlind",
    "largest_singular", "negative", "zero", "positive", "non_normality",
)  # fmt: skip
OTHER_MEASURES = ("max_re", "min_re", "spectral_radius", "nsi")  # told beside S, for the errors of steps


def correlate_errors(rows: Iterable[dict], measures: Iterable[str]) -> dict[str, Estimate]:
    """{measure: Spearman's correlation with Euler's error over the blocks of a network, averaged over networks}."""
    result = {}
    for measure in measures:
        relations = []
        for blocks in by_network(rows).values():
            x, y = ([value(row, name) for row in blocks] for name in (measure, "step_error"))
            if len(blocks) > 3 and np.isfinite([*x, *y]).all() and np.ptp(x) > 0.0:
                relations.append(stats.spearmanr(x, y).statistic)
        if len(relations) > 1:
            result[measure] = mean_with_interval(relations)
    return result


def predictors(rows: list[dict]) -> list[dict]:
    """Which measure of a block tells Euler's error, over the blocks of all networks? The best one first.

    Spearman's correlation over the blocks of a network, averaged over networks with its interval; and how much of the
    variance of log(error) a line through log|measure| explains in networks that were left out of the fit, one network
    at a time (below 0 where the mean would have been the better guess).
    """
    table = []
    for measure, mean in correlate_errors(rows, PREDICTORS).items():
        groups = []
        for blocks in by_network(rows).values():
            x, y = ([value(row, name) for row in blocks] for name in (measure, "step_error"))
            with np.errstate(divide="ignore"):
                pairs = np.log(np.abs([x, y]))
            groups.append(pairs[:, np.isfinite(pairs).all(0)])
        if sum(group.shape[1] for group in groups) > 8:
            about = {
                "measure": measure,
                "networks": len(groups),
                "Spearman within networks": interval_text(mean, "+.2f"),
            }
            table.append(about | {"R2, left-out networks": r2_left_out(groups)})
    return sorted(table, key=lambda row: -row["R2, left-out networks"])


def r2_left_out(groups: list[np.ndarray]) -> float:
    """R2 of a line fitted to all groups (2, n) but one, on that one, over all groups together."""
    missed = total = 0.0
    for left, (x, y) in enumerate(groups):
        others = np.concatenate([group for number, group in enumerate(groups) if number != left], axis=1)
        slope, start = np.polyfit(others[0], others[1], 1)
        missed += float(np.square(y - (start + slope * x)).sum())
        total += float(np.square(y - others[1].mean()).sum())
    return 1.0 - missed / total if total > 0.0 else float("nan")


def profile_of(rows: Iterable[dict], measure: str) -> np.ndarray:
    """A measure of every network and block, (networks, blocks), of the networks that have the most blocks alike."""
    groups: dict[tuple, list] = {}
    for blocks in by_network(rows).values():
        groups.setdefault(tuple(row["block"] for row in blocks), []).append(blocks)
    most = max(groups.values(), key=len, default=[])
    return np.array([[value(row, measure) for row in blocks] for blocks in most])


def worlds_of_errors(chance, effect: float, n: int) -> tuple:
    """Networks of one shape, n blocks: S and the error of a step by block, by network and by image."""
    networks = SHAPE[1]
    s, error = (chance.standard_normal(n) for _ in range(2))
    here, there = (0.4 * chance.standard_normal((networks, n)) for _ in range(2))
    if effect:
        error, there = -s + 0.2 * error, -0.9 * here + 0.2 * there
    stages = np.minimum(np.arange(n) * 3 // n, 2)
    rows = made_up_networks({"stiffness_index": s + here, "step_error": error + there}, stages.tolist())
    images = np.tanh(chance.normal(-0.4 * effect, 1.0 / np.sqrt(397.0), n))
    cases = [Relation(f"stages.{k}.blocks.{i}", "residual", "stiffness_index", "step_error", float(r), 400)
             for i, (k, r) in enumerate(zip(stages, images, strict=True))]  # fmt: skip
    return rows, tuple(cases)


@rule(
    "the stiffness index tells where a block's step is wrong",
    "Section 4",
    fixed="after the data: with all correlations known, because one over the blocks of networks of one shape had an "
    "interval over networks, and because correlations of either sign counted; by the old rule the verdict was "
    "supported",
    worlds=Worlds(
        worlds_of_errors, 7, "blocks", "correlations of -0.98 over blocks, -0.98 over networks and -0.4 over images"
    ),
)
def judge_errors(rows: Sequence[dict], errors: Sequence[Relation]) -> tuple[Verdict, str]:
    """Rank correlations of S with Euler's error of a block against the exact flow of its branch, asked in three ways:
    between the blocks of a network, of the means over networks, with an interval over blocks; between networks, within
    each block, their mean over blocks with an interval over networks; and between images, within each block of one
    network, their mean over blocks with an interval over images. Supported where all three are certainly below 0 (the
    more negative S, the larger the error), contradicted where all are certainly above; intervals hold together."""
    level = corrected(3)
    s, wrong = (profile_of(rows, measure) for measure in ("stiffness_index", "step_error"))
    ways: dict[str, tuple[Estimate, str]] = {}
    if s.size and s.shape[1] > 2:
        between = rank_correlation(s.mean(0), wrong.mean(0), stats.spearmanr)[0]
        ways["between blocks"] = correlation_interval(between, s.shape[1], level), "blocks"
    if len(s) > 2:
        by_block = correlate_rows(s.T, wrong.T)
        ways["between networks, within blocks"] = correlation_interval(by_block, len(s), level), "networks"
    own = [row for row in errors if row.measure == "stiffness_index"]
    if own:
        images = correlation_interval([row.r for row in own], min(row.n for row in own), level)
        ways["between images, within blocks"] = images, "images"
    if not ways:
        return NOT_RUN, "n = 0: neither networks nor images were looked at."
    listed = "; ".join(f"{name} {interval_text(e, '+.2f')} (n = {e.n} {units})" for name, (e, units) in ways.items())
    everywhere = listing(correlate_errors(rows, OTHER_MEASURES))
    verdict = of_each({name: e for name, (e, _) in ways.items()}, sign=-1)
    if verdict in (SUPPORTED, CONTRADICTED) and len(ways) < 3:
        verdict = of_cases([*[verdict] * len(ways), *[UNDECIDED] * (3 - len(ways))]).resting_on(verdict)
    return verdict, (
        f"S with Euler's error: {listed}. S is negative: the more negative it is, the larger the error where the "
        "correlation is below 0."
        + (f" Other measures over the blocks of each network, means over networks: {everywhere}." if everywhere else "")
    )


def say_best(rows: Sequence[dict]) -> str:
    """How well S orders the blocks of a network by Euler's error; "" where networks are too few."""
    means = correlate_errors(rows, PREDICTORS)
    s = means.get("stiffness_index")
    if s is None:
        return ""
    largest = abs(s.value) == max(abs(e.value) for e in means.values())
    among = f", the largest of {len(means)} measures" if largest else f", one of {len(means)} measures"
    return (
        "How well the paper's index S orders the blocks of a network by the errors of their Euler steps: Spearman's "
        f"correlation {interval_text(s, '.2f')}, the mean over {s.n} networks{among}."
    )


def judge_every_network(evidence: Evidence) -> list[Finding]:
    return [
        judge_depth(evidence.networks, slice_relation(evidence.measured)),
        judge_stiff(evidence.networks),
        judge_errors(evidence.networks, evidence.errors),
    ]


def show_every_network(page: Page, evidence: Evidence):
    about, rows = evidence.everything
    if not rows:
        return
    page.words(
        f"From a run of {about['date']} (commit {about['commit']}) over {about['images']} test images of "
        f"{about['dataset']} a network, fewer where a table says so. Gates are held: eigenvalues are those of h f'.",
        page.name_older([about], REMEDY),
    )
    page.figure(
        draw_most_negative(rows),
        "most_negative",
        "The most negative real part of h lambda at any image. A mode below the dotted line decays and grows under "
        "Euler's step of size 1; grey lines are networks with learnt step sizes.",
    )
    page.table(
        "every_network",
        network_rows(rows),
        "Where the networks are stiffest, and where their steps have the largest error",
    )
    page.table(
        "controllers",
        controller_rows(rows),
        "Step-size controllers",
        "The difference of live and held is what the derivative of the step size adds to the ends of the spectrum.",
    )
    page.table(
        "predictors_of_all",
        readable(predictors(rows)),
        "Which measure of a block tells Euler's error, over all networks",
        "Spearman's correlation over the blocks of a network, its mean over networks with a 95 % interval; and the "
        "variance of log(error) that a line through log|measure| explains in networks left out of the fit.",
    )
    page.figure(
        draw_errors_of_all(rows, ("stiffness_index",)),
        "index_and_error",
        "Euler's error of a step against the paper's index S of its block, medians over images. A point is a block of "
        "one network; where S orders them, they rise to the right.",
        hero=True,
    )
    page.figure(
        draw_errors_of_all(rows, ("max_re", "min_re", "nsi")),
        "errors_of_all",
        "Euler's error against measures of the step, medians over images. A point is a block of one network.",
    )


def network_rows(rows: list[dict]) -> list[dict]:
    """A row per network: its accuracy, its stiffest block, and the block with the largest error of the step."""
    result = []
    for name, blocks in by_network(rows).items():
        stiffest = min(blocks, key=lowest_real_part)
        worst = max(blocks, key=lambda row: value(row, "step_error"))
        result.append({
            "network": name, "accuracy, %": 100 * blocks[0]["accuracy"], "images": blocks[0]["images"],
            "min Re h lambda": lowest_real_part(stiffest), "in block": stiffest["block"],
            "blocks beyond -2": sum(lowest_real_part(row) < LIMIT for row in blocks),
            "max Re h lambda": max(value(row, "max_re", "largest") for row in blocks),
            "largest error": value(worst, "step_error"), "of block": worst["block"],
        })  # fmt: skip
    return result


def controller_rows(rows: list[dict]) -> list[dict]:
    """A row per controller: its step sizes, and what is added where they are differentiated and not held."""
    result = []
    for controller in dict.fromkeys(row["controller"] for row in rows):
        blocks = [row for row in rows if row["controller"] == controller]
        ends = {}
        for measure, name in zip(LIVE, ("max Re", "min Re"), strict=True):
            column = f"{measure}_held_and_live"
            if not any(column in row for row in rows):
                continue
            changes = [row[column][1] - row[column][0] for row in blocks if column in row]
            ends[f"{name}, live less held"] = float(np.mean(changes)) if changes else float("nan")
            ends[f"{name}, largest change"] = float(np.max(np.abs(changes))) if changes else float("nan")
        sizes = [row["step_size"] for row in blocks]
        result.append({
            "controller": controller, "networks": len({row["network"] for row in blocks}),
            "step size, mean": float(np.mean(sizes)), "smallest": min(sizes), "largest": max(sizes),
            "h rho, median": float(np.median([value(row, "spectral_radius") for row in blocks])), **ends,
            "error, median": float(np.median([value(row, "step_error") for row in blocks])),
        })  # fmt: skip
    return result


def draw_most_negative(rows: list[dict]):
    """The most negative real part of h lambda of every block of every network, against Euler's limit."""
    with style.figure(height=2.9) as (drawing, axes):
        axis = axes[0, 0]
        blocks = sorted({row["block"] for row in rows})
        networks = by_network(rows)
        named = [name for name in networks if "/resnet20-constant" in name or "medium" in name]
        named = named or [name for name in networks if "constant" in name]
        others = {"color": "#9A9A9A", "linewidth": 0.7, "markersize": 2.5, "alpha": 0.8, "label": "learnt step sizes"}

        def line(name: str, look: str, **options):
            x = [blocks.index(row["block"]) for row in networks[name]]
            axis.plot(x, list(map(lowest_real_part, networks[name])), look, **options)

        for name in networks:
            if name not in named:
                line(name, "o-", **others)
                others["label"] = None
        for name, colour in zip(named, style.COLOURS, strict=False):
            row = networks[name][0]
            label = f"constant, {100 * row['accuracy']:.1f} %, seed {row['seed']}"
            line(name, "s-", color=colour, markersize=4, label=label, zorder=3)
        axis.axhline(LIMIT, color="black", linewidth=0.9, linestyle=":")
        axis.text(len(blocks) - 1, LIMIT, "Euler's limit on the real axis", ha="right", va="top", fontsize=8)
        for x, (block, after) in enumerate(itertools.pairwise(blocks)):
            if after - block > 1:
                axis.axvline(x + 0.5, color="#CCCCCC", linewidth=0.8)
        axis.set_xticks(range(len(blocks)), blocks)
        axis.set(xlabel="block (those that change the shape have no eigenvalues)", ylabel="most negative Re h lambda")
        drawing.legend(loc="outside right center")
    return drawing


def draw_errors_of_all(rows: list[dict], measures: Sequence[str]):
    """Euler's error against measures of the step, a point a block of a network, coloured by stage."""
    with style.figure(1, len(measures), height=2.5, sharey=True) as (drawing, axes):
        for axis, measure in zip(axes[0], measures, strict=True):
            for stage in sorted({row["stage"] for row in rows}):
                some = [row for row in rows if row["stage"] == stage and row[measure] and row["step_error"]]
                x, y = ([abs(value(row, name)) for row in some] for name in (measure, "step_error"))
                look = {"color": style.COLOURS[stage], "markersize": 3, "alpha": 0.7, "label": f"stage {stage + 1}"}
                axis.plot(x, y, "o", **look)
            label_errors(axis, measure)
        axes[0, 0].set_ylabel("Euler's error of the step")
        handles, names = axes[0, 0].get_legend_handles_labels()
        drawing.legend(handles, names, loc="outside right center")
    return drawing


def label_errors(axis, measure: str) -> None:
    """Both scales logarithmic, the one of a measure that is negative of its size."""
    negated = measure in ("min_re", "stiffness_index")
    axis.set(xscale="log", yscale="log", xlabel=f"{'-' if negated else ''}{LABELS[measure]}")
    plain_ticks(axis.xaxis, axis.yaxis)


# ---- Constants in the place of learnt step sizes ----


def with_mean_gates(net, images):
    """The network with every controller in the place of which a constant can stand: its mean step size at the images.

    The eigenvalues of h f' are h times those of f' where h is one number. A learnt gate is no number but one a channel
    and image; in its place every block gets the mean of what the gate was, and the network its own states under it.

    Returns the new network and the mean step size of every block, by its name.
    """
    steps = nb.trace(net, images)
    means = dict(zip(steps.names, step_sizes_of(steps).mean(0), strict=True))
    new = net
    for number, (name, block) in enumerate(zip(net.block_names, net.blocks, strict=True)):
        if block.controller.name != "constant":
            new = nb.swap(new, nb.controller("constant", value=float(means[name])), on=[number])
    return new.eval(), means


def swapped_rows(data, images: int, answered: int, work: dict) -> list[dict]:
    """A row per block of every shipped network of seed 0 whose gates multiply its branches.

    images    test images at which the spectra are taken
    answered  test images on which both networks' accuracy is taken
    """
    chosen = first_images(data.test_labels.numpy(), images, len(data.names))
    rows = []
    for about in networks_of(data.name):
        net = nb.pretrained(about.name).eval()
        if about.seed or about.controller == "constant" or any(b.controller.modifies_branch for b in net.blocks):
            continue
        seen = prepare(net, data, data.test_images[chosen])
        other, means = with_mean_gates(net, seen)
        inner = inner_blocks(net)
        values = "extremes" if seen.shape[-1] > 16 else "full"
        gated, plain = (
            nb.block_survey(network, seen, ("increment", "error"), inner, values, "frozen", **work)
            for network in (net, other)
        )
        branch = nb.block_survey(net, seen, "residual", inner, values, **work)
        scores = [100 * accuracy_of(network, data, answered) for network in (net, other)]
        for name in inner:
            row = {"controller": about.controller, "block": net.block_names.index(name) + 1}
            row |= {"h, mean": float(means[name]), "accuracy, %": scores[0], "accuracy, h constant, %": scores[1]}
            for end in ENDS:
                row[end] = mean_of(gated, name, "increment", end)
                row[f"{end}, h constant"] = mean_of(plain, name, "increment", end)
                row[f"{end}, h times branch"] = float(means[name]) * mean_of(branch, name, "residual", end)
            row["error"] = mean_of(gated, name, "error", "step_error")
            row["error, h constant"] = mean_of(plain, name, "error", "step_error")
            rows.append(row)
    return rows


def mean_of(table, block: str, kind: str, measure: str) -> float:
    return float(table[(table["block"] == block) & (table["kind"] == kind)][measure].mean())


def swapped_summary(rows: list[dict]) -> list[dict]:
    """A row per controller: how well h times the branch's spectrum foretells that of gated and of constant steps."""
    result = []
    for controller in dict.fromkeys(row["controller"] for row in rows):
        blocks = [row for row in rows if row["controller"] == controller]

        def ratio(above: str, below: str, blocks=blocks) -> float:
            return float(np.median([row[above] / row[below] for row in blocks]))

        line = {"controller": controller, "blocks": len(blocks)}
        line |= {"accuracy, %": blocks[0]["accuracy, %"], "h constant, %": blocks[0]["accuracy, h constant, %"]}
        for end, name in (("min_re", "min Re"), ("spectral_radius", "h rho")):
            line[f"{name}, gated / foretold"] = ratio(end, f"{end}, h times branch")
            line[f"{name}, constant / foretold"] = ratio(f"{end}, h constant", f"{end}, h times branch")
        line["error, constant / gated"] = ratio("error, h constant", "error")
        result.append(line)
    return result


def show_constants(page: Page, evidence: Evidence):
    page.table(
        "swapped",
        evidence.swapped,
        "Learnt step sizes, and constants in their place",
        "Medians over the blocks of networks of seed 0: ends of the spectrum of h f' over h times those of f', h the "
        "gate's mean; with the gate as it is, and with the constant h in a network that has its own states under it.",
    )


EXHIBITS = (
    Exhibit("Every shipped network (Tables 2 and 5, Sections 4 and 6)", show_every_network, judge_every_network),
    Exhibit("", show_constants),
)
