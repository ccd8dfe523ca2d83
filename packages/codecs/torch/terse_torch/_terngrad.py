"""TernGrad: packages/optimizers/src/gradients/terngrad.ts, with a scale that the ranks share."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any, Dict, List, Optional

import terse_codecs
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ._agreement import Named
from ._by_owners import ByOwners
from ._chunks import Chunks
from ._hook import HookState, Places, refuse_seed
from ._levels import SumOfLevels
from ._vote import step_of

MOST_RANKS = 127  # so that 8 bits hold the sums


class TernGrad(HookState):
    """
    The mean of gradients without bias: -1, 0 or +1 for each element, drawn so that the mean is the gradient. Wen et al.
    2017, Algorithm 1 and sections 3.2 and 5, https://arxiv.org/abs/1705.07878

        g <- clip of g to c standard deviations of the parameter's;  c = `clip`, 0: none, and no bias
        s <- max over the ranks of max |g|                            for each parameter
        t <- sign(g) b,  P(b = 1) = |g| / s
        g <- s mean(t)                                                the same bits on every rank

    Two bits an element go up to owners, and as many come down as hold the sum of all ranks. `seed`: of the draws.
    """

    def __init__(
        self, model: DistributedDataParallel, *, clip: float = 2.5, seed: int = 0,
        process_group: Optional[dist.ProcessGroup] = None,
    ) -> None:  # fmt: skip
        def setting(_: Named) -> Dict[str, Any]:
            if not (isinstance(clip, numbers.Real) and 0 <= clip < math.inf):
                raise ValueError(f"TernGrad: clip is {clip!r}, and must be a number of standard deviations, or 0.")
            refuse_seed("TernGrad", seed)
            ranks = dist.get_world_size(process_group or model.process_group)
            if ranks > MOST_RANKS:
                raise ValueError(f"TernGrad: there are {ranks} ranks, and 8 bits hold the sum of {MOST_RANKS}.")
            return {"clip": float(clip), "seed": seed}

        super().__init__(model, process_group, setting)
        self._clip, self._seed, self._places = clip, seed, Places(self._lengths)
        self._levels = terse_codecs.codec("linf", bits=2, unscaled=True)
        bits = next(bits for bits in range(2, 9) if self._messages.ranks <= 2 ** (bits - 1) - 1)
        self._down = terse_codecs.codec("l1", bits=bits, unscaled=True)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from the state of any rank, with the same draws."""
        self.step = step_of("TernGrad", state)

    def _mean(self, gradient: torch.Tensor, names: List[str], last: bool) -> torch.Tensor:
        rank, ranks = self._messages.rank, self._messages.ranks
        mean = torch.zeros_like(gradient)
        lengths = [self._lengths[name] for name in names]
        gradients = [clipped(each, self._clip) for each in gradient.split(lengths)]
        scales = self._agreed(gradients, names)
        one = torch.ones(1, dtype=torch.float32, device="cpu")
        parts: List[Any] = []
        for name, each, into, scale in zip(names, gradients, mean.split(lengths), scales.split(1)):
            units = scale if each.numel() else scale[:0]

            def call(begin: int, name: str = name, units: torch.Tensor = units) -> Dict[str, Any]:
                index = self._places.index(rank, name, begin)
                return {"seed": self._seed, "step": self.step, "index": index, "units": units}

            chunks = Chunks(self._levels, each.numel(), ranks)
            reading = {"scale": 1 / ranks, "units": units}
            parts.append(
                SumOfLevels(rank, chunks, each, into, self._down, call, writing={"units": one}, reading=reading)
            )
        message = ByOwners(self._messages, self.step, parts, names)
        message.up([])
        message.down()
        self.step += last
        return mean

    def _agreed(self, gradients: List[torch.Tensor], names: List[str]) -> torch.Tensor:
        """The largest |g| of each parameter on any rank. A refusal ends here, before any level is sent."""
        nothing = torch.zeros((), dtype=torch.float32, device="cpu")
        mine = torch.stack([each.abs().max() if each.numel() else nothing for each in gradients])
        bad = [i for i, scale in enumerate(mine.tolist()) if not math.isfinite(scale)]
        note = 1 + list(self._lengths).index(names[bad[0]]) if bad else 0
        wire = mine.view(torch.uint8)
        ranks = self._messages.ranks
        everyones = self._messages.exchange([wire] * ranks, [wire.numel()] * ranks, self.step, note)
        return torch.stack([each.clone().view(torch.float32) for each in everyones]).amax(0)


def clipped(gradient: torch.Tensor, c: float) -> torch.Tensor:
    if c == 0 or gradient.numel() == 0:
        return gradient
    deviation = gradient.std(correction=0).item()
    finite = math.isfinite(deviation) and deviation > 0  # equal elements are not clipped
    return gradient.clamp(-c * deviation, c * deviation) if finite else gradient
