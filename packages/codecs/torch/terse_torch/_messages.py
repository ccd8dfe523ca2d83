"""
Messages from every rank to every other one. A header carries refusals, so that all ranks raise together. What nobody
foresaw ends the process group: the other ranks, which would wait for this one, raise its sentence.
"""

from __future__ import annotations

import contextlib
import uuid
from typing import Any, Dict, Iterator, List
from unittest import mock

import torch
import torch.distributed as dist

HEADER = 8  # bytes: what is refused (0: nothing, else 1 + the parameter's place), and the step, two int32


class StepRefusedError(RuntimeError):
    """A gradient is not finite, ranks do not fit together, or another rank has failed; every rank raises an error."""


class StepSkippedError(Exception):
    """A rank's GradScaler skips the step: no rank changes a parameter."""


class CannotEncodeError(Exception):
    """A parameter's numbers cannot be written; its name is the argument."""


SKIPPED = -1  # in place of the refused parameter
FAILURE = "failure"  # the place of its sentence in the store


def own_group(of: Any, on_cpu: bool) -> Any:
    """A process group of the same ranks, which may end without that of the caller. Wires lie in the CPU's memory."""
    # Such as "cpu:gloo,cuda:nccl", also where nobody has named a backend.
    backends = dict(each.split(":") for each in str(dist.get_backend_config(of)).split(","))
    backend = backends.get("cpu", "gloo") if on_cpu else "gloo"
    if of is dist.group.WORLD:
        group = dist.new_group(backend=backend)
    else:
        ranks = dist.get_process_group_ranks(of)
        name = [uuid.uuid4().hex]
        dist.broadcast_object_list(name, ranks[0], group=of)
        # PyTorch's own name depends on how many groups a rank has: ranks with other numbers of groups would wait for
        # ever, and after a close the name comes again, with the addresses of what was closed.
        with mock.patch.object(dist.distributed_c10d, "_process_group_name", lambda *_, **__: name[0], create=True):
            group = dist.new_group(ranks, backend=backend, use_local_synchronization=True)
    dist.barrier(group)  # a rank that fails at once would close connections that others are still making
    return group


class Messages:
    """
    The ranks of a process group, and the parameters that their messages name. `group` is nobody else's, nor is `down`,
    over which results come back from owners where several messages are under way.
    """

    def __init__(self, group: Any, names: List[str], down: Any = None) -> None:
        self._groups: List[Any] = [group, down] if down else [group]
        self._store = store_of(group)
        self.rank, self.ranks = dist.get_rank(group), dist.get_world_size(group)
        self._names = names
        self._notes: Dict[str, int] = {name: 1 + place for place, name in enumerate(names)}

    def second_half(self) -> None:
        """The own part of a message has arrived everywhere; hooks let the next message begin."""

    def note_of(self, refusal: CannotEncodeError) -> int:
        return self._notes[str(refusal)]

    @contextlib.contextmanager
    def ending_all(self) -> Iterator[None]:
        """An error in here that is no refusal of all ranks ends the other ranks too."""
        try:
            yield
        except (StepRefusedError, StepSkippedError):
            raise
        except BaseException as error:
            self._end(f"rank {self.rank} has failed: {type(error).__name__}: {error}")
            raise

    def _end(self, reason: str) -> None:
        """Closes the connections, on which the other ranks wait. The first reason stays."""
        if not self._groups:
            return
        with contextlib.suppress(RuntimeError):  # the store has gone with its process
            self._store.compare_set(FAILURE, "", reason)
        self.close()

    def close(self) -> None:
        """Closes the connections, where all ranks have come to the end."""
        groups, self._groups = self._groups, []
        for group in groups:
            with contextlib.suppress(ValueError):  # the program has closed all groups before
                dist.destroy_process_group(group)

    def _failure_of_others(self) -> str:
        with contextlib.suppress(RuntimeError):
            if self._store.check([FAILURE]):
                return str(self._store.get(FAILURE).decode())
        return ""

    def exchange(
        self, outgoing: List[torch.Tensor], coming: List[int], step: int, note: int, down: bool = False
    ) -> List[torch.Tensor]:
        """All-to-all: the bytes for each rank, and those that come from each. Raises StepRefusedError on all ranks."""
        header = torch.tensor([note, step], dtype=torch.int32, device="cpu").view(torch.uint8)
        whole = torch.cat([piece for part in outgoing for piece in (header, part)])
        incoming = torch.empty(sum(coming) + HEADER * self.ranks, dtype=torch.uint8, device="cpu")
        groups = self._groups
        if not groups:
            raise StepRefusedError(
                self._failure_of_others() or "it is closed, or an earlier step has failed: make it anew, from a save."
            )
        try:
            dist.all_to_all_single(
                incoming,
                whole,
                [HEADER + size for size in coming],
                [HEADER + part.numel() for part in outgoing],
                group=groups[-1 if down else 0],
            )
        except RuntimeError as error:
            failure = self._failure_of_others()
            self._end(f"rank {self.rank} has failed: {error}")
            if failure:
                raise StepRefusedError(failure) from error
            raise
        parts = incoming.split([HEADER + size for size in coming])
        for rank, part in enumerate(parts):
            noted, theirs = part[:HEADER].clone().view(torch.int32).tolist()
            if noted == SKIPPED:
                raise StepSkippedError
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


def store_of(group: Any) -> Any:
    """Where the ranks of the group have found each other."""
    if hasattr(group, "get_group_store"):
        return group.get_group_store()
    # Older versions of PyTorch have no public name for it.
    return dist.PrefixStore(f"terse_torch/{group.group_name}", dist.distributed_c10d._get_default_store())
