"""
Up to the owners of chunks, and back from them: packages/exchange/src/by-owners/by-owners.ts. All ranks get the same
bits, because all read the owners' wires.
"""

from __future__ import annotations

from typing import Collection, List, Protocol

import terse_codecs
import torch

from ._messages import CannotEncodeError, Messages


class Part(Protocol):
    """What travels of one parameter, or of several: a wire for each owner, and a wire from each owner for all ranks."""

    up: List[int]  # bytes for the owners
    down: List[int]  # bytes from each owner

    def encode(self, wires: List[torch.Tensor]) -> None: ...

    def reduce(self, wires: List[torch.Tensor], result: torch.Tensor) -> None:
        """The owner: from the wires of all ranks to the result. Not called where it owns nothing."""

    def hand_out(self, results: List[torch.Tensor]) -> None: ...


class ByOwners:
    """The parts of one message. `names`: those of the parameters; a part without one name names them itself."""

    def __init__(self, messages: Messages, step: int, parts: List[Part], names: List[str]) -> None:
        self._messages, self._step, self._parts, self._names = messages, step, parts, names
        self._arrived: List[torch.Tensor] = []

    def up(self, idle: List[bool]) -> List[bool]:
        """`idle`: parameters that this rank has nothing to send of. The result: those that no rank has."""
        ranks = self._messages.ranks
        flags = packed(idle)
        own = flags.numel()
        outgoing = [torch.zeros(own + sum(part.up[r] for part in self._parts), dtype=torch.uint8, device="cpu")
                    for r in range(ranks)]  # fmt: skip
        note = 0
        for each in outgoing:
            each[:own] = flags
        wires = [each[own:].split([part.up[r] for part in self._parts]) for r, each in enumerate(outgoing)]
        for i, part in enumerate(self._parts):
            note = note or self._tried(i, part.encode, [of_rank[i] for of_rank in wires])
        coming = [outgoing[self._messages.rank].numel()] * ranks
        arrived = self._messages.exchange(outgoing, coming, self._step, note)
        self._arrived = [each[own:] for each in arrived]
        everyones = [int.from_bytes(bytes(each[:own].tolist()), "little") for each in arrived]
        return [all(flags >> i & 1 for flags in everyones) for i in range(len(idle))]

    def down(self, without: Collection[int] = ()) -> None:
        """`without`: parts that are neither reduced nor handed out."""
        self._messages.second_half()
        rank, ranks = self._messages.rank, self._messages.ranks
        result = torch.zeros(sum(part.down[rank] for part in self._parts), dtype=torch.uint8, device="cpu")
        into = result.split([part.down[rank] for part in self._parts])
        incoming = [each.split([part.up[rank] for part in self._parts]) for each in self._arrived]
        note = 0
        for i, part in enumerate(self._parts):
            if i not in without and part.down[rank]:
                note = note or self._tried(i, part.reduce, [of_rank[i] for of_rank in incoming], into[i])
        coming = [sum(part.down[r] for part in self._parts) for r in range(ranks)]
        results = self._messages.exchange([result] * ranks, coming, self._step, note, down=True)
        given = [each.split([part.down[r] for part in self._parts]) for r, each in enumerate(results)]
        for i, part in enumerate(self._parts):
            if i not in without:
                part.hand_out([of_rank[i] for of_rank in given])

    def _tried(self, i: int, work: object, *arguments: object) -> int:
        """The note of what cannot be written, or 0."""
        try:
            work(*arguments)  # type: ignore[operator]
        except CannotEncodeError as refusal:
            return self._messages.note_of(refusal)
        except (terse_codecs.NotFiniteError, terse_codecs.DoesNotFitError):
            return self._messages.note_of(CannotEncodeError(self._names[i]))
        return 0


def packed(flags: List[bool]) -> torch.Tensor:
    """One bit a flag."""
    value = sum(flag << i for i, flag in enumerate(flags))
    return torch.frombuffer(bytearray(value.to_bytes(-(-len(flags) // 8) or 1, "little")), dtype=torch.uint8)
