"""Error-compensated means of usual sizes, by their names."""

from __future__ import annotations

from typing import Any

from torch.nn.parallel import DistributedDataParallel

from ._compensated_mean import CompensatedMean


def int8(model: DistributedDataParallel, **options: Any) -> CompensatedMean:
    """CompensatedMean with 8 bits an element, and a scale for each 512."""
    return CompensatedMean(model, "int8", **{"block": 512, **options})


def four_bits(model: DistributedDataParallel, **options: Any) -> CompensatedMean:
    """CompensatedMean with 4 bits an element, and a scale for each 512."""
    return CompensatedMean(model, "l1", **{"bits": 4, "block": 512, **options})
