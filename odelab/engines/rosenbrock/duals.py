"""Dual numbers in compiled code: a number together with its derivatives, updated in every operation.

The numba type `Dual` states at compile time which variables a number depends on. It holds one derivative for each of
them and no others, so that a derivative that is always zero is never computed. Where two branches meet, both types are
converted to one that has the variables of both. Comparisons use the number alone, so that branches and loops run as
they do for numbers. `odelab.engines.rosenbrock.dual_functions` adds the elementary functions.
"""

import functools
import operator

ARITHMETIC = ("add", "sub", "mul", "truediv")
COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


@functools.cache
def dual_type():
    """The class of numba types of dual numbers; `dual_type()((0, 2))` depends on the variables 0 and 2."""
    from numba.core import types
    from numba.core.typeconv import Conversion
    from numba.extending import models, register_model

    class Dual(types.Type):
        def __init__(self, places):
            self.places = tuple(sorted(places))
            super().__init__(name=f"odelab.Dual{self.places}")

        def unify(self, context, other):
            if isinstance(other, Dual):
                return Dual({*self.places, *other.places})
            return self if is_real(other) else None

        def can_convert_to(self, context, other):
            if isinstance(other, Dual) and {*self.places} <= {*other.places}:
                return Conversion.promote
            return None

        def can_convert_from(self, context, other):
            return Conversion.promote if is_real(other) else None

    @register_model(Dual)
    class DualModel(models.StructModel):
        def __init__(self, manager, kind):
            derivatives = [(f"d{place}", types.float64) for place in kind.places]
            super().__init__(manager, kind, [("value", types.float64), *derivatives])

    return Dual


def is_real(kind) -> bool:
    from numba.core import types

    return isinstance(kind, types.Integer | types.Float | types.Boolean)


def places_of(*kinds) -> tuple[int, ...]:
    """The variables that at least one of some numbers depends on."""
    return tuple(sorted({place for kind in kinds for place in getattr(kind, "places", ())}))


def take_apart(context, builder, kind, number):
    """(value, {place: derivative}) of a dual number, or of a plain number, which depends on no variable."""
    from numba.core import types

    if not isinstance(kind, dual_type()):
        return context.cast(builder, number, kind, types.float64), {}
    value, *derivatives = (builder.extract_value(number, i) for i in range(1 + len(kind.places)))
    return value, dict(zip(kind.places, derivatives, strict=True))


def put_together(context, builder, kind, value, derivatives):
    """A dual number of the type `kind`; its derivatives at the places that `derivatives` leaves out are zero."""
    from numba.core import cgutils, types

    made = cgutils.create_struct_proxy(kind)(context, builder)
    made.value = value
    zero = context.get_constant(types.float64, 0.0)
    for place in kind.places:
        setattr(made, f"d{place}", derivatives.get(place, zero))
    return made._getvalue()


def combine(builder, terms):
    """{place: the sum of factor * derivative} over (derivatives, factor); a factor of None stands for one."""
    total: dict = {}
    for derivatives, factor in terms:
        for place, derivative in derivatives.items():
            term = derivative if factor is None else builder.fmul(factor, derivative)
            total[place] = builder.fadd(total[place], term) if place in total else term
    return total


def times(builder, derivatives, factor):
    """The derivatives times a factor; one that is zero stays zero, even if the factor is infinite."""
    found = {}
    for place, derivative in derivatives.items():
        zero = derivative.type(0.0)
        none = builder.fcmp_ordered("==", derivative, zero)
        found[place] = builder.select(none, zero, builder.fmul(factor, derivative))
    return found


def negate_all(builder, derivatives):
    return {place: builder.fneg(derivative) for place, derivative in derivatives.items()}


def add(builder, a, da, b, db):
    return builder.fadd(a, b), combine(builder, [(da, None), (db, None)])


def sub(builder, a, da, b, db):
    return builder.fsub(a, b), combine(builder, [(da, None), (negate_all(builder, db), None)])


def mul(builder, a, da, b, db):
    return builder.fmul(a, b), combine(builder, [(da, b), (db, a)])


def truediv(builder, a, da, b, db):
    quotient = builder.fdiv(a, b)
    reciprocal = builder.fdiv(a.type(1.0), b)
    by_b = builder.fneg(builder.fmul(quotient, reciprocal))
    return quotient, combine(builder, [(da, reciprocal), (db, by_b)])


@functools.cache
def register():
    """Teach numba the arithmetic and the comparisons of dual numbers."""
    from numba.core import types
    from numba.core.imputils import lower_builtin, lower_cast
    from numba.core.typing.templates import AbstractTemplate, infer_global, signature
    from numba.extending import overload

    Dual = dual_type()
    number = types.float64

    def of_two(function, answer):
        """Tell numba which type a function of two numbers returns, if at least one of them is dual."""

        @infer_global(function)
        class OfTwo(AbstractTemplate):
            def generic(self, args, keywords):
                if len(args) == 2 and all(isinstance(kind, Dual) or is_real(kind) for kind in args):
                    taken = [kind if isinstance(kind, Dual) else number for kind in args]
                    places = places_of(*args)
                    return signature(answer(places), *taken) if places else None
                return None

        return OfTwo

    def lower_two(function, build):
        for kinds in ((Dual, Dual), (Dual, types.Float), (types.Float, Dual)):
            lower_builtin(function, *kinds)(build)

    def arithmetic(rule):
        def build(context, builder, sig, args):
            (a, da), (b, db) = (take_apart(context, builder, *pair) for pair in zip(sig.args, args, strict=True))
            return put_together(context, builder, sig.return_type, *rule(builder, a, da, b, db))

        return build

    for name, rule in zip(ARITHMETIC, (add, sub, mul, truediv), strict=True):
        for function in (getattr(operator, name), getattr(operator, f"i{name}")):
            of_two(function, Dual)
            lower_two(function, arithmetic(rule))

    def comparison(sign):
        def build(context, builder, sig, args):
            (a, _), (b, _) = (take_apart(context, builder, *pair) for pair in zip(sig.args, args, strict=True))
            compare = builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered
            return compare(sign, a, b)

        return build

    for name, sign in COMPARISONS.items():
        function = getattr(operator, name)
        of_two(function, lambda places: types.boolean)
        lower_two(function, comparison(sign))

    def of_one(function):
        @infer_global(function)
        class OfOne(AbstractTemplate):
            def generic(self, args, keywords):
                return signature(*args, *args) if len(args) == 1 and isinstance(args[0], Dual) else None

        return OfOne

    of_one(operator.neg)
    of_one(operator.pos)

    @lower_builtin(operator.neg, Dual)
    def negative(context, builder, sig, args):
        value, derivatives = take_apart(context, builder, sig.args[0], args[0])
        return put_together(context, builder, sig.return_type, builder.fneg(value), negate_all(builder, derivatives))

    @lower_builtin(operator.pos, Dual)
    def positive(context, builder, sig, args):
        return args[0]

    @lower_cast(types.Integer, Dual)
    @lower_cast(types.Float, Dual)
    @lower_cast(types.Boolean, Dual)
    @lower_cast(Dual, Dual)
    def widen(context, builder, kind, wider, value):
        return put_together(context, builder, wider, *take_apart(context, builder, kind, value))

    @lower_cast(Dual, types.Boolean)
    def truth(context, builder, kind, boolean, value):
        found, _ = take_apart(context, builder, kind, value)
        return builder.fcmp_unordered("!=", found, found.type(0.0))

    @overload(bool)
    def is_true(x):
        if isinstance(x, Dual):
            return lambda x: x != 0.0

    @overload(rows_of)
    def rows(rhs, time, state, params):
        try:  # first with a type of its own for each component, so that no derivative is computed in vain
            rhs.dispatcher.compile((time, state, params))
        except Exception:  # for example a loop over the components, which needs them all to be of one type
            return lambda rhs, time, state, params: rhs(time, alike(state), params)
        return lambda rhs, time, state, params: rhs(time, state, params)

    alike = of_one_type()


def rows_of(rhs, time, state, params):
    """Evaluate the right-hand side with dual numbers."""
    raise NotImplementedError("compiled code only")


@functools.cache
def of_one_type():
    """A function that converts the dual numbers of a tuple to one type, by adding derivatives that are zero."""
    from numba.core import types
    from numba.extending import intrinsic

    @intrinsic
    def alike(context, state):
        kind = dual_type()(places_of(*state))
        uniform = types.UniTuple(kind, len(state))

        def build(context, builder, sig, args):
            return context.cast(builder, args[0], sig.args[0], uniform)

        return uniform(state), build

    return alike


@functools.cache
def variable():
    """variable(x, place): the number x as the variable of that number, with the derivative 1 with respect to itself."""
    from numba.core import types
    from numba.extending import intrinsic

    @intrinsic(prefer_literal=True)
    def made(context, x, place):
        kind = dual_type()((place.literal_value,))

        def build(context, builder, sig, args):
            one = context.get_constant(types.float64, 1.0)
            return put_together(context, builder, kind, args[0], {place.literal_value: one})

        return kind(types.float64, place), build

    return made


@functools.cache
def derivative():
    """derivative(x, place): the derivative of x with respect to the variable of that number."""
    from numba.core import types
    from numba.extending import intrinsic

    @intrinsic(prefer_literal=True)
    def found(context, x, place):
        def build(context, builder, sig, args):
            _, derivatives = take_apart(context, builder, sig.args[0], args[0])
            return derivatives.get(place.literal_value, context.get_constant(types.float64, 0.0))

        return types.float64(types.unliteral(x), place), build

    return found


@functools.cache
def no_other():
    """no_other(x, "0 2"): 0.0 if the derivatives of x with respect to all other variables are zero, else NaN."""
    from numba.core import types
    from numba.extending import intrinsic

    @intrinsic(prefer_literal=True)
    def check_others(context, x, known):
        allowed = set(map(int, known.literal_value.split()))

        def build(context, builder, sig, args):
            zero = context.get_constant(types.float64, 0.0)
            _, derivatives = take_apart(context, builder, sig.args[0], args[0])
            only = zero
            for place, found in derivatives.items():
                if place not in allowed:
                    none = builder.fcmp_ordered("==", found, zero)
                    only = builder.select(none, only, zero.type(float("nan")))
            return only

        return types.float64(types.unliteral(x), known), build

    return check_others


@functools.cache
def value():
    """value(x): the number without its derivatives."""
    from numba.core import types
    from numba.extending import intrinsic

    @intrinsic
    def alone(context, x):
        def build(context, builder, sig, args):
            return take_apart(context, builder, sig.args[0], args[0])[0]

        return types.float64(x), build

    return alone


@functools.cache
def chain():
    """chain(x, y, found, by_x, by_y): the chain rule, for a function of x and y.

    `found` is the function's value, `by_x` and `by_y` are its partial derivatives.
    """
    from numba.core import types
    from numba.extending import intrinsic

    @intrinsic
    def apply_rule(context, x, y, found, by_x, by_y):
        kind = dual_type()(places_of(x, y))

        def build(context, builder, sig, args):
            (_, dx), (_, dy) = (
                take_apart(context, builder, *pair) for pair in zip(sig.args[:2], args[:2], strict=True)
            )
            terms = combine(builder, [(times(builder, dx, args[3]), None), (times(builder, dy, args[4]), None)])
            return put_together(context, builder, kind, args[2], terms)

        return kind(x, y, types.float64, types.float64, types.float64), build

    return apply_rule


@functools.cache
def widened():
    """widened(z, x, y): the number z, one of x and y, as a dual number of the variables of both."""
    from numba.extending import intrinsic

    @intrinsic
    def chosen(context, z, x, y):
        kind = dual_type()(places_of(x, y))

        def build(context, builder, sig, args):
            return put_together(context, builder, kind, *take_apart(context, builder, sig.args[0], args[0]))

        return kind(z, x, y), build

    return chosen
