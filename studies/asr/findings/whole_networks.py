"""The claims about whole networks: how fast they are, how they repaint pictures, and where in a picture they look."""

import numpy as np

from studies.asr import design, style
from studies.asr.findings import worlds
from studies.asr.findings.evidence import Evidence, Groups, over_settings
from studies.lab.statistics import interval_text
from studies.lab.verdicts import NOT_ASKABLE, Verdict, Worlds, of_cases, of_closeness, rule

PAPERS_SIX = ("IE", "SRM", "CBAM", "SE", "DIA", "SPA")  # the modules of Table 1


@rule(
    "Attention slows inference by more than 36 %.",
    "Table 1",
    fixed="after the data: until 2026-11-19 the quartiles of one thread's rounds decided, and the verdict was "
    "contradicted for ResNet-56; ResNet-164 had shown 38 and 30 %",
    exempt="nothing is judged",
)
def judge_speed(e: Evidence) -> tuple[Verdict, str]:
    """Not judged. The claim is of frames per second of a ResNet-164 on a GPU; one thread of a processor is another
    machine, where other things than on a GPU take the time.
    """
    known = {size: found for size, found in e.speeds.items() if set(PAPERS_SIX) <= set(found)}
    words = ["The paper's frames per second are of a GPU."]
    for size, found in known.items():
        six = [found[name] for name in PAPERS_SIX]
        slowdown = [1 - ratio for ratio, _ in six]
        low, high = (np.mean([1 - quarters[end] if quarters else np.nan for _, quarters in six]) for end in (1, 0))
        words.append(
            f"At {size} pixels the six modules of Table 1 cost one thread of a processor "
            f"{100 * np.mean(slowdown):.0f} % of the plain speed on average (rounds' quartiles {100 * low:.0f} to "
            f"{100 * high:.0f}), {100 * np.median(slowdown):.0f} % in the median; speed over the plain network's: "
            f"merged {found['ASR(SE) merged'][0]:.2f}, folded {found['ASR(SE) folded'][0]:.2f}."
        )
    return NOT_ASKABLE, " ".join(words if known else [*words, "n = 0: not measured."])


@rule(
    "With ASR, batch normalisation transfers style as instance normalisation does.",
    "Figure 5",
    fixed="before the data, but for intervals that hold together over pictures and scores: from 2026-11-19, with three "
    "seeds of the first picture seen. Undecided by the old rule and by this one",
    fewest=design.FEWEST_SEEDS,
    negligible=design.ALIKE,
    worlds=Worlds(worlds.paintings, design.FEW, "seeds", "no difference, where a tenth of the loss is on the margin"),
)
def judge_paintings(e: Evidence) -> tuple[Verdict, str]:
    """Content and Gram losses in evaluation mode, of every picture that has three seeds: with ASR within a tenth of
    instance normalisation's mean loss, or beyond, by Welch's intervals that hold together over pictures and losses.
    """
    pictures = [picture for picture in style.STYLES if any(one.painting.style == picture for one in e.painted)]
    settings = {
        f"{picture}, {score}": {
            arm: [
                one.evaluation[place] for one in e.painted if (one.painting.style, one.painting.arm) == (picture, arm)
            ]
            for arm in style.ARMS
        }
        for picture in pictures
        for place, score in enumerate(style.SCORES[:2])
    }
    compared = over_settings(style.INSTANCE, settings, (style.WITH_ASR,), form="+.3f")
    others = over_settings(style.INSTANCE, settings, (style.BATCH, style.HALVED), form="+.3f")
    missing = ", ".join(picture for picture in style.STYLES if picture not in pictures)
    shown = "; ".join(filter(None, (compared.words, missing and f"n = 0: {missing}")))
    words = f"{compared.lacking}Losses above instance normalisation's, in evaluation mode, {shown}."
    if others.beyond:
        words += f" Without ASR, {others.words}."
    cases = [
        of_closeness(
            one, 0.0, design.ALIKE * float(np.mean(settings[case.removeprefix(f"{style.WITH_ASR}, ")][style.INSTANCE]))
        )
        for case, one in compared.beyond.items()
    ]
    return of_cases(cases) if cases else compared.undecided, words


@rule(
    "A bias to the centre is attention's.",
    "Figure 4",
    fixed="after the data: until 2026-11-19 images were the units and every network a case, and the verdict was "
    "contradicted. With two networks of each kind seen, networks became the units",
    fewest=design.FEWEST_NETWORKS,
    worlds=Worlds(worlds.centre, design.FEW, "networks of each kind", "0.05 more mass in the centre", now=2),
)
def judge_centre(e: Evidence) -> tuple[Verdict, str]:
    """The mass of class maps in the central quarter of the picture, mean over images: that of networks with a module
    above the plain networks', by Dunnett's intervals over networks.
    """
    masses: Groups = {}
    for one in e.maps:
        masses.setdefault(one["name"], []).append(one["mass"].value)
    several = [name for name, values in masses.items() if len(values) >= design.FEWEST_NETWORKS and name != "plain"]
    others = [name for name in masses if name not in ("plain", *several)]
    setting = {"above plain": masses} if masses else {}
    compared = over_settings("plain", setting, several or others, others, design.FEWEST_NETWORKS, "+.3f")
    shown = "; ".join(f"{one['name']} (seed {one['seed']}) {interval_text(one['mass'])}" for one in e.maps)
    words = f"{compared.lacking}Mass in the central quarter, uniform 0.25: {shown or 'n = 0'}"
    return compared.verdict(), f"{words}; {compared.words}." if masses else f"{words}."
