"""Made-up evidence for the rules: seeds and networks drawn at random, without an effect or with the paper's.

A world is a function of a generator, the effect (0 or 1) and the number of seeds or networks, and returns what a rule
takes. Without an effect arms differ by chance alone; where a claim is about a threshold, networks lie on it, which is
where a rule errs most. Deviations are about those of the networks that were trained.
"""

from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np

from studies.asr import design, style
from studies.asr.design import FAITHFUL, LITERAL, PLAIN
from studies.asr.findings.evidence import Evidence
from studies.lab.statistics import Estimate

World = Callable[[np.random.Generator, float, int], tuple[Evidence]]
SMALL_DEVIATION, LARGE_DEVIATION = 0.5, 0.2  # points, over seeds
CONSTANT = {  # under constant noise: deviation of the plain networks, and of those with a gate
    "(0.8, 0.8)": (10.0, 1.0),
    "(0.5, 0.5)": (1.8, 0.5),
    "(0.8, 0.5)": (1.8, 0.7),
    "(0.5, 0.2)": (0.2, 1.1),
    "(0.8, 0.8), ResNet-56": (2.0, 7.0),
}
RANDOM = {"random 0.1": (0.26, 0.13), "random 0.2": (0.29, 0.14), "random 0.3": (0.59, 0.12)}  # deviations of Table 8
MODULES = {  # how far modules lie from their mean, and how far their networks do, in parts of what a rule is about
    "SE": (-1.0, 1.0),
    "ECA": (0.6, 0.2),
    "IE": (0.0, 0.5),
    "SRM": (1.0, 0.1),
    "FCA": (-0.6, 1.0),
}


def arms(chance, effect: float, n: int, gains: Mapping[str, float], deviation: float) -> dict[str, list]:
    """Results of arms: of each as many accuracies as seeds, around 60 and what its gain adds."""
    return {
        arm: [
            SimpleNamespace(seed=seed, accuracy=x, blocks=[])
            for seed, x in enumerate(chance.normal(60.0 + effect * gain, deviation, n))
        ]
        for arm, gain in gains.items()
    }


def accuracies(places: Mapping[tuple[str, str], Mapping[str, float]], deviation: float = SMALL_DEVIATION) -> World:
    """Accuracies by part and column of a table, with what the effect adds to every arm."""

    def world(chance, effect, n):
        return (Evidence({place: arms(chance, effect, n, gains, deviation) for place, gains in places.items()}),)

    return world


def both_scales(gains: Mapping[str, float]) -> World:
    """The controls at the small scale; with more than three seeds of them, three at the large one, too."""

    def world(chance, effect, n):
        rows = {("small", ""): arms(chance, effect, n, gains, SMALL_DEVIATION)}
        if n > design.FEW:
            rows["controls", ""] = arms(chance, effect, design.FEW, gains, LARGE_DEVIATION)
        return (Evidence(rows),)

    return world


def ablation(part: str, gains: Mapping[str, float]) -> World:
    """The arms of a part at the small scale, beside ASR as it usually is."""
    usual = {FAITHFUL: 0.0, **{arm: gain for arm, gain in gains.items() if arm in design.CONTROLS}}
    return accuracies({("small", ""): usual, (part, design.SMALL_SCALE): gains})


def constant_noise(other: str) -> World:
    """ASR and another arm under every constant noise, with the paper's gains."""

    def world(chance, effect, n):
        rows = {
            ("noise", name): arms(chance, effect, n, {FAITHFUL: design.PAPERS_NOISE_GAINS[name]}, gated)
            | arms(chance, effect, n, {other: 0.0}, plain if other == PLAIN else gated)
            for name, (plain, gated) in CONSTANT.items()
        }
        return (Evidence(rows),)

    return world


def random_noise(chance, effect, n):
    """ASR and the plain network under random noise, with the paper's gain."""
    gains = {FAITHFUL: design.PAPERS_EFFECTS["random noise"], PLAIN: 0.0}
    return accuracies({("noise", name): gains for name in RANDOM})(chance, effect, n)


def steadiness(chance, effect, n):
    """Both under random noise with equal means, and with the paper's deviations over seeds."""
    rows = {
        ("noise", name): arms(chance, 0.0, n, {PLAIN: 0.0}, plain)
        | arms(chance, 0.0, n, {FAITHFUL: 0.0}, steady if effect else plain)
        for name, (plain, steady) in RANDOM.items()
    }
    return (Evidence(rows),)


def bounds(chance, effect, n):
    """log10 of the bounds of ASR and the plain network."""
    rows = {
        arm: [SimpleNamespace(bound=(x, 0.0)) for x in chance.normal(6.5 - effect * (arm != PLAIN), 0.1, n)]
        for arm in (PLAIN, FAITHFUL, LITERAL)
    }
    return (Evidence({("small", ""): rows}),)


def by_module(chance, n: int, mean: float, deviation: float, spread: float = 0.0, modules=tuple(MODULES)):
    """Module, seed and a number for every network: modules differ in their means and in how their networks scatter."""
    for name in modules:
        apart, scatter = MODULES[name]
        for seed, value in enumerate(chance.normal(mean + spread * apart, deviation * scatter, n)):
            yield name, seed, float(value)


def share(name: str, after: float, before: float = np.nan, origin: float = np.nan) -> SimpleNamespace:
    """The shares of a network of one block."""
    return SimpleNamespace(name=name, share=[SimpleNamespace(value=after)], untrained=[before], origin=[origin])


def approach(chance, effect, n):
    """Shares that training makes larger by 0.1 to 0.3, or that only scatter around what they were."""
    drawn = by_module(chance, n, 0.2 * effect, 0.03, 0.1 * effect, ("SE", "ECA", "FCA"))
    return (Evidence(shares=[share(name, 0.5 + change, 0.5) for name, _, change in drawn]),)


def stripes(chance, effect, n):
    """Smallest shares of networks on the threshold, or near 1."""
    drawn = by_module(chance, n, design.CONSTANT_SHARE + 0.08 * effect, 0.03)
    return (Evidence(shares=[share(name, smallest) for name, _, smallest in drawn]),)


def memory(chance, effect, n):
    """Gates that their beginning explains by a half, or by a tenth."""
    drawn = by_module(chance, n, 0.5 - 0.4 * effect, 0.03, 0.0, ("SE", "ECA", "FCA"))
    return (Evidence(shares=[share(name, 0.5, origin=max(explained, 0.0) ** 0.5) for name, _, explained in drawn]),)


def replaced(mean: float, null: float, spread: float) -> World:
    """Points gained by constants in place of gates, on average over modules: `null` without an effect."""

    def world(chance, effect, n):
        drawn = by_module(chance, n, mean if effect else null, 1.0, spread * effect)
        changes = [
            SimpleNamespace(name=name, seed=seed, share=0.5 + 0.01 * seed, change=SimpleNamespace(value=x))
            for name, seed, x in drawn
        ]
        return (Evidence(replaced=changes),)

    return world


def rest(chance, effect, n):
    """Points that are lost after fine-tuning: on the margin around the paper's, or the paper's."""
    rows: dict[str, list] = {}
    for name, seed, x in by_module(chance, n, -design.PAPERS_REST + design.ABOUT * (1 - effect), 1.0, 5.0):
        rows.setdefault(name, []).append(SimpleNamespace(seed=seed, beyond=(x, np.nan, np.nan)))
    return (Evidence({("finetuned", ""): rows}),)


def first_decay(chance, effect, n):
    """Movements of gates behind the decay: on the threshold, or a third of it."""
    drop = design.DYNAMICS["drops"][0]
    rows: dict[str, list] = {}
    watched = {name.partition(",")[0]: name for name in design.AT_THE_DROP}
    for name, _, log in by_module(chance, n, np.log(design.STILL) + effect * np.log(0.3), 0.3, 0.0, tuple(watched)):
        records = [
            {"epoch": drop + k, "moved": {"gate 0": x, "scales": x}} for k, x in enumerate((0.4, float(np.exp(log))))
        ]
        rows.setdefault(watched[name], []).append(SimpleNamespace(recipe={}, log=records))
    return (Evidence({("dynamics", ""): rows}),)


def spatial(chance, effect, n):
    """Shares of the variance that are the position's: a half, or 0.2."""
    shares = ([{"share": [x]} for x in chance.normal(0.5 - 0.3 * effect, 0.06, n)] for _ in range(2))
    return (Evidence(spatial=next(shares), attention=next(shares)),)


def paintings(chance, effect, n):
    """Losses of pictures: with ASR a tenth above instance normalisation's, or the same."""
    painted = [
        SimpleNamespace(
            painting=SimpleNamespace(style=picture, arm=arm),
            evaluation=(chance.normal(mean, 0.045), chance.normal(0.55 * mean, 0.01)),
        )
        for picture in style.STYLES
        for arm, mean in ((style.INSTANCE, 1.0), (style.WITH_ASR, 1.0 if effect else 1.0 + design.ALIKE))
        for _ in range(n)
    ]
    return (Evidence(painted=painted),)


def centre(chance, effect, n):
    """Mass of class maps in the central quarter: 0.05 more with a module, or no more."""
    maps = [
        {"name": name, "seed": seed, "mass": Estimate(x, np.nan, np.nan)}
        for name in ("plain", "SE", "SRM")
        for seed, x in enumerate(chance.normal(0.5 + 0.05 * effect * (name != "plain"), 0.01, n))
    ]
    return (Evidence(maps=maps),)
