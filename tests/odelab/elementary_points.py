"""Arguments where errors of elementary functions are measured: everywhere, and where the way of computing changes."""

import math
from dataclasses import dataclass

import numpy as np

NEAREST_TO_A_QUARTER_TURN = 6381956970095103 * 2.0**797  # of all doubles


@dataclass
class Random:
    """Arrays of random numbers, from a generator with a seed."""

    generator: np.random.Generator
    count: int = 400

    def between(self, low, high):
        return self.generator.uniform(low, high, self.count)

    def sizes(self, low, high):
        """2 to powers between low and high."""
        return 2.0 ** self.between(low, high)

    def signed(self, low, high):
        return self.sizes(low, high) * self.generator.choice([-1.0, 1.0], self.count)


def neighbours(*points):
    return np.concatenate([x + np.spacing(x) * np.arange(-2, 3) for x in np.asarray(points, float)])


def points(name, random):
    """Arrays of arguments of a function; of two arguments, pairs of arrays."""
    for family in (_exponential, _logarithmic, _circular, _inverse_circular, _of_two):
        found = family(random.between, random.sizes, random.signed)
        if name in found:
            return found[name]
    raise ValueError(f"`name` is {name!r}, which has no points: add them to a family of functions here")


def _exponential(between, sizes, signed):
    halves_of_log2 = neighbours(*(0.5 * math.log(2.0) * np.arange(1, 30)))
    common = (between(-745.1, 709.7), between(-2, 2), signed(-70, 9), halves_of_log2, -halves_of_log2)
    return {
        "exp": (*common, between(-745.1, -707)),
        "expm1": (*common, signed(-1074, -50)),
        "exp2": (between(-1074, 1023.9), between(-1, 1), signed(-70, 9), neighbours(0.5, 1.5, -0.5, -1.5)),
        "sinh": (*common, between(709, 710.4), signed(-1074, -20)),
        "cosh": (*common, between(709, 710.4)),
        "tanh": (between(-25, 25), between(-1, 1), signed(-1074, 5)),
    }


def _logarithmic(between, sizes, signed):
    near_one = (between(0.5, 2), 1.0 + signed(-52, -5))
    common = (*near_one, sizes(-1074, 1024), sizes(-1074, -1020), neighbours(0.5**0.5, 2**0.5))
    return {
        **dict.fromkeys(("log", "log2", "log10"), common),
        "log1p": (sizes(-60, 1023.9), between(-1, 2), signed(-60, -0.01), sizes(-52, -2) - 1.0),
        "asinh": (signed(-60, 1023.9), between(-3, 3), sizes(58, 62)),
        "acosh": (sizes(0, 1023.9), between(1, 3), 1.0 + sizes(-52, 0), sizes(58, 62)),
        "atanh": (signed(-60, 0), between(-1, 1), 1.0 - sizes(-52, -1)),
        "cbrt": (sizes(-1074, 1024), sizes(-1074, -1022), between(0.3, 9)),
    }


def _circular(between, sizes, signed):
    quarter_turns = 0.5 * math.pi * np.concatenate([np.arange(1, 60), np.floor(sizes(6, 30))])
    large = (signed(30, 1023.9), NEAREST_TO_A_QUARTER_TURN)
    return dict.fromkeys(("sin", "cos", "tan"), (between(-9, 9), signed(-40, 30), neighbours(*quarter_turns), *large))


def _inverse_circular(between, sizes, signed):
    bounds = neighbours(math.tan(math.pi / 8), math.tan(3 * math.pi / 8), 1.0)
    common = (between(-1, 1), between(-1, 1), signed(-60, 0), 1.0 - sizes(-52, -1), neighbours(0.5))
    return {**dict.fromkeys(("asin", "acos"), common), "atan": (between(-3, 3), signed(-60, 1023), bounds)}


def _of_two(between, sizes, signed):
    square = (between(-2, 2), between(-2, 2))
    return {
        "atan2": (
            square,
            (signed(-1040, 1023), signed(-1022, 1023)),
            (sizes(-1074, -1060), sizes(-1074, -1060)),
            (sizes(1000, 1024), sizes(990, 1024)),
        ),
        "hypot": (square, (signed(-1074, -490), signed(-1074, -490)), (sizes(490, 1023), sizes(490, 1023))),
        "pow": (
            (between(0, 3), between(-20, 20)),
            (sizes(-1074, 1024), between(-0.99, 0.99)),
            (1.0 + signed(-50, -3), signed(2, 11)),
            (between(0.7, 1.4), between(-2000, 2000)),
        ),
    }
