"""A right-hand side and everything it reaches as the source of a module.

A kernel's module stands alone, so that its text names everything its result depends on. Helpers come along as
functions, captured numbers, tuples and arrays as literals, known modules as imports. What cannot be written down (a
lambda, a function typed at a prompt, an object) raises `Unreadable`: such a kernel is compiled in memory.
"""

import ast
import builtins
import math
import symtable
import sys
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from odelab.engines.numba.captured import Watch, comes_from, lookup, read_attribute
from odelab.engines.numba.definition import Unreadable, bound_names, definition, undressed

IMPORTED = ("math", "cmath", "numpy", "odelab")  # modules whose contents are fixed by their version
OF_MODULES = frozenset(("__file__", "__cached__", "__builtins__"))  # what the import system gives a module
LARGEST_ARRAY = 10_000  # entries; a longer literal would hold up the compiler


class Written(NamedTuple):
    """A function as source: its name, and what stands before it."""

    name: str
    imports: tuple[str, ...]
    constants: tuple[str, ...]
    functions: tuple[str, ...]


def written_together(functions: dict[str, Callable], own: frozenset[str], watch: Watch) -> list[Written]:
    """Functions and everything they reach as source text, all of it told with the first; `watch` notes the captures.

    The rest of the module has the names `own`, and knows the functions by their keys.
    """
    writer = Writer(watch, own.union(functions, dir(builtins), OF_MODULES))
    names = [writer.function(function, alias) for alias, function in functions.items()]
    first = Written(names[0], tuple(sorted(writer.imports)), tuple(writer.constants), tuple(writer.functions))
    return [first, *(Written(name, (), (), ()) for name in names[1:])]


class Writer:
    def __init__(self, watch: Watch, reserved: frozenset[str]):
        self.watch, self.reserved = watch, reserved
        self.imports: set[str] = set()
        self.constants: list[str] = []
        self.functions: list[str] = []
        self.names: dict[str, Any] = {}  # name in the module -> the value it stands for

    def function(self, function, alias=None) -> str:
        """Write a function down, after everything it needs; returns its name in the module, which may be `alias`."""
        tree = definition(function)
        tree.name = self.take(function.__name__, function, alias)
        values = function.__defaults__ or ()
        if function.__kwdefaults__:
            raise Unreadable("it has keyword-only arguments")
        tree.args.defaults = []
        renamed = Renamed(self, function, bound_names(tree), returns_tuple=alias is not None)
        tree = renamed.visit(undressed(tree))
        # Default values as they are, not as the text once computed them.
        tree.args.defaults = [ast.parse(literal(value), mode="eval").body for value in values]
        text = ast.unparse(ast.fix_missing_locations(tree))
        if looked_up_outside(text) != renamed.meant:
            raise Unreadable("a name means one thing inside it and another outside")
        self.functions.append(text)
        return tree.name

    def reference(self, name: str, function) -> str:
        """The name that stands in the module for what `name` means inside `function`."""
        read, where = lookup(name, function)
        if read is None:
            if hasattr(builtins, name):
                return name
            raise Unreadable(f"`{name}` is not defined")
        try:
            value = read(where)
        except ValueError:
            raise Unreadable(f"`{name}` is not defined yet") from None
        self.watch.add(read, where, value)
        return self.value(name, value)

    def value(self, name: str, value) -> str:
        """The name of a captured value in the module, writing it down where that is still to be done."""
        value = getattr(value, "py_func", value)  # a function already handed to numba
        known = next((name for name, seen in self.names.items() if seen is value), None)
        if known is not None:
            return known
        if isinstance(value, types.ModuleType):
            if not comes_from(value, IMPORTED):
                raise Unreadable(f"`{name}` is a module of your own")
            taken = self.take(name, value)
            self.imports.add(f"import {value.__name__} as {taken}")
            return taken
        origin = importable(value)
        if origin is not None:
            taken = self.take(name, value)
            self.imports.add(f"from {origin[0]} import {origin[1]} as {taken}")
            return taken
        if isinstance(value, types.FunctionType):
            return self.function(value)
        text = literal(value)
        taken = self.take(name, value)
        self.constants.append(f"{taken} = {text}")
        return taken

    def take(self, name: str, value, alias=None) -> str:
        """A free name in the module for `value`, as like its own as can be; `alias` is free for it alone."""
        stem = name if name.isidentifier() else "function"
        free, number = stem, 2
        while free in self.names or (free in self.reserved and free != alias):
            free, number = f"{stem}_{number}", number + 1
        self.names[free] = value
        return free


class Renamed(ast.NodeTransformer):
    """Replaces what a function looks up outside itself by the names of the module."""

    def __init__(self, writer: Writer, function, local, returns_tuple):
        self.writer, self.inside, self.local, self.returns_tuple = writer, function, local, returns_tuple
        self.meant: set[str] = set()  # names that have to be looked up in the module

    def outside(self, node, name: str):
        """`node` as a name of the module."""
        self.meant.add(name)
        return ast.copy_location(ast.Name(name, node.ctx), node)

    def visit_Name(self, node):
        if not isinstance(node.ctx, ast.Load) or node.id in self.local:
            return node
        return self.outside(node, self.writer.reference(node.id, self.inside))

    def visit_Attribute(self, node):
        """`mymodel.rate` becomes a captured value: only known modules are imported."""
        module = self.module(node.value)
        if module is None:
            self.generic_visit(node)
            return node
        value = getattr(module, node.attr, None)
        self.writer.watch.add(read_attribute, (module, node.attr), value)
        return self.outside(node, self.writer.value(node.attr, value))

    def module(self, node):
        """The foreign module a name stands for, or None."""
        if not isinstance(node, ast.Name) or node.id in self.local:
            return None
        read, where = lookup(node.id, self.inside)
        value = read(where) if read is not None else None
        if not isinstance(value, types.ModuleType) or comes_from(value, IMPORTED):
            return None
        self.writer.watch.add(read, where, value)
        return value

    def visit_Return(self, node):
        """A list of slopes becomes a tuple."""
        self.generic_visit(node)
        if self.returns_tuple and isinstance(node.value, ast.List):
            node.value = ast.copy_location(ast.Tuple(node.value.elts, ast.Load()), node.value)
        return node

    def visit_Nonlocal(self, node):
        raise Unreadable("it changes a variable outside itself")

    visit_Global = visit_Nonlocal


def looked_up_outside(text: str) -> set[str]:
    """The names a function's text looks up outside itself, as Python sees it."""
    found: set[str] = set()
    scopes = symtable.symtable(text, "<kernel>", "exec").get_children()
    while scopes:
        scope = scopes.pop()
        found |= {symbol.get_name() for symbol in scope.get_symbols() if symbol.is_global()}
        scopes += scope.get_children()
    return found


def bound_outside(text: str) -> frozenset[str]:
    """The names a module's text gives a value."""
    names = symtable.symtable(text, "<kernel>", "exec").get_symbols()
    return frozenset(name.get_name() for name in names if name.is_assigned() or name.is_imported())


def importable(value) -> tuple[str, str] | None:
    """(module, name) of a function numba knows by where it is from: math, NumPy, odelab.maths or Python itself."""
    name = getattr(value, "__name__", None)
    if not callable(value) or not isinstance(name, str):
        return None
    home = getattr(value, "__module__", None) or "numpy"
    if home.split(".")[0] not in ("math", "cmath", "numpy", "builtins") and home != "odelab.maths":
        return None
    found = next((m for m in (home, "numpy") if getattr(sys.modules.get(m), name, None) is value), None)
    return (found, name) if found else None


def literal(value) -> str:
    """A captured value as source text that makes the same value again."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and value.size <= LARGEST_ARRAY:
        inside = ", ".join(literal(item) for item in value.ravel().tolist())
        return f"np.array([{inside}], dtype=np.{value.dtype.name}).reshape({value.shape})"
    if isinstance(value, np.generic) and value.dtype.kind in "fiub":
        return f"np.{value.dtype.name}({literal(value.item())})"
    if isinstance(value, float):
        if math.isfinite(value):
            return repr(value)
        return "math.nan" if math.isnan(value) else ("math.inf" if value > 0 else "-math.inf")
    if isinstance(value, bool | int | str) or value is None:
        return repr(value)
    if type(value) is tuple:
        return "(" + "".join(f"{literal(item)}, " for item in value) + ")"
    raise Unreadable(f"it captured a {type(value).__name__}, which cannot be written down")
