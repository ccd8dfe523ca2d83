"""Messages from every rank to every other one. A header carries refusals, so that all ranks raise together."""
from __future__ import annotations

from typing import Any, Dict, List

import torch
import torch.distributed as dist

HEADER = 8  # bytes: what is refused (0: nothing, else 1 + the parameter's place), and the step, two int32


class StepRefusedError(RuntimeError):
    """A gradient is not finite, or ranks do not fit together; every rank raises it."""


class CannotEncodeError(Exception):
    """A parameter's numbers cannot be written; its name is the argument."""


class Messages:
    """The ranks of a process group, and the parameters that their messages name."""

    def __init__(self, group: Any, names: List[str]) -> None:
        self.group = group
        self.rank, self.ranks = dist.get_rank(group), dist.get_world_size(group)
        self._names = names
        self._notes: Dict[str, int] = {name: 1 + place for place, name in enumerate(names)}

    def note_of(self, refusal: CannotEncodeError) -> int:
        return self._notes[str(refusal)]

    def exchange(self, outgoing: List[torch.Tensor], coming: List[int], step: int, note: int) -> List[torch.Tensor]:
        """All-to-all: the bytes for each rank, and those that come from each. Raises StepRefusedError on all ranks."""
        header = torch.tensor([note, step], dtype=torch.int32, device="cpu").view(torch.uint8)
        whole = torch.cat([piece for part in outgoing for piece in (header, part)])
        incoming = torch.empty(sum(coming) + HEADER * self.ranks, dtype=torch.uint8, device="cpu")
        dist.all_to_all_single(
            incoming,
            whole,
            [HEADER + size for size in coming],
            [HEADER + part.numel() for part in outgoing],
            group=self.group,
        )
        parts = incoming.split([HEADER + size for size in coming])
        for rank, part in enumerate(parts):
            noted, theirs = part[:HEADER].clone().view(torch.int32).tolist()
            if noted:
                raise StepRefusedError(
                    f"rank {rank} refuses step {step}: the gradient of {self._names[noted - 1]} is not finite, "
                    "or its codec cannot write it."
                )
            if theirs != step:
                raise StepRefusedError(
                    f"rank {rank} is at step {theirs}, and rank {self.rank} at step {step}: "
                    "begin on all ranks with the same state."
                )
        return [part[HEADER:] for part in parts]
