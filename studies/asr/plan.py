"""The plan of the study: the networks of every part as jobs, and the order in which they are trained.

The queue goes by claims: first what decides one at the small scale, the cheapest first. Seeds are the outer loop
everywhere: when training stops early, every arm has as many.
"""

import dataclasses
import re

import netbridge as nb
from studies.asr import design
from studies.asr.design import Arm
from studies.lab import definitions, jobs, networks


@dataclasses.dataclass(frozen=True)
class Run:
    """One network of a part of the study.

    part      such as "controls" or "noise"
    arm       its row
    job       everything that determines the network
    column    what else its cell is about, such as the noise; ""
    observed  whether the gates are looked at after every epoch
    """

    part: str
    arm: str
    job: jobs.Job
    column: str = ""
    observed: bool = False

    @property
    def seed(self) -> int:
        return self.job.seed

    @property
    def stem(self) -> str:
        """A file name that can be read, made unique by the digest; the same network of two parts has one name."""
        words = re.sub(r"[^\w.]+", "-", self.job.label).strip("-")
        kind = "-observed" if self.observed else "-finetuned" if self.part == "finetuned" else ""
        return f"{self.job.dataset}-{self.job.kind}-{words}{kind}-seed{self.seed}-{self.job.digest}"


class Plan:
    """The networks of every part, and the order of training.

    arguments  the study's options: dataset, depth, recipe, epochs, seeds, tiers, rows and full are read
    parts      the parts that are wanted; None for all
    """

    def __init__(self, arguments, parts=None):
        self.arguments, self.parts = arguments, parts
        self.recipe = jobs.recipe_of(arguments.recipe, arguments.dataset, epochs=arguments.epochs)

    def job(self, arm: Arm, seed: int, recipe=None, **more) -> jobs.Job:
        """The training of a network; `more` are fields of `jobs.Job`, a ResNet of the usual depth without them."""
        recipe = self.recipe if recipe is None else recipe
        if "asr(" in arm.controller and not arm.decay:
            recipe = dataclasses.replace(recipe, decay_gates=False)
        options = {"images": self.arguments.images, "depth": self.arguments.depth} | more
        options |= {"start": arm.start_of(options["depth"])}
        controller = arm.controller_with(self.reduction(options))
        return jobs.Job(self.arguments.dataset, controller, seed, recipe, **options)

    def reduction(self, options: dict) -> int:
        """SE's reduction in a network: that of the paper in networks of its size, fewer where they are narrower."""
        if options.get("network", "resnet") == "resnet" and not options.get("options"):
            return design.reduction_for(options["depth"])
        return design.PAPERS_REDUCTION if self.arguments.full else design.NARROW_REDUCTION

    def apart(self, arms: dict[str, Arm]) -> dict[str, Arm]:
        """The arms without the literal module where that is the one with the paper's units."""
        same = design.reduction_for(self.arguments.depth) == design.PAPERS_REDUCTION
        return {name: arm for name, arm in arms.items() if not (same and name == design.LITERAL)}

    def part(self, name: str) -> list[Run]:
        """All networks of a part, seeds in the outer loop."""
        seeds, few = self.arguments.seeds, self.arguments.seeds[: design.FEW]
        needed = few if self.arguments.full else seeds[: design.NEEDED.get(name, design.FEW)]
        if self.arguments.full and name == "small":
            return []  # the paper's scale is the only one
        if name in ("noise", "backbones"):
            return getattr(self, name)(needed)
        if name in ("dynamics", "finetuned"):
            return getattr(self, name)(few)
        if name == "small":
            scaled = self.apart(design.SCALED)
            return [Run(name, arm, self.small_job(scaled[arm], seed)) for seed in seeds for arm in scaled]
        if name in design.TWICE:
            table = design.TWICE[name] | (self.own_beside() if name == "beside" else {})
            small = [
                Run(name, arm, self.small_job(how, seed), design.SMALL_SCALE)
                for seed in needed
                for arm, how in table.items()
            ]
            return ([] if self.arguments.full else small) + [
                Run(name, arm, self.job(how, seed)) for seed in few for arm, how in table.items()
            ]
            return ([] if self.arguments.full else small) + [
                Run(name, arm, self.job(how, seed)) for seed in few for arm, how in table.items()
            ]
        table, seeds = {"controls": (self.apart(design.CONTROLS), seeds), "origin": (design.ORIGIN, seeds[:2])}[name]
        return [Run(name, arm, self.job(table[arm], seed)) for seed in seeds for arm in table]

    def own_beside(self) -> dict[str, Arm]:
        """The controllers of the files of `--define`: alone and, where ASR can feed them a vector, as ASR and both."""
        arms: dict[str, Arm] = {}
        for name in definitions.controllers(self.arguments.define):
            arms |= self.own_asr(name) | {name: Arm(name)}
            if self.own_asr(name):
                arms[f"{name} + ASR({name})"] = Arm(str(nb.asr(name, beside=name)))
        return arms

    def own_asr(self, name: str) -> dict[str, Arm]:
        """ASR with a controller of the user's own, under its name; nothing where that is no module of channels."""
        try:
            return {f"ASR({name})": Arm(str(nb.asr(name)))}
        except ValueError:
            return {}

    def small_job(self, arm: Arm, seed: int, recipe=None, **more) -> jobs.Job:
        """At 16 x 16 pixels, on few images: about a minute of one core. With --full the paper's scale."""
        if self.arguments.full:
            return self.job(arm, seed, recipe, **more)
        if recipe is None:
            recipe = dataclasses.replace(self.recipe, epochs=min(design.SMALL_EPOCHS, self.recipe.epochs), small=())
        digits, asked = self.arguments.dataset == "digits", self.arguments.images
        more |= (
            {} if digits else {"size": design.SMALL, "images": min(design.SMALL_IMAGES, asked or design.SMALL_IMAGES)}
        )
        return self.job(arm, seed, recipe, **more)

    def noise(self, seeds) -> list[Run]:
        depth = self.arguments.depth
        return [
            Run("noise", arm, self.small_job(how, seed, noise=noise, depth=design.DEEPER.get(column, depth)), column)
            for column, noise in design.NOISES.items()
            for seed in seeds
            for arm, how in self.apart(design.NOISY).items()
            if not (column in design.DEEPER and (arm == design.LITERAL or self.arguments.full))
        ]

    @property
    def usual_dynamics(self) -> dict:
        """What the recipes of the dynamics have in common."""
        if not self.arguments.full:
            return design.DYNAMICS
        epochs = self.arguments.epochs or design.PAPERS_DYNAMICS["epochs"]
        return design.DYNAMICS | design.PAPERS_DYNAMICS | {"epochs": epochs}

    def dynamics(self, seeds) -> list[Run]:
        """Every seed of what the verdict is about, and one of what only the figure shows."""
        runs = []
        for name, (controller, changes) in design.SCHEDULES.items():
            recipe = dataclasses.replace(
                self.recipe, **self.usual_dynamics | changes, average=False, small=(), evaluate_every=1
            )
            depth = 56 if name.endswith("ResNet-56") else self.arguments.depth
            for seed in seeds if name in design.AT_THE_DROP else seeds[:1]:
                job = self.small_job(Arm(controller), seed, recipe, depth=depth)
                runs.append(Run("dynamics", name, job, observed=True))
        return runs

    def finetuned(self, seeds) -> list[Run]:
        """Shipped networks whose gates are replaced by their means and whose other weights then go on for an epoch."""
        dataset = self.arguments.dataset
        wanted = [
            (name, jobs.Job(dataset, name, seed, design.FINETUNING, **design.SHAPES.get(dataset, {})))
            for seed in (0, 1)
            for name in design.LIVE
        ]
        there = [(name, job) for name, job in wanted if (networks.ZOO / dataset / f"{job.stem}.safetensors").is_file()]
        return [Run("finetuned", networks.controller_name(name), job) for name, job in there]

    def backbones(self, seeds) -> list[Run]:
        """Transformers have a recipe of their own, and twice the epochs; with --full the paper's sizes and recipes."""
        arguments, runs = self.arguments, []
        own: dict[str, Arm] = {}
        for name in definitions.controllers(arguments.define):
            own |= self.own_asr(name)
        for name in design.BACKBONES:
            arms = (design.ON_TRANSFORMERS if name == design.TRANSFORMER else design.ON_BACKBONES) | own
            runs += [
                Run("backbones", arm, self.backbone(name, arms[arm], seed), name) for seed in seeds for arm in arms
            ]
        return runs

    def backbone(self, name: str, arm: Arm, seed: int, **more) -> jobs.Job:
        """The training of a backbone of the design with an arm; `more` are fields of `jobs.Job` that differ."""
        transformer, full = name == design.TRANSFORMER, self.arguments.full
        depth = 6 if transformer else 20
        if full:
            network, options, papers = design.PAPERS_BACKBONES[name]
            recipe = jobs.recipe_of(papers, self.arguments.dataset, epochs=self.arguments.epochs)
            depth = design.PAPERS_ACNET if name == "ACNet" else depth
        else:
            network, options = design.BACKBONES[name]
            usual = self.arguments.recipe, self.arguments.dataset
            recipe = jobs.recipe_of(*usual, network="vit") if transformer else self.recipe
            epochs = min(2 * design.SMALL_EPOCHS if transformer else design.SMALL_EPOCHS, self.recipe.epochs)
            recipe = dataclasses.replace(recipe, epochs=epochs, small=())
        shape = {"network": network, "options": options or None, "depth": depth}
        shape |= {"width": 64} if transformer else {}
        return self.small_job(arm, seed, recipe, **shape | more)

    def everything(self) -> list[Run]:
        """Every network of the tiers and parts that are asked for."""
        names = [name for tier in self.arguments.tier for name in design.TIERS[tier]]
        return [run for name in names if self.parts is None or name in self.parts for run in self.part(name)]

    def runs(self) -> list[Run]:
        """Those of them whose rows are asked for."""
        only = self.arguments.only
        return [run for run in self.everything() if not only or run.arm in only]

    def queue(self) -> list[Run]:
        """In the order of training: what decides most for least time comes first, seeds in the outer loop."""
        ordered: dict[str, Run] = {}
        for run in sorted(self.runs(), key=self.turn):
            ordered.setdefault(run.stem, run)  # a network of two parts stands where it is wanted first
        return list(ordered.values())

    def turn(self, run: Run) -> tuple[int, int]:
        """Where a network stands in the queue: its group, and within that its seed."""
        seeds = self.arguments.seeds
        position = seeds.index(run.seed) if run.seed in seeds else run.seed
        first, small, part = position < design.FEW, run.column == design.SMALL_SCALE, run.part
        deciding = run.arm in (design.PLAIN, design.HALF, design.FAITHFUL)
        groups = [
            first
            and run.arm != design.LITERAL
            and part == "small"
            and run.arm in design.CONTROLS,  # ASR against its controls, bounds
            deciding and run.column == design.NOISES_FIRST,  # constant noise
            part == "finetuned" and run.seed == 0,  # the rest that fine-tuning leaves
            part == "dynamics" and run.arm in (*design.AT_THE_DROP, design.AT_A_CONSTANT_RATE),  # the first decay
            run.column == design.SRP[0],  # ASR on top of a re-parameterised network
            deciding and run.column == design.RANDOM_FIRST,  # random noise
            small and run.arm in design.DECIDING_USES,  # several uses
            run.column == design.TRANSFORMER,  # vision transformers and LayerScale
            small and part == "beside",  # beside a live module
            small and part == "fixed",  # psi that is not learnt
            first and part == "small",  # behind PAINTED: the literal arm, and where the constants come from
            run.column in (*design.SRP, "VGG"),
            part == "dynamics",
            small and part in design.TWICE,
            deciding and part == "noise",
            part == "finetuned",
            part in ("noise", "backbones"),
            first and part == "controls",
            part == "small",
            part in design.TIERS[1],
            part in design.TIERS[4],
            True,
        ]
        late = not first and part not in (*design.TIERS[1], "small")  # seeds that only a small effect needs
        return len(groups) if late else groups.index(True), position
