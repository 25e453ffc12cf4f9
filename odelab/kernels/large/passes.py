"""In which loops a graph of arrays is computed: as few as its actions allow, each with all that can be computed in it.

A node's level is the number of actions that have to be done, one after the other, before it can be computed. All arrays
and sums that actions of one level ask for are computed in one loop, a pass. An array that a later pass needs is stored
where it would take many arrays to compute it again.
"""

from typing import NamedTuple

from odelab.graph.graphs import Node, arguments_of
from odelab.kernels.large.array_graph import SUM, Action, ArrayGraph

MANY = (
    9  # arrays that something is computed from in more than one pass: it is stored, as reading costs as much as writing
)


class Pass(NamedTuple):
    """One loop over components, and what follows it.

    stored     the arrays that the loop writes
    sums       the sums that it forms
    loaded     the arrays that it reads
    numbers    the numbers that it needs
    actions    what is done after it
    """

    stored: list[int]
    sums: list[Action]
    loaded: list[int]
    numbers: list[int]
    actions: list[Action]


class Plan:
    """The passes of a graph, and the memory of the arrays.

    graph      the graph
    outputs    the nodes that are wanted, numbers
    written    {number of an array that is wanted in memory: the name of its memory}
    """

    def __init__(self, graph: ArrayGraph, outputs: list[Node], written: dict[int, str]):
        self.graph, self.written = graph, written
        needed = self.needed([node.i for node in outputs] + list(written))
        self.level: dict[int, int] = {}
        for i in sorted(needed):
            before = [self.level[a] for a in self.before(i)]
            self.level[i] = max(before, default=0) + (i in graph.actions)
        actions = [graph.actions[i] for i in sorted(needed & graph.actions.keys())]
        self.by_level: dict[int, list[Action]] = {}
        for action in actions:
            self.by_level.setdefault(self.level[action.result.i] - 1, []).append(action)
        self.stored_at: dict[int, int] = {}
        for i in [*written, *(i for action in actions if action.what != SUM for i in self.arrays_given(action))]:
            if graph.ops[i][0] != "in":
                self.stored_at[i] = self.level[i]
        last = max([*self.by_level, *self.stored_at.values()], default=0)
        self.passes = [self.pass_at(level) for level in range(last, -1, -1)][::-1]

    def arrays_given(self, action: Action) -> list[int]:
        return [node.i for node in action.given if node.i in self.graph.arrays]

    def before(self, i: int) -> list[int]:
        """What has to be known before a node is."""
        if i in self.graph.actions:
            return [node.i for node in self.graph.actions[i].given]
        return list(arguments_of(self.graph.ops[i]))

    def needed(self, wanted: list[int]) -> set[int]:
        found: set[int] = set()
        stack = list(wanted)
        while stack:
            i = stack.pop()
            if i not in found:
                found.add(i)
                stack += self.before(i)
        return found

    def stored_in(self, level: int) -> list[int]:
        return sorted(i for i, at in self.stored_at.items() if at == level)

    def pass_at(self, level: int) -> Pass:
        """The pass of a level; what it needs from earlier ones is added to what these store."""
        actions = self.by_level.get(level, [])
        sums = [action for action in actions if action.what == SUM]
        stored = self.stored_in(level)
        loaded: dict[int, None] = {}
        numbers: dict[int, None] = {}
        seen: set[int] = set()
        stack = [*stored, *(action.given[0].i for action in sums)]
        while stack:
            i = stack.pop()
            if i in seen:
                continue
            seen.add(i)
            if i not in self.graph.arrays:
                if self.graph.ops[i][0] != "const":
                    numbers[i] = None
            elif self.is_in_memory(i, level):
                loaded[i] = None
            elif self.level[i] < level and len(self.sources(i)) >= MANY:
                self.stored_at[i] = self.level[i]
                loaded[i] = None
            else:
                stack += arguments_of(self.graph.ops[i])
        return Pass(stored, sums, sorted(loaded), sorted(numbers), [a for a in actions if a.what != SUM])

    def is_in_memory(self, i: int, level: int) -> bool:
        """Is an array in memory before the pass of a level?"""
        return self.graph.ops[i][0] == "in" or self.stored_at.get(i, level) < level

    def sources(self, i: int) -> set[int]:
        """The arrays in memory that an array is computed from."""
        found: set[int] = set()
        seen: set[int] = set()
        stack = [i]
        while stack:
            j = stack.pop()
            if j in seen or j not in self.graph.arrays:
                continue
            seen.add(j)
            if self.is_in_memory(j, self.level[i]):
                found.add(j)
            else:
                stack += arguments_of(self.graph.ops[j])
        return found

    def memory(self) -> tuple[dict[int, str], int]:
        """Where each array is: {its number: the name of its memory}, and how many buffers these are.

        A buffer is used again behind the last pass that reads what it held.
        """
        last: dict[int, int] = {}
        for level, one in enumerate(self.passes):
            for i in [*one.stored, *one.loaded, *(j for action in one.actions for j in self.arrays_given(action))]:
                last[i] = level
        names, free, until = dict(self.written), [], []  # type: ignore[var-annotated]
        count = 0
        for level, one in enumerate(self.passes):
            free += [name for end, name in until if end < level]
            until = [(end, name) for end, name in until if end >= level]
            results = [action.result.i for action in one.actions if action.result.i in self.graph.arrays]
            for i in [*one.stored, *results]:
                if i in names:
                    continue
                if free:
                    names[i] = free.pop()
                else:
                    names[i] = f"buffer{count}"
                    count += 1
                until.append((last.get(i, level), names[i]))
        return names, count
