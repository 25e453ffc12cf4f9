"""The few operations that each kind of number brings, and the steps that all elementary functions share.

An elementary function takes a `Machine` first. It applies + - * /, abs and comparisons to numbers, + - << >> & and
comparisons to integers, and the operations of the machine; each rounds once. Therefore results agree to the bit
wherever doubles are IEEE 754 numbers, unless a compiler contracts a product and a sum into one rounding.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct

import numpy as np

ROUNDER = 6755399441055744.0  # 1.5 * 2^52: a double that has been added to it is rounded to a whole number
ROUNDER_BITS = 0x4338000000000000
BIAS = 1023  # the exponent field of 1.0
SIGN_BIT = -(1 << 63)
HIGH_PART = -(1 << 27)  # keeps 26 of the 53 significant bits: the product of two such numbers is exact


@dataclass(frozen=True)
class Machine:
    """One kind of number: Python floats, arrays, or nodes of an expression graph.

    where   (condition, x, y): x where the condition holds, y elsewhere; both have been evaluated
    rarely  (condition, usual, unusual): like `where` for each number of two tuples, the second of which is the result
            of calling `unusual`; a machine may call it always, or only if some condition holds
    bits    the double as a 64-bit integer with a sign
    number  the double that has these bits; what lies above 64 bits is dropped
    sqrt    the square root, rounded once; NaN below zero
    """

    where: Callable
    rarely: Callable
    bits: Callable
    number: Callable
    sqrt: Callable


_double, _integer, _unsigned = Struct("<d"), Struct("<q"), Struct("<Q")


def _chosen(condition, x, y):
    return x if condition else y


def _chosen_or_called(condition, usual, unusual):
    return unusual() if condition else usual


def _bits(x):
    return _integer.unpack(_double.pack(x))[0]


def _number(bits):
    return _double.unpack(_unsigned.pack(bits & 0xFFFFFFFFFFFFFFFF))[0]


def _root(x):
    return math.nan if x < 0.0 else math.sqrt(x)


FLOATS = Machine(_chosen, _chosen_or_called, _bits, _number, _root)


def _chosen_or_called_for_arrays(condition, usual, unusual):
    if not np.any(condition):
        return usual
    return tuple(np.where(condition, there, here) for here, there in zip(usual, unusual(), strict=True))


def _bits_of_array(x):
    return np.asarray(x).view(np.int64)


def _array_of_bits(bits):
    return np.asarray(bits).view(np.float64)


ARRAYS = Machine(np.where, _chosen_or_called_for_arrays, _bits_of_array, _array_of_bits, np.sqrt)


def polynomial(coefficients, x):
    """The polynomial with these coefficients, lowest first: Horner's scheme for even and for odd powers at once."""
    square = x * x
    last = len(coefficients) - 1
    same, other = coefficients[last], coefficients[last - 1]  # of the parity of the highest power, and of the other
    for k in range(last - 2, -1, -2):
        same = same * square + coefficients[k]
    for k in range(last - 3, -1, -2):
        other = other * square + coefficients[k]
    return same + x * other if last % 2 == 0 else other + x * same


def clamp(machine, x, lowest, highest):
    """x, moved into the interval; NaN stays NaN."""
    return machine.where(x < lowest, lowest, machine.where(x > highest, highest, x))


def with_sign(machine, size, x):
    """`size`, which has no sign, with the sign of x; also where x is -0.0."""
    return machine.number(machine.bits(size) + (machine.bits(x) & SIGN_BIT))


def high_part(machine, x):
    """x with its last 27 bits cleared."""
    return machine.number(machine.bits(x) & HIGH_PART)


def sum_of_two(x, y):
    """x + y rounded, and the rounding error, exactly (Knuth's TwoSum)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def sum_of_large_and_small(large, small):
    """The rounded sum and its error, if |large| >= |small| or large is a multiple of an ulp of small (Dekker)."""
    total = large + small
    return total, small - (total - large)


def power_of_two(machine, exponent):
    """2 ** exponent for an integer in [-1022, 1023]."""
    return machine.number((exponent + BIAS) << 52)
