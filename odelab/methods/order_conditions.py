"""Rooted trees: the order conditions of Runge-Kutta methods (Butcher; Hairer, Nørsett and Wanner II.2).

A tree is the sorted tuple of its subtrees; `()` is the single node. A method has order p when
sum_i b_i Phi_i(tree) = 1 / gamma(tree) for every tree with at most p nodes.

For a Rosenbrock method the trees are the same, and so are their densities; only a node with one branch takes
alpha + Gamma where all others take alpha (Hairer and Wanner, Solving ODEs II, IV.7, with the exact Jacobian).

For systems y' = f(y, z), 0 = g(y, z) of index 1 there are trees of two kinds (Roche 1988; Hairer and Wanner, VI.4): a
`Mixed` tree of z stands for a derivative of g with two branches or more. It has as many nodes as its branches, and
takes the inverse of alpha + Gamma. (With one branch, a tree of y, it would have the weights of that.)
"""

import functools
import operator
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

ROUNDING = 1e-13  # the error allowed in an order condition, for coefficients that are published as decimals


@functools.cache
def trees(nodes: int) -> tuple[tuple, ...]:
    """All rooted trees with that many nodes: 1, 1, 2, 4, 9, 20, 48, 115 for 1 to 8."""
    return tuple(sorted(set(_forests(nodes - 1, nodes - 1))))


def _forests(nodes, largest):
    if nodes == 0:
        yield ()
    for size in range(min(nodes, largest), 0, -1):
        for tree in trees(size):
            for rest in _forests(nodes - size, size):
                yield tuple(sorted((tree, *rest)))


@functools.cache
def node_count(tree) -> int:
    return 1 + sum(node_count(branch) for branch in tree)


@functools.cache
def density(tree) -> int:
    """The density gamma(tree): the product, over all nodes, of the number of nodes in the subtree that begins there."""
    product = node_count(tree)
    for branch in tree:
        product *= density(branch)
    return product


class ElementaryWeights:
    """Phi_i(tree) of a coefficient matrix, each computed once; a node with one branch takes `single` instead."""

    def __init__(self, a, single=None):
        self.a = np.array(a)
        self.single = self.a if single is None else np.array(single)
        self.inner = {}  # sum_j a_ij Phi_j(tree)

    def at(self, tree):
        if len(tree) == 1 and self.single is not self.a:
            return self.single @ self.at(tree[0])
        if not tree:
            return np.ones(len(self.a), dtype=self.a.dtype)
        return functools.reduce(operator.mul, map(self._inner, tree))

    def of(self, every) -> np.ndarray:
        """Phi of all these trees, one row each."""
        return np.array([self.at(tree) for tree in every])

    def _inner(self, tree):
        if tree not in self.inner:
            self.inner[tree] = self.a @ self.at(tree)
        return self.inner[tree]


def trees_up_to(order) -> list[tuple]:
    return [tree for nodes in range(1, order + 1) for tree in trees(nodes)]


def defects(a, b, order, single=None):
    """(tree, sum_i b_i Phi_i - 1/gamma) for every tree up to `order`; exact where the coefficients are Fractions."""
    every = trees_up_to(order)
    sums = ElementaryWeights(a, single).of(every) @ np.array(b)
    wanted = np.array([Fraction(1, density(tree)) for tree in every]).astype(sums.dtype)
    return zip(every, sums - wanted, strict=True)


class Mixed(NamedTuple):
    """A tree of a system with algebraic equations: of y, or of z, and its branches."""

    of_z: bool
    branches: tuple["Mixed", ...]


@functools.cache
def mixed_trees(nodes: int, of_z: bool) -> tuple[Mixed, ...]:
    """All trees of one kind with that many nodes."""
    found = {Mixed(of_z, rest) for rest in _mixed_forests(nodes - (not of_z), nodes - 1)}
    return tuple(sorted(tree for tree in found if not of_z or len(tree.branches) > 1))


def _mixed_forests(nodes: int, largest: int) -> Iterator[tuple[Mixed, ...]]:
    if nodes == 0:
        yield ()
    for size in range(min(nodes, largest), 0, -1):
        for tree in (*mixed_trees(size, False), *mixed_trees(size, True)):
            for rest in _mixed_forests(nodes - size, size):
                yield tuple(sorted((tree, *rest)))


@functools.cache
def mixed_count(tree: Mixed) -> int:
    return (not tree.of_z) + sum(map(mixed_count, tree.branches))


@functools.cache
def mixed_limit(tree: Mixed) -> Fraction:
    """What sum_i b_i Phi_i(tree) is to be, as it is of the solution."""
    product = Fraction(1) if tree.of_z else Fraction(1, mixed_count(tree))
    for branch in tree.branches:
        product *= mixed_limit(branch)
    return product


def is_of_dae_order(alpha, beta, b, order: int) -> bool:
    """Does a Rosenbrock method satisfy the conditions of this order for y, and those of one order less for z?

    alpha, beta    the weights of the increments in a stage's state, and with those of J times the increments added
    b              the weights of the step
    """
    inverse = np.linalg.inv(beta)

    @functools.cache
    def at(tree):
        """Phi_i(tree), and the sum of the sizes of the terms in it."""
        if len(tree.branches) == 1 and not tree.of_z:
            (inner, size), matrix = at(tree.branches[0]), beta
            return matrix @ inner, np.abs(matrix) @ size
        weights, sizes = np.ones(len(b)), np.ones(len(b))
        for inner, size in map(at, tree.branches):
            weights, sizes = weights * (alpha @ inner), sizes * (np.abs(alpha) @ size)
        return (inverse @ weights, np.abs(inverse) @ sizes) if tree.of_z else (weights, sizes)

    def is_met(tree):
        weights, sizes = at(tree)
        return abs(b @ weights - float(mixed_limit(tree))) <= ROUNDING * max(1.0, float(np.abs(b) @ sizes))

    return all(map(is_met, (*mixed_trees(order, False), *mixed_trees(order - 1, True))))


def defects_inside(phi: ElementaryWeights, rows, powers, order):
    """(tree, defect) of the conditions sum_i B_i(theta) Phi_i = theta^nodes / gamma, the worst of all powers of theta.

    In floats, relative to the terms that have to cancel. Row k of `rows` has the coefficients of theta^powers[k].
    """
    every = trees_up_to(order)
    terms = rows * phi.of(every)[:, None]
    wanted = np.array([[(power == node_count(tree)) / density(tree) for power in powers] for tree in every])
    found = np.abs(terms.sum(axis=2) - wanted) / np.maximum(1.0, np.abs(terms).sum(axis=2))
    return zip(every, found.max(axis=1), strict=True)


def check(method, field: str, found, order: int, what: str = "it", allowed: float = ROUNDING):
    """Refuse coefficients of which a condition, (tree, defect), is missed by more than what rounding explains."""
    for tree, defect in found:
        if not abs(defect) <= allowed:
            raise ValueError(
                f"`{field}` of {method.name} misses the order-{node_count(tree)} condition of tree {tree} by "
                f"{float(defect):.3g}; {what} is not of order {order}."
            )


def check_orders(method, *fields: str):
    """Refuse an order that is no whole number from 1 up: of no other order is there a condition to check."""
    for field in fields:
        order = getattr(method, field)
        if isinstance(order, bool) or not isinstance(order, int | np.integer) or order < 1:
            raise ValueError(f"`{field}` of {method.name} must be a whole number from 1 up, got {order!r}.")


def check_estimate(method, field: str, weights):
    """Refuse an estimate of the error that is zero, but for rounding, whatever the error is."""
    if not max(map(abs, weights)) > 1e-13:
        raise ValueError(
            f"`{field}` of {method.name} gives an estimate of the error that is always zero; leave it out for a method "
            "of fixed steps."
        )
