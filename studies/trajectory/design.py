"""What is fixed before anything is measured: sizes, distances, and the stand-in for a ground truth."""

PRESETS = {"quick": {"images": 500, "resamples": 100}, "full": {"images": 10_000, "resamples": 1000}}
SIMILAR = 500  # test images over which CKA is computed, from all pairs of them at once
HALVES = 60  # of these images, for the intervals of CKA
FEATURED = 200  # test images whose features are removed
SHARE = 0.1  # of the elements of a slope that counts as its large ones
DEGREES = (0.1, 0.25, 0.5)  # M1 of property (1)
LARGE = 2.0  # a first block with this many times the index of the others counts as "extremely large"
FEWEST_BLOCKS = 5  # counted blocks of a stage that a correlation along a trajectory needs
FEWEST_SEEDS = 2  # of every controller whose distances are compared
FEWEST_DEEP = 3  # seeds of a deep network
DROPPED = ("constant", "SE", "StepNet")  # the networks whose blocks are dropped; --all for every one
NSI, SHAPE, CKA = "NSI", "shape", "CKA"
MEASURES = (NSI, SHAPE, CKA)
LEFT = (SHAPE, CKA)  # what does not see how large the branches of a network are in all
WORDS = {
    NSI: "|log NSI - log NSI of the proxy|",
    SHAPE: "|log - log of the proxy| of NSI over its scale",
    CKA: "1 - CKA with the proxy",
}
PROXIES = 3  # of the best networks that stand in for a ground truth in turn
PROXY = (
    "The stand-in for a ground truth trajectory (Definition 3) is that of the network with the highest test accuracy. "
    "The paper says that such trajectories are not unique: how far other seeds of the same controller are from it is "
    "the floor that any distance must be seen against, and the next best networks take its place in turn."
)
