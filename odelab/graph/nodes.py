"""The expression graph: numbers as `Node`s, arrays of them as `Array`s, equal operations as one node.

A graph is built by running ordinary Python on nodes. Nothing is reordered and nothing is simplified that could change a
bit: only operations on constants are carried out, and factors of one are left out. The kinds of a node are "d" (a
double), "l" (a 64-bit integer) and "b" (true or false). Asking a node for its truth value is a fork (`forks.py`).
"""

import math
import operator

import numpy as np

COMPARISONS = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq,
               "ne": operator.ne}  # fmt: skip
ARITHMETIC = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}
ONE = ("neg abs sqrt floor ceil trunc rint sin cos tan exp exp2 expm1 log log2 log10 log1p sinh cosh tanh asin acos atan "
       "asinh acosh atanh erf erfc cbrt").split()  # fmt: skip
TWO = "pow atan2 hypot fmod copysign".split()
UFUNCS = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "negative": "neg",
          "absolute": "abs", "fabs": "abs", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh",
          "arccosh": "acosh", "arctanh": "atanh", "arctan2": "atan2", "less": "lt", "less_equal": "le", "greater": "gt",
          "greater_equal": "ge", "equal": "eq", "not_equal": "ne", "logical_and": "and", "logical_or": "or",
          "logical_not": "not", "bitwise_and": "and", "bitwise_or": "or", "invert": "not", "float_power": "pow",
          "power": "pow"}  # fmt: skip
elementary = {}  # functions that are made of operations instead of calls of the C library
LARGEST_POWER = 16  # a whole exponent up to this one is multiplied out


class Untraceable(Exception):
    """The function wants something of a number that only its value can tell.

    `count` is how many there were: a function that catches one (`except:`) has seen what plain Python would not show it.
    """

    count = 0

    def __init__(self, *arguments):
        super().__init__(*arguments)
        Untraceable.count += 1


class Graph:
    """`ops[i]` is (operation, kind, arguments...); the arguments of an operation are numbers of nodes before it."""

    def __init__(self):
        self.ops, self.known, self.tables = [], {}, []
        self.raised, self.assumed = [], {}

    def add(self, op, kind, *arguments):
        key = (op, kind, *arguments)
        place = self.known.get(key)
        if place is None:
            place = self.known[key] = len(self.ops)
            self.ops.append(key)
        return Node(self, place)

    def constant(self, value):
        if isinstance(value, (bool, np.bool_)):
            return self.add("const", "b", bool(value))
        if isinstance(value, (int, np.integer)):
            return self.add("const", "l", int(value))
        return self.add("const", "d", repr(float(value)))  # by its text, which tells -0.0 from 0.0 and equals itself for NaN

    def input(self, name, kind="d"):
        return self.add("in", kind, name)

    def inputs(self, name, n):
        return Array.of([self.input(f"{name}{i}") for i in range(n)])

    def table(self, values):
        values = np.asarray(values)
        for i, known in enumerate(self.tables):
            if known is values:
                return i
        self.tables.append(values)
        return len(self.tables) - 1


def is_number(x):
    return isinstance(x, (int, float, np.number, np.bool_))


class Node:
    __slots__ = ("graph", "i")
    __array_priority__ = 1000.0

    def __init__(self, graph, i):
        self.graph, self.i = graph, i

    op = property(lambda self: self.graph.ops[self.i][0])
    kind = property(lambda self: self.graph.ops[self.i][1])
    ndim, shape = 0, ()
    size = property(lambda self: self.graph.length if self.kind == "v" else 1)
    dtype = np.dtype(float)

    @property
    def value(self):
        """The value of a constant, None of any other node."""
        op = self.graph.ops[self.i]
        return None if op[0] != "const" else float(op[2]) if op[1] == "d" else op[2]

    def lift(self, x):
        if isinstance(x, Node):
            return x
        if not is_number(x):
            if isinstance(x, np.ndarray) and x.ndim == 0:
                return self.lift(x[()])
            raise Untraceable(f"a number meets a {type(x).__name__}")
        return self.graph.constant(x)

    def sum(self):
        return self.graph.add("vsum", "d", self.i)

    def real(self):
        """The node as a double."""
        if self.kind in "dv":
            return self
        if self.op == "const":
            return self.graph.constant(float(self.value))
        return self.graph.add("real", "d", self.i)

    def __reduce__(self):
        raise Untraceable("a number without value cannot be copied by pickle")

    def __deepcopy__(self, memo):
        return self

    def __copy__(self):
        return self

    copy = __copy__

    def conjugate(self):
        return self

    def item(self, *_):
        return self

    def astype(self, kind, **_):
        kind = np.dtype(getattr(kind, "dtype", kind)).kind
        return self.real() if kind == "f" else whole(self) if kind in "iu" else self != 0

    def view(self, kind):
        return view(self, kind)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function, types, args, kwargs):
        return apply_function(function, args, kwargs)

    def __bool__(self):
        from odelab.graph.forks import decide

        node = self if self.kind == "b" else self != 0
        return node if isinstance(node, bool) else decide(node)

    def refuse(self, *_):
        raise Untraceable("a value is wanted: a place in a list, float(), or a count of a loop")

    __float__ = __int__ = __index__ = __complex__ = __iter__ = __len__ = __str__ = __format__ = refuse
    __hash__ = lambda self: self.refuse()  # noqa: E731 a dictionary by value

    def __round__(self, digits=None):
        if digits is None:
            return whole(one("rint", self))
        raise Untraceable("round to digits")

    def __floor__(self):
        return whole(one("floor", self))

    def __ceil__(self):
        return whole(one("ceil", self))

    def __trunc__(self):
        return whole(self)

    def __pos__(self):
        return self

    def __invert__(self):
        return logical("not", self)

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self


def two(op, a, b):
    """a op b of numbers of which one at least is a node."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return elementwise(lambda x, y: two(op, x, y), a, b)
    if is_number(a) and is_number(b):
        return {**ARITHMETIC, **COMPARISONS}[op](np.float64(a) if isinstance(a, float) else a, b)
    node = a if isinstance(a, Node) else b
    if not (isinstance(a, Node) or is_number(a)) or not (isinstance(b, Node) or is_number(b)):
        return NotImplemented
    a, b = node.lift(a), node.lift(b)
    graph = node.graph
    x, y = a.value, b.value
    if op in COMPARISONS:
        if x is not None and y is not None:
            return bool(COMPARISONS[op](x, y))
        if a.i == b.i and a.kind != "d":
            return op in ("le", "ge", "eq")
        if a.op == "select" and y is not None:  # of a choice between two constants
            _, _, c, p, q = graph.ops[a.i]
            p, q = Node(graph, p).value, Node(graph, q).value
            if p is not None and q is not None:
                p, q = COMPARISONS[op](p, y), COMPARISONS[op](q, y)
                return p if p == q else Node(graph, c) if p else logical("not", Node(graph, c))
        if op in ("eq", "ne") and a.i > b.i:
            a, b = b, a
        if a.kind == b.kind == "l":
            return graph.add("l" + op, "b", a.i, b.i)
        return graph.add(op, "w" if "v" in (a.kind, b.kind) else "b", a.real().i, b.real().i)
    if a.kind in "lb" and b.kind in "lb" and op in ("add", "sub", "mul"):
        if x is not None and y is not None:
            return graph.constant(ARITHMETIC[op](x, y))
        return graph.add("l" + op, "l", integer(a).i, integer(b).i)
    a, b = a.real(), b.real()
    if x is not None and y is not None:
        with np.errstate(all="ignore"):
            return graph.constant(float(ARITHMETIC[op](np.float64(x), np.float64(y))))
    for place, chosen, other in ((0, a, y), (1, b, x)):  # of a choice between two constants
        if chosen.op == "select" and other is not None:
            c, p, q = (Node(graph, i) for i in graph.ops[chosen.i][2:])
            if p.value is not None and q.value is not None:
                return choose(c, *(two(op, x_, other) if place == 0 else two(op, other, x_) for x_ in (p, q)))
    if op == "mul" and (x == 1.0 or y == 1.0):
        return b if x == 1.0 else a
    if op == "div" and y == 1.0:
        return a
    return graph.add(op, "v" if "v" in (a.kind, b.kind) else "d", a.i, b.i)


def integer(node):
    return node if node.kind == "l" else Node(node.graph, node.graph.add("whole", "l", node.real().i).i)


def whole(x):
    """int(x)"""
    if not isinstance(x, Node):
        return int(x)
    if x.kind == "l":
        return x
    return x.graph.constant(int(x.value)) if x.op == "const" else x.graph.add("whole", "l", x.real().i)


def one(op, x):
    if isinstance(x, np.ndarray):
        return elementwise(lambda y: one(op, y), x)
    if not isinstance(x, Node):
        return getattr(np, {v: k for k, v in UFUNCS.items()}.get(op, op))(x)
    if op in ("neg", "abs") and x.kind == "l":
        return two("sub", 0, x) if op == "neg" else choose(x < 0, two("sub", 0, x), x)
    x = x.real()
    if op in elementary and x.op != "const":
        return elementary[op](x)
    if x.op == "const" and op in ("neg", "abs", "sqrt", "floor"):
        with np.errstate(all="ignore"):
            return x.graph.constant(float({"neg": np.negative, "abs": np.abs, "sqrt": np.sqrt, "floor": np.floor}[op](x.value)))
    if op == "neg" and x.op == "neg":
        return Node(x.graph, x.graph.ops[x.i][2])
    return x.graph.add(op, x.kind, x.i)


def call_two(op, a, b):
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return elementwise(lambda x, y: call_two(op, x, y), a, b)
    if is_number(a) and is_number(b):
        return getattr(np, {v: k for k, v in UFUNCS.items()}.get(op, op))(a, b)
    node = a if isinstance(a, Node) else b
    a, b = node.lift(a).real(), node.lift(b).real()
    return node.graph.add(op, "d", a.i, b.i)


def logical(op, *nodes):
    if any(isinstance(x, np.ndarray) for x in nodes):
        return elementwise(lambda *xs: logical(op, *xs), *nodes)
    node = next((x for x in nodes if isinstance(x, Node)), None)
    if node is None:
        return {"and": lambda a, b: bool(a) and bool(b), "or": lambda a, b: bool(a) or bool(b), "not": lambda a: not a}[op](*nodes)
    nodes = [x if not isinstance(x, Node) or x.kind in "bw" else x != 0 for x in nodes]
    if op == "not":
        x = nodes[0]
        return not x if isinstance(x, bool) else x.graph.add("not", x.kind, x.i)
    a, b = nodes
    for x, y in ((a, b), (b, a)):
        if not isinstance(x, Node):
            return y if bool(x) == (op == "and") else bool(x)
    return a.graph.add(op, "w" if "w" in (a.kind, b.kind) else "b", a.i, b.i)


def choose(condition, a, b):
    """a where the condition holds, else b; both are computed."""
    if not isinstance(condition, Node):
        return a if condition else b
    condition = condition if condition.kind in "bw" else condition != 0
    a, b = condition.lift(a), condition.lift(b)
    if a.i == b.i:
        return a
    if a.kind != b.kind and "v" not in (a.kind, b.kind):
        a, b = a.real(), b.real()
        if a.i == b.i:
            return a
    graph = condition.graph
    if condition.op == "not":
        return choose(Node(graph, graph.ops[condition.i][2]), b, a)
    if b.op == "select":  # nested choices between the same two: one choice, as conditions are cheap
        d, p, q = (Node(graph, i) for i in graph.ops[b.i][2:])
        if p.i == a.i:
            return choose(logical("or", condition, d), a, q)
        if q.i == a.i:
            return choose(logical("or", condition, logical("not", d)), a, p)
    if a.op == "select":
        d, p, q = (Node(graph, i) for i in graph.ops[a.i][2:])
        if q.i == b.i:
            return choose(logical("and", condition, d), p, b)
        if p.i == b.i:
            return choose(logical("and", condition, logical("not", d)), q, b)
    return graph.add("select", "v" if "v" in (a.kind, b.kind) else a.kind, condition.i, a.i, b.i)


def power(a, b):
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return elementwise(power, a, b)
    if is_number(a) and is_number(b):
        return np.float64(a) ** b if isinstance(a, float) else a ** b
    if isinstance(b, Node) and b.op == "const":
        b = b.value
    if not isinstance(b, Node) and float(b).is_integer() and 0 < abs(b) <= LARGEST_POWER and isinstance(a, Node):
        result, base, count = None, a, int(abs(b))
        while count:  # as LLVM multiplies out llvm.powi
            if count & 1:
                result = base if result is None else two("mul", result, base)
            count >>= 1
            base = two("mul", base, base) if count else base
        return result if b > 0 else two("div", 1.0, result)
    if not isinstance(b, Node) and b == 0:
        return 1.0
    if not isinstance(b, Node) and b == 0.5 and not isinstance(a, float):
        return call_two("pow", a, b)
    return call_two("pow", a, b)


def floor_divide(a, b):
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return elementwise(floor_divide, a, b)
    if is_number(a) and is_number(b):
        return np.float64(a) // b if isinstance(a, float) else a // b
    node = a if isinstance(a, Node) else b
    a, b = node.lift(a), node.lift(b)
    if a.kind == b.kind == "l":
        quotient = node.graph.add("ldiv", "l", a.i, b.i)
        odd = logical("and", two("ne", two("mul", quotient, b), a), two("ne", two("lt", a, 0), two("lt", b, 0)))
        return choose(odd, two("sub", quotient, 1), quotient)
    a, b = a.real(), b.real()  # as NumPy and Python do: the remainder is taken off before dividing
    mod = call_two("fmod", a, b)
    quotient = (a - mod) / b
    wrong = logical("and", two("ne", mod, 0.0), two("ne", two("lt", b, 0.0), two("lt", mod, 0.0)))
    quotient = choose(wrong, quotient - 1.0, quotient)
    near = one("floor", quotient)
    near = choose(quotient - near > 0.5, near + 1.0, near)
    return choose(two("ne", quotient, 0.0), near, call_two("copysign", 0.0, a / b))


def modulo(a, b):
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return elementwise(modulo, a, b)
    if is_number(a) and is_number(b):
        return np.float64(a) % b if isinstance(a, float) else a % b
    node = a if isinstance(a, Node) else b
    a, b = node.lift(a), node.lift(b)
    if a.kind == b.kind == "l":
        return a - floor_divide(a, b) * b
    a, b = a.real(), b.real()
    mod = call_two("fmod", a, b)
    wrong = two("ne", two("lt", b, 0.0), two("lt", mod, 0.0))
    return choose(two("ne", mod, 0.0), choose(wrong, mod + b, mod), call_two("copysign", 0.0, b))


def view(x, kind):
    """The bits of a double as an integer, or the other way round."""
    kind = np.dtype(getattr(kind, "dtype", kind)).kind
    return x if (kind == "f") == (x.kind == "d") else x.graph.add("bits", "l" if kind == "i" else "d", x.i)


def minimum(*xs):
    """Python's min: the first of the smallest."""
    return pick("lt", xs)


def maximum(*xs):
    return pick("gt", xs)


def pick(op, xs):
    xs = list(xs[0]) if len(xs) == 1 else xs
    best = xs[0]
    for x in xs[1:]:
        if isinstance(best, np.ndarray) or isinstance(x, np.ndarray):
            best = elementwise(lambda a, b: pick(op, (a, b)), best, x)
        elif isinstance(best, Node) or isinstance(x, Node):
            best = choose(two(op, x, best), x, best)
        else:
            best = x if COMPARISONS[op](x, best) else best
    return best


def numpys(op):
    """np.maximum and np.minimum: NaN wins."""
    def larger(a, b):
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            return elementwise(larger, a, b)
        if not isinstance(a, Node) and not isinstance(b, Node):
            return (np.maximum if op == "ge" else np.minimum)(a, b)
        first = two(op, a, b)
        return choose(logical("or", first, two("ne", a, a)), a, b)

    return larger


np_maximum, np_minimum = numpys("ge"), numpys("le")


def sign(x):
    return choose(two("gt", x, 0.0), 1.0, choose(two("lt", x, 0.0), -1.0, choose(two("eq", x, 0.0), 0.0, x)))


def heaviside(x, at):
    return choose(two("lt", x, 0.0), 0.0, choose(two("gt", x, 0.0), 1.0, choose(two("eq", x, 0.0), at, x)))


EXTRA = {
    "maximum": np_maximum, "minimum": np_minimum, "fmax": maximum, "fmin": minimum, "remainder": modulo, "mod": modulo,
    "floor_divide": floor_divide, "power": power, "float_power": power, "square": lambda x: x * x, "sign": sign,
    "positive": lambda x: x, "reciprocal": lambda x: 1.0 / x, "heaviside": heaviside, "conjugate": lambda x: x,
    "isfinite": lambda x: two("eq", x - x, 0.0), "isnan": lambda x: two("ne", x, x),
    "isinf": lambda x: two("eq", abs(x), math.inf), "degrees": lambda x: x * (180.0 / math.pi), "radians": lambda x: x * (math.pi / 180.0),
    "deg2rad": lambda x: x * (math.pi / 180.0), "rad2deg": lambda x: x * (180.0 / math.pi),
    "expit": lambda x: 1.0 / (1.0 + one("exp", -x)), "logaddexp": lambda a, b: a + one("log1p", one("exp", b - a)),
}  # fmt: skip


def scalar_function(name):
    """The function on nodes that a ufunc of this name stands for; None where there is none."""
    if name in EXTRA:
        return lambda *xs: elementwise(EXTRA[name], *xs) if any(isinstance(x, np.ndarray) for x in xs) else EXTRA[name](*xs)
    op = UFUNCS.get(name, name)
    if op in ARITHMETIC or op in COMPARISONS:
        return lambda a, b: two(op, a, b)
    if op in ONE:
        return lambda x: one(op, x)
    if op in TWO:
        return lambda a, b: call_two(op, a, b)
    if op in ("and", "or", "not"):
        return lambda *xs: logical(op, *xs)
    return None


def elementwise(function, *values):
    arrays = np.broadcast_arrays(*(np.asarray(plain(x), dtype=object) if not isinstance(x, Node) else boxed(x) for x in values))
    out = np.empty(arrays[0].shape, dtype=object)
    for place in np.ndindex(out.shape):
        xs = [unboxed(array[place]) for array in arrays]
        out[place] = function(*xs)
    return out.view(Array)


def boxed(x):
    box = np.empty((), dtype=object)
    box[()] = x
    return box


def unboxed(x):
    return x if isinstance(x, Node) else x[()] if isinstance(x, np.ndarray) else x


def plain(x):
    return x.view(np.ndarray) if isinstance(x, Array) else x


def apply_ufunc(ufunc, method, inputs, options):
    out = options.pop("out", None)
    if ufunc.__name__ == "matmul" and method == "__call__":
        found = matmul(*inputs)
    elif method == "reduce" and ufunc.__name__ in ("add", "multiply", "maximum", "minimum", "logical_and", "logical_or"):
        found = reduce(ufunc.__name__, inputs[0], options.get("axis", 0))
    elif method == "outer":
        a, b = (np.asarray(plain(x), dtype=object) for x in inputs)
        found = scalar_function(ufunc.__name__)(a.reshape(a.shape + (1,) * b.ndim).view(Array), b.view(Array))
    elif method == "__call__" and not (options.keys() - {"where", "dtype", "casting"}) and options.get("where", True) is True:
        function = scalar_function(ufunc.__name__)
        if function is None:
            raise Untraceable(f"numpy.{ufunc.__name__} is not known")
        found = function(*inputs)
    elif method == "accumulate":
        items = list(inputs[0])
        function, found = scalar_function(ufunc.__name__), items[:1]
        for x in items[1:]:
            found.append(function(found[-1], x))
        found = Array.of(found)
    else:
        raise Untraceable(f"numpy.{ufunc.__name__}.{method} is not followed")
    if out is not None:
        out[0][...] = found
        return out[0]
    return found


def reduce(name, array, axis):
    array = np.asarray(plain(array), dtype=object)
    if axis is None:
        array, axis = array.reshape(-1), 0
    axis = axis if not isinstance(axis, tuple) else axis[0]
    array = np.moveaxis(array, axis, 0)
    add = {"add": total, "multiply": lambda xs: fold(lambda a, b: a * b, xs), "maximum": lambda xs: fold(np_maximum, xs),
           "minimum": lambda xs: fold(np_minimum, xs), "logical_and": lambda xs: fold(lambda a, b: logical("and", a, b), xs),
           "logical_or": lambda xs: fold(lambda a, b: logical("or", a, b), xs)}[name]  # fmt: skip
    if array.ndim == 1:
        return add(list(array))
    out = np.empty(array.shape[1:], dtype=object)
    for place in np.ndindex(out.shape):
        out[place] = add(list(array[(slice(None), *place)]))
    return out.view(Array)


def fold(function, xs):
    result = xs[0]
    for x in xs[1:]:
        result = function(result, x)
    return result


def total(xs):
    """A sum in NumPy's own order: eight partial sums from eight terms on, halves from 129 on."""
    n = len(xs)
    if n == 0:
        return 0.0
    if n < 8:
        return fold(lambda a, b: a + b, xs)
    if n <= 128:
        parts = list(xs[:8])
        for start in range(8, n - n % 8, 8):
            parts = [a + b for a, b in zip(parts, xs[start : start + 8])]
        found = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]))
        return fold(lambda a, b: a + b, [found, *xs[n - n % 8 :]])
    half = n // 2 - (n // 2) % 8
    return total(xs[:half]) + total(xs[half:])


def matmul(a, b):
    a, b = (np.asarray(plain(x), dtype=object) for x in (a, b))
    if a.ndim == 1 and b.ndim == 1:
        return fold(lambda p, q: p + q, [x * y for x, y in zip(a, b)])
    if a.ndim == 2 and b.ndim == 1:
        return Array.of([matmul(row, b) for row in a])
    if a.ndim == 1 and b.ndim == 2:
        return Array.of([matmul(a, column) for column in b.T])
    return np.stack([np.stack([boxed(matmul(row, column)) for column in b.T]) for row in a]).view(Array)


class Array(np.ndarray):
    """An array of nodes and numbers, or a captured array of plain numbers that may be asked for the place of a node."""

    @classmethod
    def of(cls, items):
        out = np.empty(len(items), dtype=object)
        for i, x in enumerate(items):
            out[i] = x
        return out.view(cls)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if "out" not in options and all(plain(x).dtype != object for x in inputs if isinstance(x, np.ndarray)) and not any(isinstance(x, Node) for x in inputs):
            return getattr(ufunc, method)(*map(plain, inputs), **options)
        return apply_ufunc(ufunc, method, inputs, options)

    def __array_function__(self, function, types, args, kwargs):
        return apply_function(function, args, kwargs)

    def __getitem__(self, place):
        places = place if isinstance(place, tuple) else (place,)
        if any(isinstance(p, Node) for p in places):
            return look_up(self, places)
        return super().__getitem__(place)

    def __setitem__(self, place, value):
        if isinstance(place, Node) or (isinstance(place, np.ndarray) and place.dtype == object):
            if getattr(place, "shape", ()) == self.shape and self.shape:
                self[...] = elementwise(choose, place, value, self)
                return
            raise Untraceable("an array is filled at a place that only a value tells")
        if self.dtype != object:
            raise Untraceable("a captured array is written to: a side effect")
        super().__setitem__(place, value)

    def astype(self, kind, **options):
        return Array.of([x.astype(kind) if isinstance(x, Node) else np.asarray(x).astype(kind)[()] for x in self]) if self.dtype == object else super().astype(kind, **options)

    def sum(self, axis=None, **_):
        return reduce("add", self, axis) if self.dtype == object else plain(self).sum(axis)

    def mean(self, axis=None, **_):
        return self.sum(axis) / (self.size if axis is None else self.shape[axis])

    def max(self, axis=None, **_):
        return reduce("maximum", self, axis) if self.dtype == object else plain(self).max(axis)

    def min(self, axis=None, **_):
        return reduce("minimum", self, axis) if self.dtype == object else plain(self).min(axis)

    def all(self, axis=None, **_):
        return reduce("logical_and", self, axis)

    def any(self, axis=None, **_):
        return reduce("logical_or", self, axis)

    def prod(self, axis=None, **_):
        return reduce("multiply", self, axis)

    def dot(self, other):
        return matmul(self, other)

    def clip(self, low, high):
        return np_minimum(np_maximum(self, low), high)


def look_up(array, places):
    """An entry at a place that is a node: from a table of numbers, or by choosing among entries."""
    if array.dtype != object and len(places) == 1:
        node = places[0]
        if array.ndim > 1:
            return Array.of([look_up(array[(slice(None), *rest)], places) for rest in np.ndindex(array.shape[1:])]).reshape(array.shape[1:])
        return node.graph.add("gather", "d" if array.dtype.kind == "f" else "l", node.graph.table(plain(array)), integer(node).i)
    flat = array
    for axis, p in enumerate(places):  # few entries: all of them are computed, one is chosen
        if isinstance(p, Node):
            count = array.shape[axis]
            at = [array[(*places[:axis], k, *places[axis + 1 :])] for k in range(count)]
            found = math.nan
            for k in range(count):
                right = logical("or", two("eq", p, k), two("eq", p, k - count))
                found = elementwise(choose, right, at[k], found) if isinstance(at[k], np.ndarray) else choose(right, at[k], found)
            return found
    return flat


def where(condition, *both):
    if not both:
        raise Untraceable("numpy.where with a condition alone")
    if any(isinstance(x, (np.ndarray, list, tuple)) for x in (condition, *both)):
        return elementwise(choose, condition, *both)
    return choose(condition, *both)


def interp(x, xp, fp, left=None, right=None):
    if isinstance(x, np.ndarray):
        return elementwise(lambda one_x: interp(one_x, xp, fp, left, right), x)
    if not isinstance(x, Node):
        raise Untraceable("the values of np.interp depend on the state")
    xp, fp = np.asarray(plain(xp), dtype=float), np.asarray(plain(fp), dtype=float)
    slopes = np.diff(fp) / np.diff(xp)
    k = x.graph.add("search", "l", x.graph.table(xp), x.real().i)  # how many of xp are <= x
    k = choose(k < 1, 1, choose(k > len(xp) - 1, len(xp) - 1, k)) - 1
    table = lambda values: look_up(values.view(Array), (k,))  # noqa: E731
    inside = table(slopes) * (x - table(xp[:-1])) + table(fp[:-1])
    left, right = fp[0] if left is None else left, fp[-1] if right is None else right
    return choose(two("ne", x, x), x, choose(x < xp[0], left, choose(x > xp[-1], right, choose(two("eq", x, xp[-1]), fp[-1], inside))))


def searchsorted(a, v, side="left", sorter=None):
    k = v.graph.add("search", "l", v.graph.table(np.asarray(plain(a), dtype=float)), v.real().i)
    if side == "right":
        return k
    raise Untraceable("numpy.searchsorted from the left")


FUNCTIONS = {
    np.where: where, np.interp: interp, np.searchsorted: searchsorted, np.dot: matmul, np.inner: matmul, np.vdot: matmul,
    np.clip: lambda x, low, high, **_: np_minimum(np_maximum(x, low), high) if low is not None and high is not None else (np_maximum(x, low) if high is None else np_minimum(x, high)),
    np.sum: lambda x, axis=None, **_: reduce("add", np.asarray(x, dtype=object), axis), np.max: lambda x, axis=None, **_: reduce("maximum", np.asarray(x, dtype=object), axis),
    np.min: lambda x, axis=None, **_: reduce("minimum", np.asarray(x, dtype=object), axis), np.prod: lambda x, axis=None, **_: reduce("multiply", np.asarray(x, dtype=object), axis),
    np.mean: lambda x, axis=None, **_: np.asarray(x, dtype=object).view(Array).mean(axis), np.any: lambda x, **_: reduce("logical_or", x, None),
    np.all: lambda x, **_: reduce("logical_and", x, None), np.linalg.norm: lambda x, **_: one("sqrt", reduce("add", x * x, None)),
    np.zeros_like: lambda x, **_: filled(np.shape(x), 0.0), np.ones_like: lambda x, **_: filled(np.shape(x), 1.0),
    np.empty_like: lambda x, **_: filled(np.shape(x), math.nan), np.full_like: lambda x, value, **_: filled(np.shape(x), value),
    np.round: lambda x, decimals=0, **_: one("rint", x) if decimals == 0 else Node.refuse(x), np.copy: lambda x, **_: x.copy(),
    np.sort: lambda *_, **__: Node.refuse(None), np.argmax: lambda *_, **__: Node.refuse(None), np.argsort: lambda *_, **__: Node.refuse(None), np.argmin: lambda *_, **__: Node.refuse(None),
    np.iscomplexobj: lambda x: False, np.isrealobj: lambda x: True, np.size: lambda x: x.size, np.shape: lambda x: x.shape, np.ndim: lambda x: x.ndim,
    np.real: lambda x: x, np.isclose: lambda a, b, rtol=1e-5, atol=1e-8: abs(a - b) <= atol + rtol * abs(b),
    np.nan_to_num: lambda *_, **__: Node.refuse(None),
    np.std: lambda x, **_: one("sqrt", np.mean((x - x.mean()) ** 2)), np.var: lambda x, **_: np.mean((x - x.mean()) ** 2),
    np.gradient: lambda x, dx=1.0: np.concatenate([[(x[1] - x[0]) / dx], (x[2:] - x[:-2]) / (2.0 * dx), [(x[-1] - x[-2]) / dx]]).view(Array),
    np.convolve: lambda a, v, mode="full": convolve(a, v, mode),
}  # fmt: skip


def convolve(a, v, mode):
    a, v = list(a), list(v)
    full = [fold(lambda p, q: p + q, [a[i] * v[k - i] for i in range(max(0, k - len(v) + 1), min(k, len(a) - 1) + 1)]) for k in range(len(a) + len(v) - 1)]
    cut = 0 if mode == "full" else (len(full) - max(len(a), len(v))) // 2 if mode == "same" else min(len(a), len(v)) - 1
    return Array.of(full[cut : len(full) - cut] if mode != "same" else full[cut : cut + max(len(a), len(v))])


def filled(shape, value):
    out = np.empty(shape, dtype=object)
    out[...] = value
    return out.view(Array)


def apply_function(function, args, kwargs):
    out = kwargs.pop("out", None)
    if out is not None:
        out[...] = apply_function(function, args, kwargs)
        return out
    if function in FUNCTIONS:
        return FUNCTIONS[function](*args, **kwargs)
    strip = lambda x: plain(x) if isinstance(x, np.ndarray) else type(x)(map(strip, x)) if isinstance(x, (list, tuple)) else boxed(x) if isinstance(x, Node) else x  # noqa: E731
    found = function(*map(strip, args), **{k: strip(x) for k, x in kwargs.items()})  # moves entries about, or uses + - *
    return found.view(Array) if isinstance(found, np.ndarray) and found.dtype == object else found


def install():
    """The operators of nodes, and the methods that NumPy's object loops call."""
    for name, op in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "div")):
        setattr(Node, f"__{name}__", lambda a, b, op=op: two(op, a, b))
        setattr(Node, f"__r{name}__", lambda a, b, op=op: two(op, b, a))
    for op in COMPARISONS:
        setattr(Node, f"__{op}__", lambda a, b, op=op: two(op, a, b))
    for name, function in (("pow", power), ("floordiv", floor_divide), ("mod", modulo)):
        setattr(Node, f"__{name}__", lambda a, b, f=function: f(a, b))
        setattr(Node, f"__r{name}__", lambda a, b, f=function: f(b, a))
    for op in ("neg", "abs"):
        setattr(Node, f"__{op}__", lambda a, op=op: one(op, a))
    for name, op in (("and", "and"), ("or", "or")):
        setattr(Node, f"__{name}__", lambda a, b, op=op: logical(op, a, b))
        setattr(Node, f"__r{name}__", lambda a, b, op=op: logical(op, b, a))
    for name, op in (("lshift", "lshl"), ("rshift", "lshr")):
        setattr(Node, f"__{name}__", lambda a, b, op=op: a.graph.add(op, "l", a.i, a.lift(b).i))
    for name in ONE + ["arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"]:
        setattr(Node, name, lambda a, op=UFUNCS.get(name, name): one(op, a))


install()


def arguments_of(op):
    return [] if op[0] in ("const", "in") else op[3:] if op[0] in ("gather", "search") else op[2:]


def used(graph, outputs):
    """The numbers of the nodes that the outputs need, in order."""
    found, stack = set(), [node.i for node in outputs]
    while stack:
        i = stack.pop()
        if i not in found:
            found.add(i)
            stack += arguments_of(graph.ops[i])
    return sorted(found)
