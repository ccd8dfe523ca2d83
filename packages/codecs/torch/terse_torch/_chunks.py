"""The chunk of a parameter that each rank owns, and the wires of the chunks: packages/exchange/src/by-owners."""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import torch
from terse_codecs import Codec, codec

Call = Callable[[int], Dict[str, Any]]  # from the first element to the arguments of the codec's encoder


class Layout(NamedTuple):
    """A wire with one field for each element, in order, after the scales of all scale groups."""

    field_bits: int
    scale_bytes: int  # of each scale group
    block: int  # elements of a scale group; 0: all


def unit_of(of: Codec) -> int:
    """Chunks begin at multiples of it: at whole bytes of fields, whole blocks, and whole groups of 64 draws."""
    block = of.parameters.get("block") or 1
    return math.lcm(64 if of.takes_random else 8, block ** of.parameters.get("dimensions", 1))


@functools.lru_cache(maxsize=None)
def layout_of(of: Codec) -> Optional[Layout]:
    """
    The layout, from the lengths of wires: scales are fp32, and fields narrower. None where the wire of a chunk cannot
    be cut out of the whole wire: for sparse wires, and for codes in several planes, which a trial shows.
    """
    if "k" in of.parameters:
        return None
    unit = unit_of(of)
    n = 2 * unit
    block = of.parameters.get("block") or 0
    groups = n // (block or n)
    scale_bytes = of.wire_bytes(1) // 4 * 4
    layout = Layout(8 * (of.wire_bytes(n) - groups * scale_bytes) // n, scale_bytes, block)
    call: Dict[str, Any] = {"zero": "plus"} if of.takes_zero else {}
    if of.takes_random:
        call.update(seed=0, step=0)
    # Whole numbers, which all codecs write
    numbers = torch.sin(torch.arange(1, n + 1, dtype=torch.float32, device="cpu")).round()
    whole = of.encode(numbers, **call)
    halves = []
    for begin in (0, unit):
        half = torch.empty(of.wire_bytes(unit), dtype=torch.uint8, device="cpu")
        cut(layout, whole, n, begin, begin + unit, half)
        halves.append(of.decode(half, unit))
    return layout if torch.equal(torch.cat(halves), of.decode(whole, n)) else None


def cut(layout: Layout, whole: torch.Tensor, n: int, begin: int, end: int, into: torch.Tensor) -> None:
    """The wire of the elements [begin, end), out of that of n. A chunk without blocks has the whole's scale."""
    bits, block = layout.field_bits, layout.block
    fields = whole[whole.numel() - -(-n * bits // 8) :][begin * bits // 8 : -(-end * bits // 8)]
    scales = into.numel() - fields.numel()
    first = layout.scale_bytes * (begin // block) if block else 0
    into[:scales] = whole[first : first + scales]
    into[scales:] = fields


class Chunks:
    """
    Rank r owns the elements [starts[r], starts[r + 1]) of n. A codec that keeps k elements keeps at most n, and its
    share of k in each chunk.
    """

    def __init__(self, of: Codec, n: int, ranks: int) -> None:
        keeps = of.name == "top-k" and n > 0
        self.codec, self.n, self.ranks = with_k(of, min(of.parameters["k"], n)) if keeps else of, n, ranks
        unit = unit_of(of)
        units = -(-n // unit)
        self.starts = [min(n, unit * (r * units // ranks)) for r in range(ranks + 1)]
        k = self.codec.parameters.get("k", 0)
        self.codecs = [
            with_k(of, max(1, -(-k * self.length(r) // n))) if keeps else self.codec for r in range(ranks)
        ]  # fmt: skip
        self.sizes = [self.codecs[r].wire_bytes(self.length(r)) if self.length(r) else 0 for r in range(ranks)]
        self._layout = layout_of(of)

    def length(self, r: int) -> int:
        return self.starts[r + 1] - self.starts[r]

    def of(self, x: torch.Tensor, r: int) -> torch.Tensor:
        return x[self.starts[r] : self.starts[r + 1]]

    def encode(
        self, x: torch.Tensor, wires: List[torch.Tensor], call: Call, error: Optional[torch.Tensor] = None
    ) -> None:
        """A wire for each owner. With an error: error += x; the wires carry the error; error -= what they carry."""
        if self.n == 0:
            return
        if self._layout is None:
            for r, wire in enumerate(wires):
                if self.length(r):
                    here = None if error is None else self.of(error, r)
                    write(self.codecs[r], self.of(x, r), here, wire, call(self.starts[r]))
            return
        whole = torch.empty(self.codec.wire_bytes(self.n), dtype=torch.uint8, device="cpu")
        write(self.codec, x, error, whole, call(0))
        for r, wire in enumerate(wires):
            if self.length(r):
                cut(self._layout, whole, self.n, self.starts[r], self.starts[r + 1], wire)


def write(of: Codec, x: torch.Tensor, error: Optional[torch.Tensor], wire: torch.Tensor, call: Dict[str, Any]) -> None:
    if error is None:
        of.encode(x, out=wire, **call)
    else:
        of.encode_with_feedback(x, error, out=wire, **call)


def with_k(of: Codec, k: int) -> Codec:
    return codec(of.name, **{**of.parameters, "k": k})
