"""The error-compensated mean: packages/exchange/src/kinds/mean-error-compensated.ts."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any, Dict, List, Optional, Tuple, Union

import terse_codecs
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ._agreement import Named
from ._by_owners import ByOwners
from ._chunks import Call, Chunks
from ._hook import HookState, Places, refuse_seed, refuse_state

NO_MAGNITUDE = "sends no magnitude"
DRAWN = "draws its levels at random, and their error may exceed the gradient"
NO_FEEDBACK = {"sign": NO_MAGNITUDE, "ternary": NO_MAGNITUDE, "count": NO_MAGNITUDE, "qsgd": DRAWN, "terngrad": DRAWN}
# Of sums of wires, and of vectors of one length.
NOT_OF_GRADIENTS = ("levels", "ranks", "segments", "side", "unscaled", "width")


class CompensatedMean(HookState):
    """
    The mean of gradients, compressed to the owners of chunks and back from them; what a wire cannot carry is added at
    the next step. 1-bit Adam, Tang et al. 2021, Algorithm 1, https://arxiv.org/abs/2102.02888

        e <- e + g,  a = C(e),  e <- e - a           every rank, for each parameter
        f <- f + mean(a),  b = C(f),  f <- f - b     the owner of a chunk
        g <- b                                       the same bits on every rank

    `codec` and its parameters define C: "scaled-sign" (one bit), "int8", "l1" with bits=4, "top-k" with ratio=0.01, ...
    A parameter that no rank uses in a step sends nothing, and keeps its errors. Errors belong to parameters, so buckets
    may change. Call it on every rank, with the same arguments.
    """

    def __init__(
        self, model: DistributedDataParallel, codec: str = "scaled-sign", *, seed: int = 0,
        process_group: Optional[dist.ProcessGroup] = None, **parameters: Any,
    ) -> None:  # fmt: skip
        self._chunks: Dict[int, Chunks] = {}

        def setting(named: Named) -> Dict[str, Any]:
            refuse_codec(codec, parameters)
            refuse_seed("CompensatedMean", seed)
            ranks = dist.get_world_size(process_group or model.process_group)
            self._drops_unused = model.find_unused_parameters or model.static_graph
            for name, parameter in named:
                n = parameter.numel()
                if n not in self._chunks:
                    self._chunks[n] = chunks_of(name, codec, parameters, n, ranks)
            self._codec = describe(codec, parameters)
            return {"codec": self._codec, "seed": seed, "find_unused_parameters or static_graph": self._drops_unused}

        super().__init__(model, process_group, setting)
        self._seed, self._places = seed, Places(self._lengths)
        mine = {name: self._chunks[n].length(self._messages.rank) for name, n in self._lengths.items()}
        self._errors = {name: zeros(n) for name, n in self._lengths.items()}
        self._owned = {name: zeros(n if self._messages.ranks > 1 else 0) for name, n in mine.items()}

    def state_dict(self) -> Dict[str, Any]:
        """A copy of what this rank has: save it beside the model, a file for each rank."""
        return {
            **super().state_dict(),
            "codec": self._codec,
            "errors": {name: error.clone() for name, error in self._errors.items()},
            "owned": {name: error.clone() for name, error in self._owned.items()},
        }

    def load_state_dict(self, state: Union[Mapping[str, Any], Sequence[Mapping[str, Any]]]) -> None:
        """
        Goes on from this rank's state, with the same bits; or, on any number of ranks, from a list of those of all
        ranks: each takes the mean of their errors, and the errors of owners are cut anew, so that their sum stays.
        ValueError, which changes nothing, where the states are of another codec or model, or not those of all ranks.
        """
        states: List[Mapping[str, Any]] = list(state) if isinstance(state, (list, tuple)) else [state]  # type: ignore
        if not states:
            raise ValueError("CompensatedMean: an empty list of states; give those of all ranks.")
        for each in states:
            refuse_state("CompensatedMean", each, "rank", "ranks", "codec", "errors", "owned")
        rank, ranks, before = self._messages.rank, self._messages.ranks, states[0]["ranks"]
        for each in states:
            if each["codec"] != self._codec:
                raise ValueError(f"CompensatedMean: the state is that of {each['codec']}, and this is {self._codec}.")
            lengths = {name: error.numel() for name, error in each["errors"].items()}
            if lengths != self._lengths:
                other = sorted(set(lengths.items()) ^ set(self._lengths.items()))[0][0]
                raise ValueError(f"CompensatedMean: the state is that of another model: {other} differs.")
            for what in ("ranks", "step"):
                if each[what] != states[0][what]:
                    raise ValueError(
                        f"CompensatedMean: {what} is {states[0][what]} in the state of rank {states[0]['rank']}, and "
                        f"{each[what]} in that of rank {each['rank']}: give the states of one save."
                    )
        if before == ranks and any(each["rank"] == rank for each in states):
            states = [next(each for each in states if each["rank"] == rank)]
        elif sorted(each["rank"] for each in states) != list(range(before)):
            given = ", ".join(str(each["rank"]) for each in states)
            raise ValueError(
                f"CompensatedMean: the state is that of rank {given} of {before}, and this is rank {rank} of "
                f"{ranks}: give a list of the states of all {before} ranks."
            )
        carried = before != ranks
        for name, error in self._errors.items():
            if not carried:
                error.copy_(states[0]["errors"][name])
                self._owned[name].copy_(states[0]["owned"][name])
                continue
            error.copy_(sum(each["errors"][name].double() for each in states) / before)
            of_owners = zeros(error.numel())
            if before > 1:
                by_rank = {each["rank"]: each["owned"][name] for each in states}
                of_owners = torch.cat([by_rank[r] for r in range(before)])
            if ranks == 1:
                error.add_(of_owners)
            else:
                self._owned[name].copy_(self._chunks[error.numel()].of(of_owners, rank))
        self.step = states[0]["step"]

    def _mean(self, gradient: torch.Tensor, names: List[str], last: bool) -> torch.Tensor:
        gradients = gradient.split([self._lengths[name] for name in names])
        parts = [self._part(*each) for each in zip(names, gradients)]
        idle = [self._drops_unused and not (any(g[:1]) or bool(g.any())) for g in gradients]
        before = {i: parts[i].errors() for i, is_idle in enumerate(idle) if is_idle}
        message = ByOwners(self._messages, self.step, parts, names)
        unused = [i for i, is_idle in enumerate(message.up(idle)) if is_idle]
        for i in unused:
            parts[i].restore(before[i])
            gradients[i].zero_()  # it may be -0 on some ranks
        message.down(without=unused)
        self.step += last
        return gradient

    def _part(self, name: str, gradient: torch.Tensor) -> CompensatedPart:
        def call(stream: int) -> Call:
            return lambda begin: call_of(of, self._seed, self.step, self._places.index(stream, name, begin))

        of = self._chunks[gradient.numel()].codec
        rank = self._messages.rank
        chunks, errors = self._chunks[gradient.numel()], (self._errors[name], self._owned[name])
        return CompensatedPart(rank, chunks, gradient, errors, (call(2 * rank), call(2 * rank + 1)))


class CompensatedPart:
    """
    One parameter on its way; errors and calls are those of the rank, and those of the owner. The mean takes the place
    of the gradient.
    """

    def __init__(
        self, rank: int, chunks: Chunks, gradient: torch.Tensor,
        errors: Tuple[torch.Tensor, torch.Tensor], calls: Tuple[Call, Call],
    ) -> None:  # fmt: skip
        self.up = self.down = chunks.sizes
        self._rank, self._chunks, self._gradient = rank, chunks, gradient
        self._error, self._owned = errors
        self._call, self._owners_call = calls

    def errors(self) -> torch.Tensor:
        return self._error.clone()

    def restore(self, error: torch.Tensor) -> None:
        self._error.copy_(error)

    def encode(self, wires: List[torch.Tensor]) -> None:
        self._chunks.encode(self._gradient, wires, self._call, self._error)

    def reduce(self, wires: List[torch.Tensor], result: torch.Tensor) -> None:
        if len(wires) == 1:  # a single rank has no error as an owner
            result.copy_(wires[0])
            return
        of = self._chunks.codecs[self._rank]
        for wire in wires:
            of.decode_add(self._owned, wire, 1 / len(wires))
        of.encode(self._owned, out=result, **self._owners_call(self._chunks.starts[self._rank]))
        of.decode_add(self._owned, result, -1.0)

    def hand_out(self, results: List[torch.Tensor]) -> None:
        for r, wire in enumerate(results):
            if wire.numel():
                self._chunks.codecs[r].decode_add(self._chunks.of(self._gradient, r).zero_(), wire)


def call_of(of: terse_codecs.Codec, seed: int, step: int, index: int) -> Dict[str, Any]:
    """The arguments of an encoder."""
    call: Dict[str, Any] = {"zero": "plus"} if of.takes_zero else {}
    if of.takes_random:
        call.update(seed=seed, step=step, index=index)
    return call


def zeros(n: int) -> torch.Tensor:
    return torch.zeros(n, dtype=torch.float32, device="cpu")


def refuse_codec(codec: str, parameters: Dict[str, Any]) -> None:
    """ValueError for a codec whose error could grow without end, and for parameters that no gradient has."""
    reason = DRAWN if codec == "linf" and parameters.get("bits") == 2 else NO_FEEDBACK.get(codec)
    if reason:
        raise ValueError(f"CompensatedMean: {codec} {reason}: take scaled-sign, int8, or l1 with bits=4.")
    for name in NOT_OF_GRADIENTS:
        if parameters.get(name):
            raise ValueError(f"CompensatedMean: {name} has no meaning for gradients: leave it out.")


def chunks_of(name: str, codec: str, parameters: Dict[str, Any], n: int, ranks: int) -> Chunks:
    """The chunks of a parameter of n elements. ratio: the share of elements that top-k sends, of which it sends one."""
    given = dict(parameters)
    ratio = given.pop("ratio", None)
    if ratio is not None:
        if codec != "top-k" or "k" in given or not (isinstance(ratio, numbers.Real) and 0 < ratio <= 1):
            raise ValueError(f"CompensatedMean: ratio is {ratio!r}, and must be a share of elements from 0 to 1, "
                             "of top-k alone, in place of k.")  # fmt: skip
        given["k"] = max(1, math.ceil(ratio * n))
    try:
        return Chunks(terse_codecs.codec(codec, **given), n, ranks)
    except terse_codecs.CodecError as error:
        raise ValueError(f"CompensatedMean: {name} cannot be sent: {error}") from None


def describe(codec: str, parameters: Dict[str, Any]) -> str:
    return f"codec({', '.join([repr(codec), *(f'{key}={value!r}' for key, value in sorted(parameters.items()))])})"
