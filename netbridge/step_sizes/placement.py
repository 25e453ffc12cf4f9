"""Which block has which controller, and how it gets another."""

from collections.abc import Sequence
from typing import Any

from netbridge.step_sizes import spec
from netbridge.step_sizes.base import Shared
from netbridge.step_sizes.gated import channels_of
from netbridge.step_sizes.spec import Spec


def on_blocks(
    wanted: Spec,
    counts: list[int],
    on=None,
    before: list[Spec] | None = None,
    uniform: bool = False,
    names: list[str] | None = None,
) -> list[Spec]:
    """One specification per block: `wanted` on the chosen ones, on the others what stood there before, or 1.

    `uniform` tells that no block opens a stage by changing the shape, as in a transformer; `names` are other names than
    those of a stage's blocks.
    """
    chosen = range(sum(counts)) if on is None else chosen_blocks(on, counts, names)
    specs = list(before or [Spec("constant")] * sum(counts))
    firsts = set() if uniform else {sum(counts[:stage]) for stage in range(len(counts))}
    for number in chosen:
        skipped = on is None and not wanted.kind.opening and number in firsts
        specs[number] = Spec("constant") if skipped else wanted
    return specs


def chosen_blocks(on, counts: list[int], names: list[str] | None = None) -> list[int]:
    """Block numbers from `on`: numbers over the whole network, negative ones from its end, or names."""
    names = names or [f"stages.{stage}.blocks.{i}" for stage, count in enumerate(counts) for i in range(count)]
    numbers = []
    for item in on if isinstance(on, list | tuple | set | range) else [on]:
        if isinstance(item, str) and item in names:
            numbers.append(names.index(item))
        elif isinstance(item, int) and -len(names) <= item < len(names):
            numbers.append(item % len(names))
        else:
            raise ValueError(f"`on` must name blocks 0 to {len(names) - 1}, or {names[0]!r} and so on; got {item!r}.")
    return numbers


def present(net) -> list[Spec]:
    """The specification of every block's controller."""
    return [spec.spec_of(record) for record in net.config["controllers"]]


def furnish(net):
    """A freshly built network, whose step sizes are all 1, with the controllers of its configuration."""
    specs = present(net)
    if len(specs) != len(net.blocks):
        raise ValueError(f"{len(specs)} controllers for {len(net.blocks)} blocks.")
    install(net, specs, before=[Spec("constant")] * len(specs))
    return net


def install(net, specs: list[Spec], before: Sequence[Spec | None]) -> None:
    """Give every block whose specification changes a new controller, on the block's device and in its precision.

    `before` says what the blocks have; None stands for a controller that is to be replaced in any case.
    """
    changes = iter(zip(specs, before, strict=True))
    for stage in net.stages:
        pool = {} if None in before else dict(stage.shared)
        for block in stage.blocks:
            wanted, old = next(changes)
            if wanted != old:
                place(block, build(wanted, block, pool, stage))
        stage.shared.clear()
        stage.shared.update({key: pool[key] for key in pool if in_use(pool[key], stage)})
    net.config["controllers"] = [one.as_json() for one in specs]


def build(wanted, block, pool, stage):
    """A block's new controller, in the block's precision and mode."""
    if stage.solver is not None and any(kind.shared for kind in kinds(wanted)):
        raise ValueError(f"controller {wanted.name!r} remembers from block to block; a `solver` has no such order.")
    known = set(pool)
    channels: Any = channels_of(block.branch.last)  # every branch of ours ends in a layer that says
    controller = spec.build(wanted, channels, pool)
    like = next(block.branch.parameters())
    for module in (controller, *(pool[key] for key in pool if key not in known)):
        module.to(device=like.device, dtype=like.dtype).train(stage.training)
    return controller


def place(block, controller) -> None:
    """Give a block a controller in place of the one it has."""
    block.controller.detach(block)
    block.controller = controller
    controller.attach(block)


def kinds(wanted: Spec):
    """The classes a specification is made of."""
    yield wanted.kind
    for key in ("module", "beside"):
        if wanted.kind.takes_pool and wanted.options.get(key) is not None:
            yield from kinds(spec.spec_of(wanted.options[key]))


def in_use(controller, stage) -> bool:
    """Does a block of the stage have a handle on this shared controller?"""
    handles = (module for block in stage.blocks for module in block.controller.modules())
    return any(isinstance(handle, Shared) and handle.target is controller for handle in handles)
