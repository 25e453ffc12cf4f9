"""Graphs and the loops around them as LLVM IR, for numbers or for vectors of them: the only file with IR in it.

A `Function` is written from top to bottom, as a program is: its methods add instructions and return the name of the
value that they compute. `Function.graph` adds the operations of a graph. A value is a number or, in a function whose
width is more than one, a vector of so many numbers; its kind is "d" (double), "l" (64-bit integer) or "b" (true or
false).
"""

import contextlib
import struct
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from odelab.graph.nodes import Graph, Node, arguments_of, used

TYPES = {"d": "double", "l": "i64", "b": "i1", "p": "ptr"}
OF_DOUBLES = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "fmod": "frem"}
OF_INTEGERS = {"ladd": "add", "lsub": "sub", "lmul": "mul", "ldiv": "sdiv", "lshl": "shl", "lshr": "ashr"}
COMPARISONS = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
OF_INTEGERS_COMPARED = {"llt": "slt", "lle": "sle", "lgt": "sgt", "lge": "sge", "leq": "eq", "lne": "ne"}
INTRINSICS = {
    **dict.fromkeys(("sqrt", "floor", "ceil", "trunc", "rint", "sin", "cos", "tan", "exp", "exp2", "log", "log2")),
    **dict.fromkeys(("log10", "sinh", "cosh", "tanh", "asin", "acos", "atan", "pow", "atan2", "copysign")),
    "abs": "fabs",
}  # functions that LLVM knows; those with a value have another name there
LIBRARY = ("expm1", "log1p", "asinh", "acosh", "atanh", "erf", "erfc", "cbrt", "hypot")  # of C, called lane by lane
USUAL = 4000  # how much more often a condition has its usual outcome, as far as LLVM is told


def literal(kind: str, value) -> str:
    """A number as LLVM reads it back to the same bits."""
    if kind == "d":
        return f"0x{struct.unpack('<Q', struct.pack('<d', float(value)))[0]:016X}"
    return str(int(value)) if kind == "l" else str(bool(value)).lower()


class Module:
    """The text of an LLVM module: functions, the tables they read and the functions of C and LLVM that they call.

    flags    of operations on doubles, such as "contract", with which a * b + c may be one operation; "" for none
    exact    names of inputs: what depends on nothing else is computed without flags, so that it has the same bits
             everywhere
    elementary    writes functions such as the sine; None where those of C do
    """

    def __init__(self, flags: str = "", exact: Collection[str] = (), elementary: "Elementary | None" = None):
        self.flags, self.exact, self.elementary = flags, frozenset(exact), elementary
        self.functions: list[Function] = []
        self.written: dict[tuple[str, int], Function] = {}
        self.declared: set[str] = set()
        self.tables: list[Any] = []

    def function(self, name: str, parameters: dict[str, str], width: int = 1, internal: bool = False) -> "Function":
        """A new function; `parameters` are kinds by names, "p" that of a pointer."""
        self.functions.append(Function(self, name, parameters, width, internal))
        return self.functions[-1]

    def elementary_function(self, op: str, width: int, arguments: int) -> "Function":
        """The function of an elementary operation, written when it is first wanted."""
        assert self.elementary is not None
        if (op, width) not in self.written:
            names = [f"x{k}" for k in range(arguments)]
            function = Function(self, f"{op}{width}", dict.fromkeys(names, "v"), width, internal=True)
            function.flags = ""
            function.result = self.elementary.write(function, op, [f"%{name}" for name in names])
            self.written[op, width] = function
        return self.written[op, width]

    def declare(self, result: str, name: str, arguments: Sequence[str]) -> str:
        self.declared.add(f"declare {result} {name}({', '.join(arguments)})")
        return name

    def table(self, values) -> str:
        """The name of a table of numbers."""
        for number, known in enumerate(self.tables):
            if known is values:
                return f"@table{number}"
        self.tables.append(values)
        return f"@table{len(self.tables) - 1}"

    def text(self) -> str:
        lines = sorted(self.declared)
        for number, values in enumerate(self.tables):
            kind = "d" if values.dtype.kind == "f" else "l"
            entries = ", ".join(f"{TYPES[kind]} {literal(kind, x)}" for x in values.tolist())
            lines.append(f"@table{number} = internal constant [{len(values)} x {TYPES[kind]}] [{entries}]")
        lines += [
            f'!0 = !{{!"branch_weights", i32 1, i32 {USUAL}}}',
            f'!1 = !{{!"branch_weights", i32 {USUAL}, i32 1}}',
        ]
        functions = [*self.written.values(), *self.functions]
        return "\n".join(lines + [line for function in functions for line in function.text()]) + "\n"


class Elementary(Protocol):
    """What writes elementary functions.

    names     of the operations that it knows
    write     write(function, op, arguments): adds the instructions to a function, returns the value of the result
    """

    @property
    def names(self) -> Collection[str]: ...

    def write(self, function: "Function", op: str, arguments: list[str]) -> str: ...


class Variable(NamedTuple):
    """A place that a function reads and writes; LLVM keeps it in a register."""

    function: "Function"
    kind: str
    width: int
    pointer: str

    def get(self) -> str:
        return self.function.value(f"load {self.function.type(self.kind, self.width)}, ptr {self.pointer}")

    def set(self, value: str):
        self.function.lines.append(f"store {self.function.type(self.kind, self.width)} {value}, ptr {self.pointer}")


class Function:
    """A function of a module while it is written; results go to memory, but for that of an elementary one."""

    def __init__(self, module: Module, name: str, parameters: dict[str, str], width: int, internal: bool):
        self.module, self.name, self.parameters, self.width = module, name, parameters, width
        self.internal, self.count, self.flags = internal, 0, module.flags
        self.result = ""
        self.stands_apart = False  # whether it is never put into the functions that call it, which stay short
        self.places: list[str] = []  # instructions that make room for variables, at the top of the function
        self.lines: list[str] = []

    def text(self) -> list[str]:
        types = {**TYPES, "p": "ptr noalias", "v": self.type("d")}
        named = [f"{types[kind]} %{name}" for name, kind in self.parameters.items()]
        scope, result = "internal " if self.internal else "", self.type("d") if self.result else "void"
        apart = " noinline" if self.stands_apart else ""
        head = [f"define {scope}{result} @{self.name}({', '.join(named)}){apart} {{", "entry:"]
        return [*head, *self.places, *self.lines, f"ret {result} {self.result}".rstrip(), "}"]

    def type(self, kind: str, width: int | None = None) -> str:
        width = self.width if width is None else width
        return TYPES[kind] if width == 1 else f"<{width} x {TYPES[kind]}>"

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def value(self, instruction: str) -> str:
        """Add an instruction; returns the name of its result."""
        name = self.fresh()
        self.lines.append(f"{name} = {instruction}")
        return name

    def constant(self, kind: str, value, width: int | None = None) -> str:
        text = literal(kind, value)
        return text if (self.width if width is None else width) == 1 else f"splat ({TYPES[kind]} {text})"

    def everywhere(self, kind: str, number: str) -> str:
        """A vector with one number, which is a value, in all lanes."""
        if self.width == 1:
            return number
        whole = self.type(kind)
        first = self.value(f"insertelement {whole} poison, {TYPES[kind]} {number}, i32 0")
        return self.value(f"shufflevector {whole} {first}, {whole} poison, <{self.width} x i32> zeroinitializer")

    # memory: pointers point to rows of doubles and 64-bit integers, eight bytes each

    def place(self, pointer: str, index) -> str:
        return self.value(f"getelementptr i64, ptr {pointer}, i64 {index}")

    def load(self, kind: str, pointer: str, index, width: int | None = None, aligned: int = 8) -> str:
        return self.value(f"load {self.type(kind, width)}, ptr {self.place(pointer, index)}, align {aligned}")

    def store(self, kind: str, value: str, pointer: str, index, width: int | None = None, aligned: int = 8):
        self.lines.append(f"store {self.type(kind, width)} {value}, ptr {self.place(pointer, index)}, align {aligned}")

    def block_of_memory(self, count: int) -> str:
        """Memory of the function's own, on a cache line, for so many numbers."""
        name = self.fresh()
        self.places.append(f"{name} = alloca [{count} x i64], align 64")
        return name

    def variable(self, kind: str, value: str | None = None, width: int | None = None) -> Variable:
        width = self.width if width is None else width
        name = self.fresh()
        self.places.append(f"{name} = alloca {self.type(kind, width)}")
        made = Variable(self, kind, width, name)
        if value is not None:
            made.set(value)
        return made

    # whole numbers, conditions and the order of execution

    def whole(self, operation: str, a, b) -> str:
        """add, sub, mul, and ... of two 64-bit integers."""
        return self.value(f"{operation} i64 {a}, {b}")

    def compare(self, how: str, a, b) -> str:
        """Of two 64-bit integers: eq, ne, slt, sle, sgt, sge."""
        return self.value(f"icmp {how} i64 {a}, {b}")

    def logical(self, operation: str, a: str, b: str, width: int | None = None) -> str:
        return self.value(f"{operation} {self.type('b', width)} {a}, {b}")

    def choose(self, condition: str, kind: str, a, b) -> str:
        return self.value(f"select i1 {condition}, {TYPES[kind]} {a}, {TYPES[kind]} {b}")

    def fenced(self, value: str) -> str:
        """A double of which LLVM does not see where it comes from: nothing is computed together with its origin."""
        kind = self.type("d")
        suffix = "f64" if self.width == 1 else f"v{self.width}f64"
        return self.value(
            f"call {kind} {self.module.declare(kind, f'@llvm.arithmetic.fence.{suffix}', [kind])}({kind} {value})"
        )

    def any(self, condition: str) -> str:
        """Does a condition hold in any lane?"""
        if self.width == 1:
            return condition
        name = self.module.declare("i1", f"@llvm.vector.reduce.or.v{self.width}i1", [self.type("b")])
        return self.value(f"call i1 {name}({self.type('b')} {condition})")

    @contextlib.contextmanager
    def each(self, condition: str) -> Iterator[str]:
        """Yields the number of each lane, within one vector, in which a condition holds."""
        bits = condition
        if self.width > 1:
            bits = self.value(f"bitcast {self.type('b')} {condition} to i{self.width}")
        left = self.variable("l", self.value(f"zext i{self.width} {bits} to i64"), 1)
        with self.when(self.compare("ne", left.get(), 0)), self.repeat() as again_when:
            now = left.get()
            count = self.module.declare("i64", "@llvm.cttz.i64", ["i64", "i1"])
            yield self.value(f"call i64 {count}(i64 {now}, i1 true)")
            left.set(self.whole("and", now, self.whole("sub", now, 1)))
            again_when(self.compare("ne", left.get(), 0))

    def fetch_add(self, pointer: str, number) -> str:
        """Add a number to the integer at `pointer` in one indivisible operation; returns what it was before."""
        return self.value(f"atomicrmw add ptr {pointer}, i64 {number} monotonic")

    def add_up(self, total: str, term: str) -> str:
        """The sum of two doubles, of which many may be added in any order."""
        return self.value(f"fadd reassoc {self.type('d')} {total}, {term}")

    def call(self, function: "Function", *arguments):
        given = zip(function.parameters.values(), arguments, strict=True)
        self.lines.append(f"call void @{function.name}({', '.join(f'{TYPES[kind]} {one}' for kind, one in given)})")

    def label(self) -> str:
        self.count += 1
        return f"b{self.count}"

    def begin(self, label: str, come_from_here: bool = True):
        """Begin a block of instructions."""
        if come_from_here:
            self.lines.append(f"br label %{label}")
        self.lines.append(f"{label}:")

    @contextlib.contextmanager
    def when(self, condition: str):
        """What is added inside is done only where the condition holds."""
        inside, behind = self.label(), self.label()
        self.lines.append(f"br i1 {condition}, label %{inside}, label %{behind}")
        self.begin(inside, come_from_here=False)
        yield
        self.begin(behind)

    @contextlib.contextmanager
    def either(self, condition: str):
        """Yields a function to call between what is done where the condition holds and what is done elsewhere."""
        first, second, behind = self.label(), self.label(), self.label()
        self.lines.append(f"br i1 {condition}, label %{first}, label %{second}")
        self.begin(first, come_from_here=False)

        def otherwise():
            self.lines.append(f"br label %{behind}")
            self.begin(second, come_from_here=False)

        yield otherwise
        self.begin(behind)

    @contextlib.contextmanager
    def repeat(self) -> Iterator[Any]:
        """What is added inside is done again as long as the condition holds that the yielded function is given last."""
        top, behind = self.label(), self.label()
        self.begin(top)

        def again_when(condition: str):
            self.lines.append(f"br i1 {condition}, label %{top}, label %{behind}")

        yield again_when
        self.begin(behind, come_from_here=False)

    @contextlib.contextmanager
    def over(self, count, step: int = 1) -> Iterator[str]:
        """Yields an index, which goes from 0 in steps up to `count`; at least one step is taken."""
        index = self.variable("l", "0", 1)
        with self.repeat() as again_when:
            now = index.get()
            yield now
            following = self.whole("add", now, step)
            index.set(following)
            again_when(self.compare("slt", following, count))

    # graphs

    def graph(self, graph: Graph, outputs: Sequence[Node], inputs: dict[str, str], usual=None, names=None) -> list[str]:
        """Add the operations that some nodes of a graph need; returns their values.

        inputs    values for the inputs of the graph, by their names
        usual     {number of a condition: its usual outcome}: a branch that is guessed right is not waited for
        names     {number of an operation: its value} of those that are there already; the new ones are added
        """
        names = {} if names is None else names
        missing = set(used(graph, outputs, names))
        exact: dict[int, bool] = {}
        for i in used(graph, outputs):
            op, _, *arguments = graph.ops[i]
            known = [exact[one] for one in arguments_of(graph.ops[i])]
            exact[i] = arguments[0] in self.module.exact if op == "in" else all(known)
            self.flags = "" if exact[i] else self.module.flags
            if i in missing:
                names[i] = self.operation(graph, graph.ops[i], names, inputs, usual or {})
        return [names[node.i] for node in outputs]

    def operation(self, graph: Graph, operation: tuple, names: dict[int, str], inputs: dict[str, str], usual) -> str:
        op, kind, *arguments = operation
        if op == "const":
            return self.constant(kind, arguments[0])
        if op == "in":
            return inputs[arguments[0]]
        if op in ("gather", "search"):
            table = self.module.table(graph.tables[arguments[0]])
            of_table = self.entry_of if op == "gather" else self.count_of
            return of_table(table, graph.tables[arguments[0]], names[arguments[1]])
        values = [names[i] for i in arguments]
        kinds = [graph.ops[i][1] for i in arguments]
        if op == "select":
            hint = f", !prof !{int(usual[arguments[0]])}" if arguments[0] in usual else ""
            types = [self.type(one) for one in ("b", kind, kind)]
            return self.value(f"select {self.list_of(types, values)}{hint}")
        if op in INTRINSICS or op in LIBRARY:
            return self.called(op, values)
        return self.value(self.simple(op, kind, kinds, values))

    def simple(self, op: str, kind: str, kinds: list[str], values: list[str]) -> str:
        """The one instruction of an operation."""
        flags = f" {self.flags}" if self.flags else ""
        both = ", ".join(values)
        if op in OF_DOUBLES:
            return f"{OF_DOUBLES[op]}{flags} {self.type('d')} {both}"
        if op in OF_INTEGERS:
            return f"{OF_INTEGERS[op]} {self.type('l')} {both}"
        if op in COMPARISONS:
            return f"fcmp {COMPARISONS[op]} {self.type('d')} {both}"
        if op in OF_INTEGERS_COMPARED:
            return f"icmp {OF_INTEGERS_COMPARED[op]} {self.type('l')} {both}"
        if op in ("and", "or"):
            return f"{op} {self.type(kind)} {both}"
        if op == "not":
            return f"xor {self.type('b')} {both}, {self.constant('b', True)}"
        if op == "neg":
            return f"fneg{flags} {self.type('d')} {both}"
        if op == "real":
            return f"{'sitofp' if kinds == ['l'] else 'uitofp'} {self.type(kinds[0])} {both} to {self.type('d')}"
        if op == "whole":  # a number outside of 64 bits becomes some number, always the same
            cut = self.value(f"fptosi {self.type('d')} {both} to {self.type('l')}")
            return f"freeze {self.type('l')} {cut}"
        if op == "bits":
            return f"bitcast {self.type(kinds[0])} {both} to {self.type(kind)}"
        raise NotImplementedError(op)

    def list_of(self, types: Sequence[str], values: Sequence[str]) -> str:
        return ", ".join(f"{one} {value}" for one, value in zip(types, values, strict=True))

    def called(self, op: str, values: list[str]) -> str:
        """An elementary function: one that the module writes, one of LLVM's, or one of C's."""
        written = self.module.elementary
        if written is not None and op in written.names:
            function = self.module.elementary_function(op, self.width, len(values))
            types = [self.type("d")] * len(values)
            return self.value(f"call {types[0]} @{function.name}({self.list_of(types, values)})")
        if op in LIBRARY:
            return self.of_library(op, values)
        tag = "f64" if self.width == 1 else f"v{self.width}f64"
        types = [self.type("d")] * len(values)
        name = self.module.declare(types[0], f"@llvm.{INTRINSICS[op] or op}.{tag}", types)
        return self.value(f"call {types[0]} {name}({self.list_of(types, values)})")

    def of_library(self, op: str, values: list[str]) -> str:
        """A function of C's, for one number after the other."""
        name = self.module.declare("double", f"@{op}", ["double"] * len(values))
        call = f"call double {name}({{}})"
        return self.lane_by_lane("d", [("d", one) for one in values], lambda given: self.value(call.format(given)))

    def lane_by_lane(self, kind: str, arguments: Sequence[tuple[str, str]], compute) -> str:
        """compute("type value, ...") for every lane, as one vector of a kind; `arguments` are kinds and values."""
        if self.width == 1:
            return compute(", ".join(f"{TYPES[one]} {value}" for one, value in arguments))
        found = "poison"
        for lane in range(self.width):
            parts = [
                (one, self.value(f"extractelement {self.type(one)} {value}, i32 {lane}")) for one, value in arguments
            ]
            result = compute(", ".join(f"{TYPES[one]} {value}" for one, value in parts))
            found = self.value(f"insertelement {self.type(kind)} {found}, {TYPES[kind]} {result}, i32 {lane}")
        return found

    def entry(self, table: str, values, place: str) -> str:
        """The entry of a table at a place within it."""
        kind = "d" if values.dtype.kind == "f" else "l"

        def read(given: str) -> str:
            where = self.value(f"getelementptr {TYPES[kind]}, ptr {table}, {given}")
            return self.value(f"load {TYPES[kind]}, ptr {where}")

        return self.lane_by_lane(kind, [("l", place)], read)

    def entry_of(self, table: str, values, place: str) -> str:
        """The entry at any place, counted from the end where it is negative; NaN, or -1, outside of the table."""
        kind = "d" if values.dtype.kind == "f" else "l"
        whole, size = self.type("l"), self.constant("l", len(values))
        zero = self.constant("l", 0)
        negative = self.value(f"icmp slt {whole} {place}, {zero}")
        from_end = self.value(f"add {whole} {place}, {size}")
        at = self.value(f"select {self.type('b')} {negative}, {whole} {from_end}, {whole} {place}")
        inside = self.value(f"icmp ult {whole} {at}, {size}")
        safe = self.value(f"select {self.type('b')} {inside}, {whole} {at}, {whole} {zero}")
        found, missing = self.entry(table, values, safe), self.constant(kind, float("nan") if kind == "d" else -1)
        return self.value(f"select {self.type('b')} {inside}, {self.type(kind)} {found}, {self.type(kind)} {missing}")

    def count_of(self, table: str, values, number: str) -> str:
        """How many entries of a sorted table are not larger than a number: by halving, the same steps in every lane."""
        whole, condition, low = self.type("l"), self.type("b"), self.constant("l", 0)
        step = 1 << (max(len(values), 1).bit_length() - 1)
        while step:
            ahead = self.value(f"add {whole} {low}, {self.constant('l', step)}")
            exists = self.value(f"icmp sle {whole} {ahead}, {self.constant('l', len(values))}")
            before = self.value(f"sub {whole} {ahead}, {self.constant('l', 1)}")
            safe = self.value(f"select {condition} {exists}, {whole} {before}, {whole} {self.constant('l', 0)}")
            reached = self.value(f"fcmp ole {self.type('d')} {self.entry(table, values, safe)}, {number}")
            both = self.value(f"and {condition} {exists}, {reached}")
            low = self.value(f"select {condition} {both}, {whole} {ahead}, {whole} {low}")
            step >>= 1
        return low
