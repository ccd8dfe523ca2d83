"""The error-compensated mean: packages/exchange/src/kinds/mean-error-compensated.ts."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Dict, List, Optional, Union

import terse_codecs
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ._chunks import Chunks
from ._hook import Carrier, StepRefusedError

HEADER = 8  # bytes before the wires: what is refused (0: nothing), and the step, two int32
NO_FEEDBACK = {"sign", "ternary", "count", "qsgd", "terngrad"}


class CompensatedMean:
    """
    The mean of gradients, compressed to the owners of chunks and back from them; what a wire cannot carry is added at
    the next step. 1-bit Adam, Tang et al. 2021, Algorithm 1, https://arxiv.org/abs/2102.02888

        e <- e + g,  a = C(e),  e <- e - a           every rank, for each parameter
        f <- f + mean(a),  b = C(f),  f <- f - b     the owner of a chunk
        g <- b                                       the same bits on every rank

    `codec` and its parameters define C: "scaled-sign" (one bit), "int8", codec="l1" with bits=4, ... Errors belong to
    parameters, so buckets may change. Call it on every rank, with the same arguments.
    """

    def __init__(
        self, model: DistributedDataParallel, codec: str = "scaled-sign", *, seed: int = 0,
        process_group: Optional[dist.ProcessGroup] = None, **parameters: Any,
    ) -> None:  # fmt: skip
        if not isinstance(model, DistributedDataParallel):
            raise TypeError(
                f"CompensatedMean: model is a {type(model).__name__}, and must be a DistributedDataParallel; "
                "FSDP has no such hook."
            )
        self.codec = terse_codecs.codec(codec, **parameters)
        if codec in NO_FEEDBACK or (codec == "linf" and parameters.get("bits") == 2):
            raise ValueError(
                f"CompensatedMean: the error of {self.codec!r} could grow without end: "
                "take scaled-sign, int8, or l1 with bits=4."
            )
        embeddings = (torch.nn.Embedding, torch.nn.EmbeddingBag)
        for name, module in model.module.named_modules():
            if isinstance(module, embeddings) and module.sparse:
                raise NotImplementedError(
                    f"CompensatedMean: {name or 'the model'} has sparse gradients: build it with sparse=False."
                )
        named = [(name, parameter) for name, parameter in model.module.named_parameters() if parameter.requires_grad]
        for name, parameter in named:
            if parameter.device.type != "cpu":
                raise NotImplementedError(
                    f"CompensatedMean: {name} is on {parameter.device}, and gradients are encoded on the CPU alone."
                )
        self.step, self._seed = 0, seed
        self._names = {id(parameter): name for name, parameter in named}
        self._places: Dict[str, int] = {}  # in one long vector, for random numbers
        place = 0
        for name, parameter in named:
            self._places[name] = place
            place += -(-parameter.numel() // 64) * 64
        if process_group is None:
            ranks = dist.get_process_group_ranks(model.process_group)
            process_group = dist.new_group(
                ranks,
                backend=dist.get_backend(model.process_group),
                use_local_synchronization=model.process_group is not dist.group.WORLD,
            )
        self._group: Any = process_group
        self._rank, self._ranks = dist.get_rank(process_group), dist.get_world_size(process_group)
        self._chunks: Dict[int, Chunks] = {}
        self._errors = {name: torch.zeros(parameter.numel()) for name, parameter in named}
        self._owned = {name: torch.zeros(self._owned_length(parameter.numel())) for name, parameter in named}
        self._carrier = Carrier()

    def state_dict(self) -> Dict[str, Any]:
        """A copy of what this rank has: save it beside the model, a file for each rank."""
        return {
            "codec": repr(self.codec),
            "rank": self._rank,
            "ranks": self._ranks,
            "step": self.step,
            "errors": {name: error.clone() for name, error in self._errors.items()},
            "owned": {name: error.clone() for name, error in self._owned.items()},
        }

    def load_state_dict(self, state: Union[Mapping[str, Any], Sequence[Mapping[str, Any]]]) -> None:
        """
        Goes on from this rank's state, with the same bits; or, on any number of ranks, from a list of those of all
        ranks: each takes the mean of their errors, and the errors of owners are cut anew, so that their sum stays.
        ValueError, which changes nothing, where the states are of another codec or model, or not those of all ranks.
        """
        states: List[Mapping[str, Any]] = [state] if isinstance(state, Mapping) else list(state)
        if not states:
            raise ValueError("CompensatedMean: an empty list of states; give those of all ranks.")
        before = states[0]["ranks"]
        for each in states:
            if each["codec"] != repr(self.codec):
                raise ValueError(f"CompensatedMean: the state is that of {each['codec']}, and this is {self.codec!r}.")
            lengths = {name: error.numel() for name, error in each["errors"].items()}
            expected = {name: error.numel() for name, error in self._errors.items()}
            if lengths != expected:
                other = sorted(set(lengths.items()) ^ set(expected.items()))[0][0]
                raise ValueError(f"CompensatedMean: the state is that of another model: {other} differs.")
        if before == self._ranks and any(each["rank"] == self._rank for each in states):
            states = [next(each for each in states if each["rank"] == self._rank)]
        elif sorted(each["rank"] for each in states) != list(range(before)):
            given = ", ".join(str(each["rank"]) for each in states)
            raise ValueError(
                f"CompensatedMean: the state is that of rank {given} of {before}, and this is rank {self._rank} of "
                f"{self._ranks}: give a list of the states of all {before} ranks."
            )
        carried = before != self._ranks
        for name, error in self._errors.items():
            if not carried:
                error.copy_(states[0]["errors"][name])
                self._owned[name].copy_(states[0]["owned"][name])
                continue
            error.copy_(sum(each["errors"][name].double() for each in states) / before)
            of_owners = self._joined({each["rank"]: each["owned"][name] for each in states}, error.numel(), before)
            if self._ranks == 1:
                error.add_(of_owners)
            else:
                starts = self._of(error.numel()).starts
                self._owned[name].copy_(of_owners[starts[self._rank] : starts[self._rank + 1]])
        self.step = states[0]["step"]

    def _joined(self, owned: Dict[int, torch.Tensor], n: int, ranks: int) -> torch.Tensor:
        """The errors of all owners of a parameter of n elements."""
        if ranks == 1:
            return torch.zeros(n)
        return torch.cat([owned[rank] for rank in range(ranks)])

    def _owned_length(self, n: int) -> int:
        return self._of(n).length(self._rank) if self._ranks > 1 else 0

    def _of(self, n: int) -> Chunks:
        if n not in self._chunks:
            self._chunks[n] = Chunks(self.codec, n, self._ranks)
        return self._chunks[n]

    def _call(self, name: str, stream: int, begin: int) -> Dict[str, Any]:
        call: Dict[str, Any] = {"zero": "plus"} if self.codec.takes_zero else {}
        if self.codec.takes_random:
            call.update(seed=self._seed, step=self.step, index=stream * 2**40 + self._places[name] + begin)
        return call

    def _carry(self, buffer: torch.Tensor, parameters: List[torch.Tensor], last: bool) -> torch.Tensor:
        rank, ranks = self._rank, self._ranks
        names = [self._names[id(parameter)] for parameter in parameters]
        chunks = [self._of(parameter.numel()) for parameter in parameters]
        gradients = buffer.float().split([of.n for of in chunks])
        sizes = [HEADER + sum(of.sizes[r] for of in chunks) for r in range(ranks)]
        noted = 0

        outgoing = torch.zeros(sum(sizes), dtype=torch.uint8).split(sizes)
        wires = [cut(part, [of.sizes[r] for of in chunks]) for r, part in enumerate(outgoing)]
        for i, (name, of) in enumerate(zip(names, chunks)):
            try:
                outgoing_wires = [wires[r][i] for r in range(ranks)]
                of.encode(
                    gradients[i], self._errors[name], outgoing_wires, lambda begin: self._call(name, 2 * rank, begin)
                )
            except (terse_codecs.NotFiniteError, terse_codecs.DoesNotFitError):
                noted = noted or 1 + i
        for part in outgoing:
            part[:HEADER] = torch.tensor([noted, self.step], dtype=torch.int32).view(torch.uint8)
        arrived = self._exchange(torch.cat(outgoing), sizes, [sizes[rank]] * ranks, names)

        noted, result = 0, torch.zeros(sizes[rank], dtype=torch.uint8)
        incoming = [cut(part, [of.sizes[rank] for of in chunks]) for part in arrived]
        for i, (name, of) in enumerate(zip(names, chunks)):
            if of.length(rank) == 0:
                continue
            mine = cut(result, [each.sizes[rank] for each in chunks])[i]
            if ranks == 1:
                mine.copy_(incoming[0][i])
                continue
            codec, error = of.codecs[rank], self._owned[name]
            for from_rank in incoming:
                codec.decode_add(error, from_rank[i], 1 / ranks)
            try:
                codec.encode(error, out=mine, **self._call(name, 2 * rank + 1, of.starts[rank]))
                codec.decode_add(error, mine, -1.0)
            except (terse_codecs.NotFiniteError, terse_codecs.DoesNotFitError):
                noted = noted or 1 + i
        result[:HEADER] = torch.tensor([noted, self.step], dtype=torch.int32).view(torch.uint8)
        results = self._exchange(result.repeat(ranks), [sizes[rank]] * ranks, sizes, names)

        mean = torch.zeros(buffer.numel())
        for r, part in enumerate(results):
            into_each, wires_of_r = mean.split([of.n for of in chunks]), cut(part, [of.sizes[r] for of in chunks])
            for of, into, wire in zip(chunks, into_each, wires_of_r):
                if of.length(r):
                    of.codecs[r].decode_add(into[of.starts[r] : of.starts[r + 1]], wire)
        self.step += last
        return buffer.copy_(mean)

    def _exchange(
        self, outgoing: torch.Tensor, sizes: List[int], coming: List[int], names: List[str]
    ) -> List[torch.Tensor]:
        """All-to-all. StepRefusedError on every rank, where one has refused or is at another step."""
        incoming = torch.empty(sum(coming), dtype=torch.uint8)
        dist.all_to_all_single(incoming, outgoing, coming, sizes, group=self._group)
        parts = list(incoming.split(coming))
        for r, part in enumerate(parts):
            noted, step = part[:HEADER].clone().view(torch.int32).tolist()
            if noted:
                raise StepRefusedError(
                    f"rank {r} refuses step {self.step}: the gradient of {names[noted - 1]} is not finite, "
                    "or its codec cannot write it."
                )
            if step != self.step:
                raise StepRefusedError(
                    f"rank {r} is at step {step}, and rank {self._rank} at step {self.step}: "
                    "begin on all ranks with the same state."
                )
        return parts


def cut(part: torch.Tensor, sizes: List[int]) -> List[torch.Tensor]:
    """The wires of the parameters, after the header."""
    return list(part[HEADER:].split(sizes))
