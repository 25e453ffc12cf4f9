"""What `nb.resnet` accepts, checked at the door, in the plain form that a checkpoint records."""

from odelab.methods.explicit import METHODS
from odelab.methods.tableau import Method

IMAGENET = {  # He et al. 2016, Table 1: blocks per stage, bottleneck
    18: ([2, 2, 2, 2], False),
    34: ([3, 4, 6, 3], False),
    50: ([3, 4, 6, 3], True),
    101: ([3, 4, 23, 3], True),
    152: ([3, 8, 36, 3], True),
}
CIFAR_BOTTLENECKS = (29, 83, 164, 1001)  # of those depths that are also 6n+2, the ones the literature means as 9n+2
CIFAR_WIDTHS, IMAGENET_WIDTHS = [16, 32, 64], [64, 128, 256, 512]


def positive(name: str, value) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"`{name}` must be a positive integer, got {value!r}.")
    return value


def one_of(name: str, value, allowed):
    if value not in allowed:
        raise ValueError(f"`{name}` must be one of {list(allowed)}, got {value!r}.")
    return value


def architecture(depth, bottleneck, family, widths) -> tuple[str, dict]:
    """The family, and {"blocks": per stage, "widths": per stage, "bottleneck": bool}."""
    positive("depth", depth)
    one_of("bottleneck", bottleneck, (None, True, False))
    one_of("family", family, (None, "cifar", "imagenet"))
    if family is None:
        known = depth in IMAGENET and bottleneck in (None, IMAGENET[depth][1])
        family = "imagenet" if known else "cifar"
    if family == "imagenet":
        if depth not in IMAGENET or bottleneck not in (None, IMAGENET[depth][1]):
            raise ValueError(
                f"`depth` must be one of ImageNet's {list(IMAGENET)}, got {depth}, bottleneck={bottleneck}."
            )
        counts, bottleneck = IMAGENET[depth]
    else:
        counts, bottleneck = cifar_blocks(depth, bottleneck)
    usual = IMAGENET_WIDTHS if family == "imagenet" else CIFAR_WIDTHS
    widths = list(usual if widths is None else widths)
    if len(widths) != len(counts):
        raise ValueError(f"`widths` must have one entry per stage, {len(counts)}, got {widths}.")
    return family, {
        "blocks": list(counts),
        "widths": [positive("widths", width) for width in widths],
        "bottleneck": bottleneck,
    }


def cifar_blocks(depth: int, bottleneck: bool | None) -> tuple[list[int], bool]:
    """Three stages of n blocks: 6n+2 layers of basic ones, 9n+2 of bottlenecks."""
    basic, deep = depth > 2 and (depth - 2) % 6 == 0, depth > 2 and (depth - 2) % 9 == 0
    if bottleneck is None:
        bottleneck = deep and (not basic or depth in CIFAR_BOTTLENECKS)
    if not (deep if bottleneck else basic):
        wanted = "9n+2 with bottlenecks (29, 83, 164)" if bottleneck else "6n+2 with basic blocks (20, 32, 44, 56, 110)"
        raise ValueError(f"`depth` must be {wanted}, or one of ImageNet's {list(IMAGENET)}; got {depth}.")
    return [(depth - 2) // (9 if bottleneck else 6)] * 3, bottleneck


def method_record(method) -> str | dict:
    """The name of a known method, or all coefficients of one's own."""
    if isinstance(method, str):
        return one_of("method", method.upper(), METHODS)
    if not isinstance(method, Method):
        raise TypeError(f"`method` must be an odelab Method or one of {list(METHODS)}, got {type(method).__name__}.")
    if METHODS.get(method.name) is method:
        return method.name
    return {
        "name": method.name,
        "order": method.order,
        "a": [[str(x) for x in row] for row in method.a],
        "b": [str(x) for x in method.b],
    }


def method_of(record: str | dict) -> Method:
    if isinstance(record, str):
        return METHODS[one_of("method", record, METHODS)]
    return Method(**record)


def solver(name, method, depth_factor) -> str | None:
    """A torchdiffeq solver makes the stage an ODE-net, which has no grid of ours to refine."""
    if name is None:
        return None
    try:
        from torchdiffeq._impl.odeint import SOLVERS
    except ImportError:
        raise ImportError(f"`solver` = {name!r} needs torchdiffeq; `method` does without it.") from None
    if method_record(method) != "EULER" or depth_factor != 1:
        raise ValueError(f"`solver` = {name!r} chooses its own steps: leave `method` and `depth_factor` alone.")
    return one_of("solver", name, sorted(SOLVERS))


def chosen_blocks(on, counts: list[int]) -> list[int]:
    """Block numbers from `on`: numbers over the whole network, negative ones from its end, or names."""
    names = [f"stages.{stage}.blocks.{i}" for stage, count in enumerate(counts) for i in range(count)]
    numbers = []
    for item in on if isinstance(on, list | tuple | set | range) else [on]:
        if isinstance(item, str) and item in names:
            numbers.append(names.index(item))
        elif isinstance(item, int) and -len(names) <= item < len(names):
            numbers.append(item % len(names))
        else:
            raise ValueError(f"`on` must name blocks 0 to {len(names) - 1}, or {names[0]!r} and so on; got {item!r}.")
    return numbers
