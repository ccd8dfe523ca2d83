"""The chunk of a parameter that each rank owns, and the wires of the chunks: packages/exchange/src/by-owners."""
from __future__ import annotations

import math
from typing import Any, Dict, List, Optional

import torch
from terse_codecs import Codec, codec

# Wires with one field for each element, after the scales: the wire of a chunk is cut out of the whole wire, so a scale
# is that of the whole parameter. Other codecs encode each chunk by itself.
FIELD_BITS = {"sign": 1, "scaled-sign": 1, "int8": 8, "f16": 16, "bf16": 16}
LEVELS = ("l1", "linf", "qsgd")


def field_bits(of: Codec) -> Optional[int]:
    if of.name in LEVELS:
        return int(of.parameters.get("width") or of.parameters["bits"])
    return FIELD_BITS.get(of.name)


class Chunks:
    """Rank r owns the elements [starts[r], starts[r + 1]) of n."""

    def __init__(self, of: Codec, n: int, ranks: int) -> None:
        self.codec, self.n, self.ranks = of, n, ranks
        block = of.parameters.get("block") or 1
        unit = math.lcm(64 if of.takes_random else 8, block)
        units = -(-n // unit)
        self.starts = [min(n, unit * (r * units // ranks)) for r in range(ranks + 1)]
        self.codecs = [self._part(r) for r in range(ranks)]
        self.sizes = [self.codecs[r].wire_bytes(self.length(r)) if self.length(r) else 0 for r in range(ranks)]

    def length(self, r: int) -> int:
        return self.starts[r + 1] - self.starts[r]

    def _part(self, r: int) -> Codec:
        if self.codec.name != "top-k" or not self.n:
            return self.codec
        given: Dict[str, Any] = self.codec.parameters
        return codec("top-k", **{**given, "k": max(1, -(-given["k"] * self.length(r) // self.n))})

    def encode(self, x: torch.Tensor, error: torch.Tensor, wires: List[torch.Tensor], call: Any) -> None:
        """error += x; a wire for each owner; error -= what they carry."""
        if self.n == 0:
            return
        bits = field_bits(self.codec)
        if bits is None:
            for r, wire in enumerate(wires):
                if self.length(r):
                    begin, end = self.starts[r], self.starts[r + 1]
                    self.codecs[r].encode_with_feedback(x[begin:end], error[begin:end], out=wire, **call(begin))
            return
        whole = self.codec.encode_with_feedback(x, error, **call(0))
        fields = whole[whole.numel() - -(-self.n * bits // 8) :]
        block = self.codec.parameters.get("block")
        for r, wire in enumerate(wires):
            begin, end = self.starts[r], self.starts[r + 1]
            if begin == end:
                continue
            here = fields[begin * bits // 8 : -(-end * bits // 8)]
            scale_bytes = wire.numel() - here.numel()
            first = 4 * (begin // block) if block else 0
            wire[:scale_bytes] = whole[first : first + scale_bytes]
            wire[scale_bytes:] = here
