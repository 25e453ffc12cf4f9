"""What is added at a step, as the normal form p x + sum q_i f_i, and what follows from it: state, slope and step size.

A residual step is a sum of things computed from one state. The state x is the sum's immediate dominator, the last
operation all of whose consequences meet again there. The sum is taken apart through sums, products, quotients and
changes of layout in any nesting, down to leaves f_i that are none of these, each with a coefficient q_i, a product of
factors. Which side of a product is a factor and which is the leaf, `judging` decides.

mean        p + q = 1: x + q (f - x)
tableau     several f_i are evaluations of one function, with constant q_i: h = sum q_i, S = sum q_i f_i / h
otherwise   what all q_i have in common is h p, and S = sum q_i f_i / (h p)
"""

import functools
import math
from typing import Any, NamedTuple

import torch

from netbridge.foreign.algebra import add, is_one, multiply, ratio
from netbridge.foreign.judging import Atom, Judging
from netbridge.foreign.operations import Branch, Factor, Place, Product, Step, is_within

LONGEST_SHORTCUT = 6  # operations: pool, pad, convolution, normalisation and some slicing
MOST_TERMS = 100  # of stages that are taken apart, and the sums that they were; SSP-RK(10, 4) has 50
WEIGHTED = set("linear conv1d conv2d conv3d conv_transpose2d matmul bmm mm addmm einsum bilinear embedding".split())  # noqa: SIM905


class Term(NamedTuple):
    """A summand of the normal form.

    leaf     the operation that made f
    place    where f stood last before it was multiplied, added or laid out
    layouts  the changes of layout between that place and the sum
    factors  of its coefficient, the outermost first
    own      factors that belong to f
    around   the sums it stands in, from the outermost: where each stands, its layouts, how many factors are outside
    """

    leaf: int
    place: Place
    layouts: tuple[int, ...] = ()
    factors: Product = ()
    own: Product = ()
    around: tuple[tuple[Place, tuple[int, ...], int], ...] = ()
    moved: tuple[int, ...] = ()  # all changes of layout between the leaf and the sum

    @property
    def is_constant(self) -> bool:
        return not any(factor.live for factor in self.factors)


class Reading(NamedTuple):
    """What a normal form says of a step."""

    shortcut: Place
    branches: tuple[Branch, ...]
    size: tuple[Product, ...]
    scale: tuple[Product, ...] = ()
    tableau: tuple[int, ...] = ()
    layouts: tuple[int, ...] = ()  # between the shortcut and the sum
    stages: tuple[int, ...] = ()  # the sums that were taken apart though they are used elsewhere as well


class Sums(Judging):
    """Finds every sum of a shortcut and a branch, also those inside the branch of another."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.orders: dict[tuple[int, ...], tuple] = {}

    @functools.cached_property
    def candidates(self) -> list[Step]:
        """Every sum of a shortcut and a branch, also inside the branch of another and around a whole network."""
        needed = set().union(*(self.between(0, output) for output in self.outputs)) if self.outputs else set()
        return [step for i in sorted(needed) if (step := self.candidate(i)) is not None]

    def candidate(self, i: int) -> Step | None:
        operation = self.operations[i]
        if not operation.shape or self.axis[i] is None or len(operation.shape) < 2:
            return None
        summands = self.summands(i)
        if len(summands) < 2:
            return None
        source = self.dominator[summands[0].place.operation]  # of a stack, not of its sum
        state, identity = self.resolve(source), True
        terms = self.terms_of(summands, {source, state})
        if self.is_multiple(terms, {source, state}):
            return None
        outer = self.scaling_behind(i)[0]
        reading = self.read_stages(summands, terms, {source, state}, outer) or self.read(terms, {source, state}, outer)
        if reading is None and (context := self.find_conditional(summands)) is not None:
            state, reading = context, self.read(self.terms_of(summands, {context}), {context}, 1.0)
        if reading is None:
            identity, reading = False, self.read_projection(source, summands)
        if reading is None:
            return None
        place = reading.shortcut
        overwrites = self.operations[place.operation].in_place and place.path == (0,)
        name, shape = operation.module, operation.shape
        start = self.features(state) if identity else self.features(i)
        return Step(
            name, name, i, state, i, identity, shape, start, place, reading.branches, overwrites, reading.size,
            reading.scale, reading.tableau, self.axis[i] or 0, layouts=reading.layouts, stages=reading.stages,
        )  # fmt: skip

    # sums and products, taken apart

    def summands(self, i: int) -> list[Term]:
        """What operation i adds up, [] unless all of it has the shape of the sum and is computed from the input."""
        operation = self.operations[i]
        name = operation.name
        own: Product = ()
        found: list[tuple[Any, ...]] = []
        if name in ("add", "sub"):
            factors = [Factor(None, number=-1.0)] if name == "sub" else []
            if operation.number(2) not in (None, 1):
                factors.append(Factor(Place(i, (2,))))
            found = [(operation.operand(0), (0,), ()), (operation.operand(1), (1,), tuple(factors))]
        elif name in ("addcmul", "addcdiv"):
            product = self.split_product(i, (1, 2))
            if product is None:
                return []
            value = (Factor(Place(i, (3,))),) if operation.number(3) not in (None, 1) else ()
            found = [(operation.operand(0), (0,), ()), (product.leaf, product.place.path, (*value, *product.factors))]
            own = product.own
        elif name == "lerp":  # (1 - w) x + w y
            live = self.is_live(operation.operand(2))
            weights = (Factor(Place(i, (2,)), how, live=live) for how in ("rest", "times"))
            found = [(operation.operand(side), (side,), (weight,)) for side, weight in enumerate(weights)]
        elif name == "sum":
            stack = operation.operand(0)
            if stack is not None and self.operations[stack].name == "stack" and self.users[stack] == [i]:
                stacked = self.operations[stack]
                if (operation.number(1) or 0) == (stacked.number(1) or 0) and isinstance(stacked.operand(0), tuple):
                    found = [(item, (0, k), ()) for k, item in enumerate(stacked.operand(0))]
                    i = stack
        found = [one for one in found if not self.is_zero(one[0])]
        if not all(self.is_live(j) and self.operations[j].shape == operation.shape for j, *_ in found):
            return []
        terms = [Term(j, Place(i, path), factors=factors) for j, path, factors in found]
        return [*terms[:-1], terms[-1]._replace(own=own)] if terms else []

    def split_product(self, i: int, sides: tuple[int, int]) -> Term | None:
        """A product or quotient as coefficient and leaf; None where it is one thing that is no product of two.

        sides   which of its arguments are multiplied, or divided the one by the other
        """
        operation = self.operations[i]
        over = operation.name in ("div", "addcdiv")

        def factor(side):
            how = "over" if over and side == sides[1] else "times"
            return Factor(Place(i, (side,)), how, live=self.is_live(operation.operand(side)))

        def rest(side, *factors):
            fits = self.is_live(j := operation.operand(side)) and self.operations[j].shape == operation.shape
            return Term(j, Place(i, (side,)), factors=factors) if fits and not (over and side == sides[1]) else None

        alive = [side for side in sides if self.is_live(operation.operand(side))]
        if len(alive) < 2:
            return rest(alive[0], factor(sides[1 - sides.index(alive[0])])) if alive else None
        chosen, _ = self.coefficients(i, sides)
        for side, other in (sides, sides[::-1]):
            atoms = self.atoms(i, other, over and other == sides[1])
            if set(atoms) <= set(chosen) and (term := rest(side, factor(other))) is not None:
                return term
        if chosen:
            return self.split_atoms(i, sides, chosen)
        if operation.name in ("addcmul", "addcdiv"):
            term = rest(sides[0])
            return None if term is None else term._replace(own=(factor(sides[1]),))
        return None

    def split_atoms(self, i: int, sides: tuple[int, int], chosen: list[Atom]) -> Term | None:
        """A product of products, some factors of which are its coefficient and others its leaf, in any order."""
        factors: list[Factor] = []
        own: list[Any] = []

        def collect(of: int, side: int, inverse: bool):
            j = self.operations[of].operand(side)
            live = self.is_live(j)
            inner = self.operations[self.resolve(j)] if live else None
            if inner is not None and inner.name in ("mul", "div", "neg"):
                if inner.name == "neg":
                    factors.append(Factor(None, number=-1.0))
                for k in (0, 1) if inner.name != "neg" else (0,):
                    collect(self.resolve(j), k, inverse != (inner.name == "div" and k == 1))
                return
            factor = Factor(Place(of, (side,)), "over" if inverse else "times", live=live)
            if live and Atom(of, side, j, inverse) not in chosen:
                own.append((factor, j))
            else:
                factors.append(factor)

        over = self.operations[i].name in ("div", "addcdiv")
        for side in sides:
            collect(i, side, over and side == sides[1])
        shape = self.operations[i].shape
        main = next((one for one in own if one[0].how == "times" and self.operations[one[1]].shape == shape), None)
        if main is None:
            return None
        others = tuple(factor for factor, _ in own if factor is not main[0])
        return Term(main[1], Place(*main[0].place), factors=tuple(factors), own=others)

    def terms_of(self, summands: list[Term], ends: set[int], whole: bool = False) -> list[Term]:
        """The normal form of a sum."""
        return [term for summand in summands for term in self.terms(summand, ends, whole=whole)]

    def terms(self, term: Term, ends: set[int], deep: bool = True, whole: bool = False) -> list[Term]:
        """The normal form of what stands at the place of a term: its leaves with their coefficients.

        ends    operations that are leaves whatever they are: the state
        deep    whether a sum that is used elsewhere as well may be taken apart, if it is no later state
        whole   whether all sums are taken apart
        """
        i, layouts, factors = term.leaf, term.moved, term.factors
        place, crossed = term.place, term.layouts
        trail: list[tuple[int, tuple[Place, tuple[int, ...], Product]]] = []
        own = term.own
        while i not in ends and not own:
            operation = self.operations[i]
            if self.is_transparent(i):
                (i,) = self.sources(i)
                continue
            if self.is_layout(i):
                layouts = (i, *layouts)
                (i,) = self.sources(i)
                continue
            if operation.name == "neg":
                inner: Term | None = Term(operation.operand(0), Place(i, (0,)), factors=(Factor(None, number=-1.0),))
            else:
                inner = self.split_product(i, (0, 1)) if operation.name in ("mul", "div") else None
            if inner is None:
                break
            trail.append((i, (place, crossed, factors)))
            factors += tuple(factor._replace(layouts=layouts) for factor in inner.factors)
            own = tuple(factor._replace(layouts=layouts) for factor in inner.own)
            i, place, crossed = inner.leaf, inner.place, layouts
        for product, outer in trail if i not in ends else ():
            if self.choices.verdict(self.operations[product]) == "slope":
                place, crossed, factors = outer
                return [Term(product, place, crossed, factors, (), term.around, crossed)]
        if i not in ends and not own:
            found = self.terms_of_sum(i, Term(i, place, crossed, factors, (), term.around, layouts), ends, deep, whole)
            if found:
                return found
            for product, outer in trail:
                if self.is_part_of_function(product, i, self.operations[trail[0][1][0].operation].module):
                    place, crossed, factors = outer
                    break
        return [Term(i, place, crossed, factors, own, term.around, layouts)]

    def terms_of_sum(self, i: int, term: Term, ends: set[int], deep: bool, whole: bool) -> list[Term]:
        summands = self.summands(i)
        alone = whole or len(self.users[i]) == 1
        if not summands or not (alone or deep):
            return []
        around = (*term.around, (term.place, term.layouts, len(term.factors)))
        found = [
            one
            for summand in summands
            for one in self.terms(
                summand._replace(
                    layouts=term.moved,
                    factors=(*term.factors, *(f._replace(layouts=term.moved) for f in summand.factors)),
                    own=tuple(f._replace(layouts=term.moved) for f in summand.own),
                    around=around,
                    moved=term.moved,
                ),
                ends,
                deep and alone,
                whole,
            )
        ]
        if not alone and any(one.leaf in ends or self.summands(one.leaf) for one in found):
            return []
        return found

    def is_part_of_function(self, product: int, i: int, outside: str) -> bool:
        """Is a product formed in a module of its own, whose output is the normalisation or activation i?

        product  such as that with the weight of a normalisation, or with the 0.5 of GELU
        outside  the module of the sum
        """
        operation = self.operations[i]
        module = operation.module
        if (
            operation.name not in ("mul", "div")
            or len(self.sources(i)) < 1
            or self.operations[product].module != module
        ):
            return False
        if is_within(outside, module) or self.verdict(i)[1] not in ("normalisation", "activation"):
            return False
        inside = [self.operations[j] for j in self.behind(i, self.dominator[i]) if j > self.dominator[i]]
        return not any(one.name in WEIGHTED for one in inside if is_within(one.module, module))

    # the normal form, read

    def read(self, terms: list[Term], ends: set[int], outer: float) -> Reading | None:
        """Shortcut, slope and step size where the normal form has the state with a coefficient that makes it one."""
        at_state = [term for term in terms if term.leaf in ends and not term.own]
        others = [term for term in terms if term not in at_state]
        if not at_state or len({self.key_of(term)[1] for term in at_state}) > 1 or self.is_rolled(at_state[0]):
            return None
        shortcut = at_state[0]
        fixed = [term for term in at_state if term.is_constant]
        total = self.polynomial(term.factors for term in at_state)
        sizes, leaves = self.equal_coefficients(others) or self.shared_factors(others) if others else (None, others)
        if set(total) <= {()} and all(outer * self.polynomial([t.factors]).get((), outer) <= 0 for t in at_state):
            return None  # 2 f - x leads on from f, as in a leapfrog
        with_sizes = {} if sizes is None else multiply({(): outer}, add(total, self.polynomial(sizes or ((),))))
        if is_one(with_sizes) and not is_one(multiply({(): outer}, total)):
            number = () if outer == 1.0 else (Factor(None, number=outer),)
            sizes = tuple((*product, *number) for product in sizes or ((),))
            return Reading(shortcut.place, self.branches(leaves, "towards"), sizes, layouts=shortcut.layouts)
        if not fixed and set(total) <= {()}:
            fixed = at_state  # with (1 - g) x + g (x + f) the state is there once, whatever g is
        if not fixed:
            return None
        scale = self.polynomial(term.factors for term in fixed)
        if set(scale) <= {()} and outer * scale.get((), 0.0) <= 0:
            return None
        scaled = () if is_one(scale) else tuple(term.factors for term in fixed)
        moving = [term for term in at_state if term not in fixed]
        if not others:
            moving = [term._replace(own=term.factors, factors=()) for term in moving]
        branching = [*others, *moving]
        tableau, sizes, leaves = self.split_coefficients(branching, ends)
        return Reading(shortcut.place, self.branches(leaves), sizes, scaled, tableau, shortcut.layouts)

    def read_stages(self, summands: list[Term], terms: list[Term], ends: set[int], outer: float) -> Reading | None:
        """The same where stages are themselves added, as in x / 2 + (y + h f(y)) / 2 with y = x + h f(x): a tableau.

        None where they are not all evaluations of one function, with which they are steps of their own, and where a
        state is subtracted: y + 0.9 (y - x) is a momentum and no mean.
        """
        if not any(term.leaf not in ends and self.summands(term.leaf) for term in terms) or self.is_long(terms, ends):
            return None
        states: dict[tuple, list[Product]] = {}
        for term in terms:
            if term.leaf in ends or any(one.leaf in ends for one in self.terms(term, ends, whole=True)):
                states.setdefault(self.key_of(term), []).append(term.factors)
        weights = [multiply({(): outer}, self.polynomial(products)) for products in states.values()]
        if any(weight and max(weight.values()) < 0.0 for weight in weights):
            return None
        terms = self.terms_of(summands, ends, whole=True)
        total = self.polynomial(term.factors for term in terms if term.leaf in ends)
        reading = self.read(terms, ends, outer) if is_one(multiply({(): outer}, total)) else None
        if reading is None or not reading.tableau:
            return None
        around = {place for term in terms for place, *_ in term.around}
        return reading._replace(stages=tuple({self.resolve(self.source(place), layouts=True) for place in around}))

    def is_long(self, terms: list[Term], ends: set[int]) -> bool:
        """Would a normal form whose sums are all taken apart have more terms than any method has?

        Where each state is a sum of two earlier ones their number doubles from state to state.
        """
        waiting = [term.leaf for term in terms]
        for _ in range(MOST_TERMS):
            if not waiting:
                return False
            i = waiting.pop()
            summands = [] if i in ends else self.summands(i)
            waiting += [term.leaf for summand in summands for term in self.terms(summand, ends, deep=False)]
        return bool(waiting)

    def is_multiple(self, terms: list[Term], ends: set[int]) -> bool:
        """Is a sum the state times something that is not computed from it, as 0.5 x + x and g x + (1 - g) x are?"""
        alone = all(term.leaf in ends and not term.own for term in terms) and len(set(map(self.key_of, terms))) == 1
        total = self.polynomial(term.factors for term in terms)
        return alone and (set(total) <= {()} or all(term.is_constant for term in terms))

    def is_rolled(self, term: Term) -> bool:
        return any(self.operations[i].name == "roll" for i in term.moved)

    def key_of(self, term: Term) -> tuple:
        """What must be equal for two terms to be multiples of one thing."""
        return self.same[term.leaf], self.order_of(term.moved), tuple(map(self.factor_key, term.own))

    def order_of(self, layouts: tuple[int, ...]):
        """In which order changes of layout leave the numbers; () for the one in which they were."""
        if not layouts:
            return ()
        if layouts not in self.orders:
            operations = [self.operations[i] for i in layouts]
            shape = self.operations[self.sources(layouts[0])[0]].shape
            if any(one.again is None for one in operations):
                return tuple((one.name, one.shape, one.numbers) for one in operations)
            before = after = torch.arange(math.prod(shape)).reshape(shape)
            for one in operations:
                after = one.again(after.clone() if one.in_place else after)
            same = before.shape == after.shape and torch.equal(before, after)
            self.orders[layouts] = () if same else (tuple(after.shape), hash(after.contiguous().numpy().tobytes()))
        return self.orders[layouts]

    def equal_coefficients(self, terms: list[Term]) -> tuple[tuple[Product, ...], list[Term]] | None:
        """The coefficient that all leaves have but for its sign, and one term for each leaf; None where they differ."""
        leaves: dict[tuple, list[Term]] = {}
        for term in terms:
            leaves.setdefault(self.key_of(term), []).append(term)
        parts = [self.polynomial(term.factors for term in some) for some in leaves.values()]
        base = next((k for k, part in enumerate(parts) if all(number > 0 for number in part.values())), 0)
        signs = [0.0 if (sign := ratio(part, parts[base])) is None else sign for part in parts]
        if not all(signs):
            return None
        minus = (Factor(None, number=-1.0),)
        ones = [
            some[0]._replace(factors=minus if s < 0 else ()) for some, s in zip(leaves.values(), signs, strict=True)
        ]
        products = tuple(term.factors for term in list(leaves.values())[base])
        return (() if is_one(parts[base]) else products), ones

    def shared_factors(self, terms: list[Term]) -> tuple[tuple[Product, ...], list[Term]]:
        """The factors that are written once for all terms, and the terms without them."""
        shared: list[Factor] = []
        left = [list(term.factors) for term in terms]
        for factor in terms[0].factors:
            key = self.factor_key(factor)
            alike = [[one for one in some if self.factor_key(one) == key] for some in left]
            if all(alike):
                shared.append(factor)
                for some, ones in zip(left, alike, strict=True):
                    some.remove(ones[0])
        rest = [term._replace(factors=tuple(some)) for term, some in zip(terms, left, strict=True)]
        return ((tuple(shared),) if shared else ()), rest

    def split_coefficients(
        self, terms: list[Term], ends: set[int]
    ) -> tuple[tuple[int, ...], tuple[Product, ...], list[Term]]:
        """The branches of a tableau, the step size, and the terms with what is left of their coefficients."""
        equal = self.equal_coefficients(terms)
        if equal is not None and len(equal[1]) == 1:
            return (), *equal
        sizes, rest = self.shared_factors(terms)
        rest = [term if term.is_constant else into_leaf(term) for term in rest]
        if tableau := self.find_tableau(rest, ends):
            return tableau, sizes, rest
        sizes, rest = equal or (sizes, rest)
        return (), sizes, self.at_sum(terms, rest, sizes)

    def at_sum(self, terms: list[Term], rest: list[Term], sizes: tuple[Product, ...]) -> list[Term]:
        """One term for all, where they are the summands of one sum whose factors are the step size."""
        shared = set(sizes[0]) if sizes else set()
        for place, layouts, count in reversed(terms[0].around) if len(sizes) < 2 else ():
            inside = all((place, layouts, count) in term.around for term in terms)
            if inside and set(terms[0].factors[:count]) == shared:
                return [Term(self.source(place), place, layouts)]
        return rest

    def branches(self, terms: list[Term], how: str = "plain") -> tuple[Branch, ...]:
        return tuple(
            Branch(term.place, term.factors, "product" if term.own else how, term.layouts, term.own, axis)
            for term in terms
            for axis in [self.axis[self.source(term.place)] or 0]
        )

    def find_tableau(self, terms: list[Term], ends: set[int]) -> tuple[int, ...]:
        """The numbers of the terms that are evaluations of one function, with weights that are constant.

        Several functions may be evaluated in turn, if the weights of each add up to the same number.
        """
        leaves = {self.same[term.leaf] for term in terms}
        groups: dict[tuple, list[int]] = {}
        for k, term in enumerate(terms):
            groups.setdefault(self.function_of(term, leaves, ends), []).append(k)
        if all(len({self.same[terms[k].leaf] for k in group}) == 1 for group in groups.values()):
            return ()
        sums = [self.polynomial(terms[k].factors for k in group) for group in groups.values()]
        if any(add(one, {key: -value for key, value in sums[0].items()}) for one in sums[1:]):
            return ()
        if not sums[0]:  # the weights add up to nothing
            return ()
        return tuple(next(iter(groups.values())))

    def function_of(self, term: Term, leaves: set[int], ends: set[int]) -> tuple:
        """The operations that make a leaf out of a state, or out of a sum of a state and other leaves."""
        operands = [self.source(factor.place) for factor in term.own if factor.place is not None]
        found, seen, waiting = [], set(), [term.leaf, *operands]
        while waiting:
            i = waiting.pop()
            if i in seen or i <= max(ends) or not self.live[i]:
                continue
            seen.add(i)
            if i != term.leaf and self.is_argument(i, leaves, ends):
                continue
            operation = self.operations[i]
            found.append((operation.name, operation.module, operation.details, operation.constants))
            waiting.extend(self.sources(i))
        return tuple(sorted(found, key=repr))

    def is_argument(self, i: int, leaves: set[int], ends: set[int]) -> bool:
        """Is this a multiple of the state, or a sum of which other leaves are summands?"""
        parts, found = [Term(i, Place(i, ()))], []
        for part in parts:
            for term in self.terms(part, ends):
                known = term.leaf in ends or self.same[term.leaf] in leaves
                inside = [] if known else self.summands(term.leaf)  # a sum that is used twice
                parts += inside
                found += [] if inside else [term.leaf]
        return all(leaf in ends for leaf in found) or any(self.same[leaf] in leaves for leaf in found if leaf != i)

    def scaling_behind(self, i: int) -> tuple[float, int]:
        """The number by which all of a sum is multiplied afterwards, and the last operation that does so."""
        number, end = 1.0, i
        while len(self.users[i]) == 1:
            (i,) = self.users[i]
            factor = self.polynomial([self.split_number(i)]).get(()) if not self.is_layout(i) else 1.0
            if not factor:
                break
            number *= factor
            end = i if factor != 1.0 else end
        return number, end

    def split_number(self, i: int) -> Product:
        """The number by which an operation multiplies what it is given; 0 where it does something else."""
        operation = self.operations[i]
        if self.is_transparent(i):
            return ()
        if operation.name == "neg":
            return (Factor(None, number=-1.0),)
        place = next((k for k in (0, 1) if operation.number(k) is not None), None)
        if operation.name not in ("mul", "div") or place is None or (operation.name == "div" and place == 0):
            return (Factor(None, number=0.0),)
        return (Factor(Place(i, (place,)), "over" if operation.name == "div" else "times"),)

    # states that are no summand as they are

    def find_conditional(self, summands) -> int | None:
        """The state of x + f(x, c), whose branch sees something else beside it: another sequence, a time, a class.

        None where there is none: where c goes on as the state does (a momentum, the halves of a reversible network,
        x_{n-1} + f(x_n)), a sum on the way to the branch has a summand that is not computed from x. And x + c x is
        (1 + c) x.
        """
        for k, summand in enumerate(summands if len(summands) == 2 else ()):
            other, state = summands[1 - k], self.resolve(summand.leaf)
            way = self.branch_between(state, other.leaf)
            if summand.factors or other.factors or other.leaf not in way:
                continue
            sums = [[self.resolve(one.leaf) for one in self.summands(i)] for i in way]
            if all(term.leaf == state for term in self.terms(other, {state})):
                continue
            if all(i == state or i in way for ends in sums for i in ends):
                return state
        return None

    def read_projection(self, source: int, summands) -> Reading | None:
        """The summand that comes from the state without a nonlinearity; of two such, by the shorter way."""
        if len(summands) != 2:
            return None
        ways = [self.between(source, self.resolve(summand.leaf)) for summand in summands]
        lengths = [len(way) for way in ways]
        linear = [
            side
            for side, way in enumerate(ways)
            if lengths[side] <= LONGEST_SHORTCUT and not any(map(self.is_nonlinear, way))
        ]
        if not linear or (len(linear) == 2 and lengths[0] == lengths[1]):
            return None
        side = min(linear, key=lengths.__getitem__)
        if summands[side].factors:
            return None
        terms = self.terms(summands[1 - side], {source})
        tableau, sizes, leaves = self.split_coefficients(terms, {source})
        return Reading(summands[side].place, self.branches(leaves), sizes, (), tableau)


def into_leaf(term: Term) -> Term:
    """The same term with all of its coefficient as a part of its leaf but for numbers."""
    live = tuple(factor for factor in term.factors if factor.live)
    return term._replace(own=(*live, *term.own), factors=tuple(factor for factor in term.factors if not factor.live))
