"""
The majority of the ranks' signs, one bit each way: packages/exchange/src/votes/all-to-all.ts. Ishikawa et al. 2024,
section 3.1, https://arxiv.org/abs/2411.16462
"""

from __future__ import annotations

from typing import Callable, List

import torch
from terse_codecs import majority


class Signs:
    """Packed signs of several parameters on their way, each of which begins at a byte; a rank counts its share."""

    def __init__(self, rank: int, ranks: int, lengths: List[int], tie: str, write: Callable[..., None]) -> None:
        """`write(i, wire)` writes the signs of parameter i, or raises CannotEncodeError."""
        self._sizes = [-(-n // 8) for n in lengths]
        count = sum(self._sizes)
        starts = [r * count // ranks for r in range(ranks + 1)]
        self.up = self.down = [end - begin for begin, end in zip(starts, starts[1:])]
        self._tie, self._write = tie, write
        self._elected = torch.empty(0, dtype=torch.uint8, device="cpu")

    def encode(self, wires: List[torch.Tensor]) -> None:
        whole = torch.empty(sum(self._sizes), dtype=torch.uint8, device="cpu")
        for i, wire in enumerate(whole.split(self._sizes)):
            self._write(i, wire)
        for wire, part in zip(wires, whole.split(self.up)):
            wire.copy_(part)

    def reduce(self, wires: List[torch.Tensor], result: torch.Tensor) -> None:
        majority(wires, 8 * result.numel(), tie=self._tie, out=result)

    def hand_out(self, results: List[torch.Tensor]) -> None:
        self._elected = torch.cat(results)

    def elected(self) -> List[torch.Tensor]:
        """The outcome of each parameter."""
        return list(self._elected.split(self._sizes))
