"""Whether the rows of a batch are samples: whether a state of one row depends on another row."""

import torch
from torch import nn

from netbridge.common.nested_tensors import map_tensors, tensors
from netbridge.foreign.graph import Graph
from netbridge.foreign.operations import Step
from netbridge.foreign.vocabulary import LAYOUTS, POINTWISE, SHAPED, TRANSPARENT
from netbridge.foreign.watching import Pass, Watching

ROW_BY_ROW = (
    POINTWISE
    | TRANSPARENT
    | SHAPED
    | (LAYOUTS - {"transpose", "permute", "swapaxes", "swapdims", "movedim", "moveaxis"})
) | set(
    "input conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d linear layer_norm group_norm "  # noqa: SIM905
    "rms_norm instance_norm max_pool1d max_pool2d avg_pool1d avg_pool2d adaptive_avg_pool1d adaptive_avg_pool2d "
    "adaptive_max_pool2d interpolate pad embedding glu expand expand_as".split()
)  # whatever they are given, row by row of the first axis
REDUCING = set("mean sum amax amin max min var std norm linalg_norm linalg_vector_norm".split())  # noqa: SIM905
TOLERANCE = 1e-5  # relative; products of matrices may round differently


def find_mixed(net: nn.Module, call, sample, seen: Pass, steps: list[Step]) -> list[str]:
    """The steps whose state of one row of a sample depends on another row.

    Two more passes, one of them with another first row; none where every operation works row by row.
    """
    graph = seen.graph
    alive = [i for i in range(len(seen.operations)) if graph.live[i]]
    if all(seen.operations[i].name in ROW_BY_ROW or is_within_rows(graph, i, net) for i in alive):
        return []
    rows = len(next(iter(tensors(sample))))
    before, after = (states(net, call, one, seen, steps) for one in (sample, map_tensors(sample, other_first(rows))))
    mixed = []
    for k, step in enumerate(steps):
        if k in before and k in after and before[k].shape == after[k].shape:
            change = (after[k] - before[k]).flatten(1)[1:].abs().amax(1)
            if bool((change > TOLERANCE * before[k].abs().amax()).any()):
                mixed.append(step.name)
    return mixed


def is_within_rows(graph: Graph, i: int, net: nn.Module) -> bool:
    """Is this a normalisation by statistics that are kept, or a mean or another reduction over what is no sample?"""
    operation, images = graph.operations[i], graph.images
    if operation.name == "batch_norm":
        return not net.get_submodule(operation.module).training
    shapes = [operation.shape, *(graph.operations[j].shape for j in graph.sources(i))]
    return operation.name in REDUCING and all(shape[:1] == (images,) and shape.count(images) == 1 for shape in shapes)


def other_first(rows: int):
    """A function that changes the first row of a tensor with this many."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.ndim < 2 or len(tensor) != rows or tensor.dtype == torch.bool:
            return tensor
        tensor = tensor.clone()
        if tensor.is_floating_point():
            generator = torch.Generator().manual_seed(0)
            noise = torch.randn(tensor[0].shape, generator=generator).to(tensor)
            tensor[0] += noise * tensor.std().clamp_min(torch.finfo(tensor.dtype).tiny ** 0.25)
        else:
            tensor[0] = tensor[0].flip(-1)
        return tensor

    return change


def states(net: nn.Module, call, batch, seen: Pass, steps: list[Step]) -> dict[int, torch.Tensor]:
    """The states of a pass by the number of the step; none where it went another way than the one that was seen."""
    found: dict[int, torch.Tensor] = {}
    behind: dict[int, list] = {}
    for k, step in enumerate(steps):
        keep = lambda value, k=k, axis=step.axis: found.__setitem__(k, value.movedim(axis, 0).clone())  # noqa: E731
        behind.setdefault(step.addition, []).append(keep)
    batch = map_tensors(batch, torch.clone)
    with Watching(net, tensors(batch), seen.operations, behind=behind) as watching:
        call(net, batch)
    return found if watching.is_complete() else {}
