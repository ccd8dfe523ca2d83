"""
Whole numbers that the owners of chunks add: packages/exchange/src/kinds/level-sums.ts. Levels go up, and the sum comes
down in another codec: its signs, or the whole numbers.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import torch
from terse_codecs import Codec

from ._chunks import Call, Chunks


class SumOfLevels:
    """One parameter on its way: into += scale * down(sum over ranks of levels(x))."""

    def __init__(
        self, rank: int, chunks: Chunks, x: torch.Tensor, into: torch.Tensor, down: Codec, call: Call, *,
        writing: Optional[Dict[str, Any]] = None, reading: Optional[Dict[str, Any]] = None,
    ) -> None:  # fmt: skip
        """`writing` and `reading`: arguments of down's encoder and decoder."""
        ranks = len(chunks.sizes)
        self.up = chunks.sizes
        self.down = [down.wire_bytes(chunks.length(r)) if chunks.length(r) else 0 for r in range(ranks)]
        self._rank, self._chunks, self._x, self._into, self._codec, self._call = rank, chunks, x, into, down, call
        self._writing, self._reading = writing or {}, reading or {}

    def encode(self, wires: List[torch.Tensor]) -> None:
        self._chunks.encode(self._x, wires, self._call)

    def reduce(self, wires: List[torch.Tensor], result: torch.Tensor) -> None:
        total = torch.zeros(self._chunks.length(self._rank), dtype=torch.float32, device="cpu")
        for wire in wires:
            self._chunks.codecs[self._rank].decode_add(total, wire)
        self._codec.encode(total, out=result, **self._writing)

    def hand_out(self, results: List[torch.Tensor]) -> None:
        for r, wire in enumerate(results):
            if wire.numel():
                self._codec.decode_add(self._chunks.of(self._into, r), wire, **self._reading)
