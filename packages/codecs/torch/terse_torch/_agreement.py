"""What must be the same on every rank is compared once, before the first step, which would be wrong in silence."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
import torch.distributed as dist

Named = List[Tuple[str, torch.nn.Parameter]]


def agree(where: str, group: Any, setting: Callable[[], Dict[str, Any]]) -> None:
    """
    Raises ValueError on every rank where their settings differ, with the first difference. Where `setting` raises on
    one rank, the others do not wait for it: they raise ValueError with its sentence.
    """
    mine: Optional[Dict[str, Any]] = None
    failure: Optional[Exception] = None
    try:
        mine = setting()
    except (TypeError, ValueError, NotImplementedError) as error:
        failure = error
    everyones: List[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(everyones, (mine, str(failure)), group=group)
    if failure is not None:
        raise failure
    for rank, (theirs, said) in enumerate(everyones):
        if theirs is None:
            raise ValueError(f"{where}: rank {rank} ends: {said}")
    first = everyones[0][0]
    for rank, (theirs, _) in enumerate(everyones):
        for key in dict.fromkeys([*first, *theirs]):
            if first.get(key) != theirs.get(key):
                raise ValueError(
                    f"{where}: {key} is {first.get(key)} on rank 0, and {theirs.get(key)} on rank {rank}: "
                    "it must be the same on every rank."
                )


def layout_of(named: Named) -> Dict[str, Any]:
    """Names, shapes and types of the parameters, in their order, as a part of a setting."""
    shapes = {f"parameter {name}": f"{tuple(each.shape)} of {each.dtype}" for name, each in named}
    return {**shapes, "the order of parameters": [name for name, _ in named]}


def refuse_kinds(where: str, named: Named) -> None:
    """NotImplementedError for parameters that are no plain floats of this rank."""
    for name, parameter in named:
        # By DTensor, by FullyShardedDataParallel, and by the latter with use_orig_params
        marks = ("device_mesh", "_is_flat_param", "_fsdp_flattened")
        if any(getattr(parameter, mark, False) is not False for mark in marks):
            raise NotImplementedError(f"{where}: {name} is sharded, as by FSDP: each rank must have all parameters.")
        if parameter.is_complex():
            raise NotImplementedError(f"{where}: {name} is complex: make it two real parameters.")
