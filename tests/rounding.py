"""What rounding can do: bounds for tests that hold on every machine, because they follow from the arithmetic.

Another processor or another library adds the same numbers in another order, or rounds a product and a sum once where
this one rounds twice. A result then differs as if numbers had been moved to their neighbours on the way. How far that
moves the result is measured here, by moving the numbers; a literal bound is what rounding did on one machine.

    error <= 10^-digits |reference| + ROUNDINGS * amplification(function, start)

ROUNDINGS is 10: a hundred roundings of one ulp for each number that is moved add to that where they are independent of
each other. Where roundings are counted, the count stands in its place.
"""

import copy

import numpy as np

EPS = 2.0**-52  # of double precision: what one ulp is to the number at most; a rounding is half of it
SINGLE_EPS = 2.0**-23
ROUNDINGS = 10.0


class UlpMover:
    """Moves each number of an array up or down by an ulp or leaves it, at random, but the same on every run."""

    def __init__(self, seed: int):
        self.generator = np.random.default_rng(seed)

    def __call__(self, values) -> np.ndarray:
        values = np.asarray(values)
        direction = self.generator.integers(-1, 2, values.shape)
        away = np.array([-np.inf, 0.0, np.inf], values.dtype)[direction + 1]
        return np.where(direction == 0, values, np.nextafter(values, away))


def spread(run, draws: int = 8) -> np.ndarray:
    """How far each number of `run(move)` is moved: the largest of some draws, no less than an ulp of the number.

    run    called with a function `move` that it applies to numbers on the way: an `UlpMover`, or one that moves nothing
    draws  how many movers there are
    """
    result = np.asarray(run(np.asarray))
    moved = [np.abs(np.asarray(run(UlpMover(seed))) - result) for seed in range(draws)]
    return np.maximum(np.max(moved, axis=0), np.spacing(np.abs(result)))


def amplification(function, start, draws: int = 8) -> np.ndarray:
    """How far an ulp in `start` moves each number of `function(start)`; see `spread`."""
    return spread(lambda move: function(move(start)), draws)


def bound_of_sum(*terms, roundings: float, eps: float = EPS):
    """What a sum of these terms can be wrong by: so many roundings of half an ulp, of the sum of their sizes at most.

    terms      arrays or numbers that are added; each broadcasts
    roundings  of products and sums on the way to each number of the result
    """
    return 0.5 * eps * roundings * sum(np.abs(term) for term in terms)


def amplification_of_weights(net, *inputs, draws: int = 8) -> float:
    """How far an ulp in every weight and statistic moves the output of a network, relative to its largest number."""
    import torch

    def output(move):
        moved = copy.deepcopy(net)  # running statistics may move in a pass, too
        with torch.no_grad():
            for tensor in (*moved.parameters(), *moved.buffers()):
                if tensor.is_floating_point():
                    tensor.copy_(torch.from_numpy(move(tensor.cpu().numpy()).reshape(tensor.shape)))
            answer = moved(*inputs)
        return (answer[0] if isinstance(answer, tuple) else answer).cpu().numpy()

    return float(spread(output, draws).max() / np.abs(output(np.asarray)).max())
