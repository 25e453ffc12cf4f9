"""Which networks `step_control` wants, in what order, and what there is of them."""

from studies import train
from studies.step_control import results as results
from studies.step_control import runs as runs
from studies.step_control.tables import Row

FIRST = (runs.PLAIN, runs.SE, runs.OURS)  # then the tickets, then the other cells


class Plan:
    """The networks of this experiment in the order in which they are wanted: one seed after the other."""

    def __init__(self, arguments):
        self.arguments = arguments
        recipe = train.chosen_recipe(
            train.Arguments(recipe=arguments.recipe, dataset=arguments.dataset, epochs=arguments.epochs)
        )
        self.scale = runs.Scale(arguments.dataset, arguments.depth, recipe, arguments.images)
        self.own = arguments.out / "runs"
        self.folders = (self.own,) if arguments.own else (self.own, results.SHIPPED)
        self.readings = (runs.EVERY, runs.COUNTED) if arguments.blocks == "both" else (arguments.blocks,)
        if arguments.part == "ablation":
            self.readings = ()
        if arguments.few > self.scale.blocks:
            raise SystemExit(f"`--few` must be at most {self.scale.blocks}, the blocks there are; got {arguments.few}.")
        for reading in self.readings:
            among = runs.candidates(self.scale, reading)
            if not among:
                raise SystemExit(f"`--depth` = {arguments.depth} has no block but the first of each stage: choose 14.")
            self.tickets(reading, runs.RANDOM, 0)  # says at once what cannot be: the controller, so many draws

    def find(self, run: runs.Run) -> results.Result | None:
        return results.find(run, self.folders)

    def divergence(self, run: runs.Run) -> str | None:
        return results.divergence(run, self.own)

    def wanted(self, row: str) -> bool:
        return not self.arguments.only or row in self.arguments.only

    def cell(self, row: str, seed: int) -> runs.Run:
        return runs.run(self.scale, runs.CELLS[row], seed)

    def few(self, reading: str) -> int:
        """The same share of the blocks, whichever may be chosen."""
        count = len(runs.candidates(self.scale, reading))
        return max(1, round(self.arguments.few * count / self.scale.blocks))

    def ticket(self, reading: str, placed: str, seed: int) -> runs.Run | None:
        """None where the plain network of this seed, whose stiffness decides, is not there yet."""
        nsi = None
        if placed in (runs.STIFFEST, runs.LEAST):
            plain = self.find(self.cell(runs.PLAIN, seed))
            if plain is None:
                return None
            nsi = plain.nsi
        among = runs.candidates(self.scale, reading)
        return self.on(runs.ticket(placed, nsi, among, self.few(reading), seed), seed)

    def on(self, blocks: list[int], seed: int) -> runs.Run:
        return runs.run(self.scale, train.named(self.arguments.ticket_controller), seed, blocks)

    def tickets(self, reading: str, placed: str, seed: int) -> list[runs.Run | None]:
        """One, or as many as are drawn at random."""
        if placed != runs.RANDOM:
            return [self.ticket(reading, placed, seed)]
        among = runs.candidates(self.scale, reading)
        drawn = runs.drawn(among, self.few(reading), seed, self.arguments.draws)
        return [self.on(blocks, seed) for blocks in drawn]

    def queue(self) -> list[runs.Run]:
        """Those that can be named by now, each once."""
        found: dict[str, runs.Run] = {}
        for seed in self.arguments.seeds:
            planned = [self.cell(runs.PLAIN, seed)]
            cells = [] if self.arguments.part == "ticket" else [row for row in runs.CELLS if self.wanted(row)]
            tickets = [(reading, row) for reading in self.readings for row in runs.TICKETS if self.wanted(row)]
            planned += [self.cell(row, seed) for row in cells if row in FIRST]
            planned += [one for place in tickets for one in self.tickets(*place, seed)]
            planned += [self.cell(row, seed) for row in cells if row not in FIRST]
            found |= {one.stem: one for one in planned if one is not None}
        return list(found.values())

    def row(self, name: str, planned: list[tuple[int, runs.Run | None]]) -> Row:
        pairs = [(one, self.find(one)) for _, one in planned if one is not None]
        return Row(name, planned, [(one, result) for one, result in pairs if result is not None])

    def cells(self) -> dict[str, Row]:
        """Table 4 as far as it is there."""
        if self.arguments.part == "ticket":
            return {}
        seeds = self.arguments.seeds
        wanted = [name for name in runs.CELLS if self.wanted(name)]
        return {name: self.row(name, [(seed, self.cell(name, seed)) for seed in seeds]) for name in wanted}

    def placements(self, reading: str) -> dict[str, Row]:
        """The lottery tickets as far as they are there."""
        found = {}
        for name in filter(self.wanted, runs.TICKETS):
            planned = [(seed, one) for seed in self.arguments.seeds for one in self.tickets(reading, name, seed)]
            found[name] = self.row(name, planned)
        return found

    def plain(self) -> Row:
        """The networks whose stiffness decides."""
        return self.row(runs.PLAIN, [(seed, self.cell(runs.PLAIN, seed)) for seed in self.arguments.seeds])
