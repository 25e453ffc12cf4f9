"""The source of a function as a syntax tree, checked to be the source it was made from."""

import ast
import copy
import functools
import inspect
import symtable
import textwrap
import types


class Unreadable(Exception):
    """A function that cannot be written down; the message says why."""


def definition(function) -> ast.FunctionDef:
    """The parsed source of a plain function; a file edited since it was imported, say, raises `Unreadable`."""
    if not isinstance(function, types.FunctionType):
        raise Unreadable("it is not a plain function")
    if function.__name__ == "<lambda>":
        raise Unreadable("it is a lambda")
    try:
        file, _ = inspect.findsource(function.__code__)
        lines, _ = inspect.getsourcelines(function.__code__)
        tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        raise Unreadable("its source cannot be read") from None
    if not isinstance(tree, ast.FunctionDef):
        raise Unreadable("it is not a plain function")
    tree.decorator_list = []
    if not same_code(function.__code__, compiled(tree, function.__code__, imported("".join(file)))):
        raise Unreadable("its source has changed since it was read")
    return tree


@functools.lru_cache(maxsize=8)
def imported(file: str) -> frozenset[str]:
    """The names a file imports at its top; none of a text that is not Python alone, as a notebook's can be."""
    try:
        names = symtable.symtable(file, "<file>", "exec").get_symbols()
    except (SyntaxError, ValueError):
        return frozenset()
    return frozenset(name.get_name() for name in names if name.is_imported())


def compiled(tree: ast.FunctionDef, code, imported: frozenset[str]):
    """The code object the text makes, with the same names free as in `code`; None if it makes none.

    `x.f()` is another instruction where the file imports `x`, so the text stands below those imports too.
    """
    around = ast.parse("def around():\n    " + "".join(f"{name} = " for name in code.co_freevars) + "None").body[0]
    assert isinstance(around, ast.FunctionDef)
    around.body.append(copy.deepcopy(tree))
    above = [ast.Import([ast.alias(name)]) for name in sorted(imported)]
    text = ast.fix_missing_locations(ast.Module([*above, around], []))
    try:
        module = compile(text, "<kernel>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    outer = next(c for c in module.co_consts if isinstance(c, types.CodeType))
    return next((c for c in outer.co_consts if isinstance(c, types.CodeType) and c.co_name == code.co_name), None)


def same_code(one, other) -> bool:
    """Do two code objects do the same?"""
    if other is None or len(one.co_consts) != len(other.co_consts):
        return False
    parts = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars")
    return all(getattr(one, part) == getattr(other, part) for part in parts) and all(
        same_constant(a, b) for a, b in zip(one.co_consts, other.co_consts, strict=True)
    )


def same_constant(a, b) -> bool:
    if isinstance(a, types.CodeType):
        return isinstance(b, types.CodeType) and same_code(a, b)
    return type(a) is type(b) and repr(a) == repr(b)


def bound_names(tree) -> set[str]:
    """Names a function itself gives a value, its arguments among them."""
    bound = {a.arg for node in ast.walk(tree) if isinstance(node, ast.arguments) for a in every_argument(node)}
    bound |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return bound | {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node is not tree}


def every_argument(node: ast.arguments):
    return [*node.posonlyargs, *node.args, *node.kwonlyargs, *(a for a in (node.vararg, node.kwarg) if a)]


def undressed(tree: ast.FunctionDef) -> ast.FunctionDef:
    """Without annotations and docstring, which change nothing."""
    tree.returns = None
    for argument in every_argument(tree.args):
        argument.annotation = None
    first = tree.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        tree.body = tree.body[1:] or [ast.Pass()]
    return tree
