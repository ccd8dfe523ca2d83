"""The vote of the ranks in place of the mean of their gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Dict, List, Optional

import terse_codecs
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ._agreement import Named
from ._by_owners import ByOwners
from ._chunks import Chunks
from ._hook import HookState, refuse_state
from ._levels import SumOfLevels
from ._messages import CannotEncodeError, Messages
from ._signs import Signs


class Vote(HookState):
    """
    The sign that most ranks have, for each element: signSGD with majority vote, Bernstein et al. 2018,
    https://arxiv.org/abs/1810.05291; with levels of p bits, Ishikawa et al. 2024, https://arxiv.org/abs/2411.16462

        1 bit      u <- sign(g);  g <- majority(u)           -1 or +1
        p bits     q <- Q1(g);    g <- sign(sum of q)        -1, 0 or +1; Q1: the codec l1, 2 to 8 bits

    One bit has no zero: `zero` is what a gradient of 0 votes, and `tie` the outcome where both signs have as many
    votes; "plus", "minus", or "alternate", the other sign in every step. No error is kept, so take an optimizer that is
    made for signs, such as SGD with momentum, and a learning rate as for Lion.
    """

    def __init__(
        self, model: DistributedDataParallel, *, bits: int = 1, zero: str = "alternate", tie: str = "alternate",
        process_group: Optional[dist.ProcessGroup] = None,
    ) -> None:  # fmt: skip
        def setting(named: Named) -> Dict[str, Any]:
            check_vote("Vote", bits, zero, tie, named)
            return {"bits": bits, "zero": zero, "tie": tie}

        super().__init__(model, process_group, setting)
        self._bits, self._zero, self._tie = bits, zero, tie

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from the state of any rank."""
        self.step = step_of("Vote", state)

    def _mean(self, gradient: torch.Tensor, names: List[str], last: bool) -> torch.Tensor:
        lengths = [self._lengths[name] for name in names]
        into = torch.zeros_like(gradient)
        gradients = gradient.split(lengths)
        if self._bits == 1:
            zero = terse_codecs.sign_at(self._zero, self.step)

            def write(i: int, wire: torch.Tensor) -> None:
                terse_codecs.sign.encode(gradients[i], zero=zero, out=wire)

            tie = terse_codecs.sign_at(self._tie, self.step)
            voted = by_signs(self._messages, self.step, names, lengths, tie, write)
            for each, signs in zip(into.split(lengths), voted):
                terse_codecs.sign.decode_add(each, signs)
        else:
            by_levels(self._messages, self.step, names, self._bits, gradients, into.split(lengths))
        self.step += last
        return into


def by_signs(
    messages: Messages, step: int, names: List[str], lengths: List[int], tie: str, write: Any
) -> List[torch.Tensor]:
    """The packed outcome of each parameter, whose signs `write` writes."""

    def named_write(i: int, wire: torch.Tensor) -> None:
        try:
            write(i, wire)
        except terse_codecs.NotFiniteError:
            raise CannotEncodeError(names[i]) from None

    signs = Signs(messages.rank, messages.ranks, lengths, tie, named_write)
    message = ByOwners(messages, step, [signs], names)
    message.up([])
    message.down()
    return signs.elected()


def by_levels(messages: Messages, step: int, names: List[str], bits: int, xs: Any, into: Any) -> None:
    """into += sign(sum over ranks of levels of x), with a scale for each parameter and rank."""
    levels = terse_codecs.codec("l1", bits=bits, unscaled=True)
    ternary = terse_codecs.codec("ternary")
    parts: List[Any] = []
    for x, each in zip(xs, into):
        chunks = Chunks(levels, x.numel(), messages.ranks)
        parts.append(SumOfLevels(messages.rank, chunks, x, each, ternary, lambda begin: {}))
    message = ByOwners(messages, step, parts, names)
    message.up([])
    message.down()


def check_vote(where: str, bits: int, zero: str, tie: str, named: Named) -> None:
    if bits not in range(1, 9):
        raise ValueError(f"{where}: bits is {bits!r}, and must be 1 to 8.")
    for what, policy in [("zero", zero), ("tie", tie)]:
        if policy not in ("plus", "minus", "alternate"):
            raise ValueError(f'{where}: {what} is {policy!r}, and must be "plus", "minus" or "alternate".')
        if bits > 1 and policy != "alternate":
            raise ValueError(f"{where}: with {bits} bits a level can be 0, and {what} has no meaning: leave it out.")
    for name, parameter in named:
        if bits == 2 and parameter.numel() == 1:
            raise ValueError(f"{where}: with 2 bits the one element of {name} would never move, because it is half a "
                             "level: take 1 bit, or 3 and more.")  # fmt: skip


def step_of(where: str, state: Mapping[str, Any]) -> int:
    refuse_state(where, state)
    return int(state["step"])
