"""What is fixed before anything is measured: sizes, the stand-in for a ground truth, and the rules of the verdicts."""

PRESETS = {"quick": {"images": 500, "resamples": 100}, "full": {"images": 10_000, "resamples": 1000}}
SIMILAR = 500  # test images over which CKA is computed, from all pairs of them at once
HALVES = 60  # of these images, for the intervals of CKA
FEATURED = 200  # test images whose features are removed
SHARE = 0.1  # of the elements of a slope that counts as its large ones
DEGREES = (0.1, 0.25, 0.5)  # M1 of property (1)
LARGE = 2.0  # a first block with this many times the index of the others counts as "extremely large"
FEWEST_BLOCKS = 5  # counted blocks of a stage that a correlation along a trajectory needs
DROPPED = ("constant", "SE", "StepNet")  # the networks whose blocks are dropped; --all for every one
NSI, CKA = "NSI", "CKA"
MEASURES = (NSI, CKA)
WORDS = {NSI: "|log NSI - log NSI of the proxy|", CKA: "1 - CKA with the proxy"}
PROXIES = 3  # of the best networks that stand in for a ground truth in turn
PROXY = (
    "The stand-in for a ground truth trajectory (Definition 3) is that of the network with the highest test accuracy. "
    "The paper says that such trajectories are not unique: how far other seeds of the same controller are from it is "
    "the floor that any distance must be seen against, and the next best networks take its place in turn."
)
RULES = {
    "nearer": "a controller with attention counts as nearer than constant step sizes where the paired interval over "
    "images of the difference lies below zero and all of its seeds lie below all plain ones; supported where all do; "
    "the proxy and the other seeds of its controller are left out; undecided without such a seed, and where the proxy "
    f"itself is a plain network; one verdict from both measures and from the {PROXIES} best networks as proxy",
    "accumulates": "Kendall's correlation of distance and depth within each network; supported where a sign test over "
    "networks says beyond chance that it is positive, contradicted where negative",
    "better": "Kendall and Spearman over networks, the proxy left out, of accuracy and nearness; both, their intervals "
    "and their p-values must agree",
    "property (1)": f"the share of images with a block whose NSI is at least (1 + M1) times the mean of its stage, for "
    f"M1 in {', '.join(map(str, DEGREES))}; supported under a reading where it is above one half in every network at "
    "each, contradicted where below at each",
    "first blocks": f"the mean over images of the ratio of a stage's first block to the median of the others; "
    f"supported where its interval lies above {LARGE:g} in every stage and network, contradicted where below in all",
    "importance": "Spearman's correlation of NSI and rise of the loss when a counted block is dropped, one a network; "
    "supported where Student's interval of the mean over networks lies above zero, contradicted where below",
    "large features": f"the loss rises more without the {100 * SHARE:g} % largest elements of a slope than without "
    "so many of the smallest as have the same norm; paired intervals over images, one per network and counted block; "
    "supported where all lie above zero",
    "Figure 9b": f"the mean over images of Spearman's correlation of step size and NSI along the counted blocks of a "
    "stage, averaged over the stages; supported where its interval lies below zero for every network, contradicted "
    f"where above for every one; undecided, and pooled over all stages, with fewer than {FEWEST_BLOCKS} counted blocks "
    "in a stage, so judged on deep networks where there are any",
}
