"""What the code of a function says of itself before it runs: the names it reads, and what is in the way of a graph."""

import dis
import functools
import inspect
import types
from collections.abc import Iterator
from typing import NamedTuple

GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
LATER = "is called later than it is traced"
OUTLIVES = "which outlives the call: a side effect"


class Obstacle(NamedTuple):
    """What is in the way, the remedy and the line; it counts where the global `name` is Python's own."""

    reason: str
    remedy: str
    line: int = 0
    name: str = ""


class Facts(NamedTuple):
    """The globals a function reads, the obstacles in it, and whether it may see an exception that is raised inside."""

    names: tuple[str, ...]
    obstacles: tuple[Obstacle, ...]
    handles: bool


@functools.lru_cache(maxsize=1024)
def facts_of(code: types.CodeType, method: bool) -> Facts:
    """The facts of a function; a method may set attributes of its first argument."""
    names: dict[str, None] = {}
    obstacles: list[Obstacle] = []
    handles = False
    if code.co_flags & GENERATORS:
        obstacles.append(Obstacle(f"is a generator or asynchronous: it {LATER}", "return numbers", code.co_firstlineno))
    for inner in codes(code):
        instructions = list(dis.get_instructions(inner))
        owner = code.co_varnames[0] if method and inner is code and code.co_argcount else None
        for before, instruction in zip([None, *instructions], instructions, strict=False):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                names[instruction.argval] = None
            found = obstacle(instruction, before, owner, code.co_freevars)
            obstacles += [found._replace(line=line_of(instruction, inner))] if found else []
        handles = handles or has_handlers(instructions)
    return Facts(tuple(names), tuple(obstacles), handles)


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code object and those of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def obstacle(instruction, before, owner: str | None, outside: tuple[str, ...]) -> Obstacle | None:
    """Why an instruction cannot be followed, but for its line; None if it can be."""
    operation, name = instruction.opname, instruction.argval
    if operation in ("STORE_GLOBAL", "DELETE_GLOBAL") or (
        operation in ("STORE_DEREF", "DELETE_DEREF") and name in outside
    ):
        return Obstacle(f"changes `{name}`, {OUTLIVES}", "return what changes as a component of the state")
    if operation in ("STORE_ATTR", "DELETE_ATTR") and not (owner and last_name(before) == owner):
        return Obstacle(f"sets the attribute `{name}`, {OUTLIVES}", "use a local variable")
    if operation in ("LOAD_ATTR", "LOAD_METHOD") and name in ("__class__", "__dict__"):
        return Obstacle(f"asks for the {name} of an object", "use isinstance")
    if operation == "LOAD_GLOBAL" and name == "type":
        return Obstacle("asks for the type of an object", "use isinstance", name="type")
    if operation == "LOAD_BUILD_CLASS":
        return Obstacle("defines a class", "define it outside of the function")
    return None


def last_name(instruction) -> str | None:
    """The local variable that an instruction puts on top of the stack."""
    if instruction is None or not instruction.opname.startswith("LOAD_FAST"):
        return None
    return instruction.argval[-1] if isinstance(instruction.argval, tuple) else instruction.argval


def line_of(instruction, code: types.CodeType) -> int:
    positions = instruction.positions
    return (positions.lineno if positions is not None else None) or code.co_firstlineno


def has_handlers(instructions: list) -> bool:
    """Is there an `except`, a `finally` or a `with`, which may see an exception or swallow it?"""
    return any(instruction.opname == "PUSH_EXC_INFO" for instruction in instructions)
