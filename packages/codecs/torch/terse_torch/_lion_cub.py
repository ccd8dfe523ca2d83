"""Lion Cub: packages/optimizers/src/algorithms/lion-cub.ts and lion-cub-levels.ts, in Python."""

from __future__ import annotations

import contextlib
import math
import numbers
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

import terse_codecs
import torch
import torch.distributed as dist

from ._agreement import agree, layout_of, refuse_kinds
from ._by_owners import packed
from ._lion import Mixing, apply, apply_signs, mix, vote
from ._messages import SKIPPED, Messages, StepRefusedError, StepSkippedError, own_group
from ._vote import by_levels, by_signs, check_vote


class Work(NamedTuple):
    """What a step does with one parameter."""

    name: str
    parameter: torch.Tensor
    momentum: torch.Tensor
    gradient: torch.Tensor
    mixing: Mixing
    lr: float
    weight_decay: float


class LionCub(torch.optim.Optimizer):
    """
    Lion whose ranks vote. Ishikawa, Ben-Nun, Van Essen, Yokota, Dryden 2024, https://arxiv.org/abs/2411.16462

        u <- sign(b1 m + (1 - b1) g)      g, m: this rank's own gradient and momentum
        m <- b2 m + (1 - b2) g
        v <- majority(u)                  one bit up, one bit down; a tie is + and - on alternate steps
        p <- p - lr (v + weight_decay p)

    With `bits` from 2 to 8 the ranks vote with levels of b1 m + (1 - b1) g, and v is the sign of their sum, or 0.

    The optimizer itself is the exchange: gradients must be the rank's own, so give it the parameters of the model, not
    under DistributedDataParallel. When it is made, all ranks take the parameters of rank 0. A parameter without a
    gradient on every rank stays as it is; the momentum of each rank is in its `state_dict()`.
    """

    # GradScaler then calls every step, and says in grad_scale and found_inf what it would do: no rank waits for another
    _step_supports_amp_scaling = True

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-4, betas: Tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0, *, bits: int = 1, zero: str = "alternate", tie: str = "alternate",
        process_group: Optional[dist.ProcessGroup] = None,
    ) -> None:  # fmt: skip
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay, "step": 0})
        self._bits, self._zero, self._tie = bits, zero, tie
        self._group = process_group or dist.group.WORLD
        named = self._named()

        def setting() -> Dict[str, Any]:
            refuse_kinds("LionCub", named)
            check_vote("LionCub", bits, zero, tie, named)
            for group in self.param_groups:
                check_options(group)
            groups = [{key: each for key, each in group.items() if key not in ("params", "param_names")}
                      for group in self.param_groups]  # fmt: skip
            return {"bits": bits, "zero": zero, "tie": tie, "param_groups": groups, **layout_of(named)}

        agree("LionCub", self._group, setting)
        on_cpu = all(parameter.device.type == "cpu" for _, parameter in named)
        wires = own_group(self._group, on_cpu)
        self._messages = Messages(wires, [name for name, _ in named])
        for _, parameter in named:
            here = parameter.detach().to("cpu", copy=True)
            dist.broadcast(here, dist.get_process_group_ranks(wires)[0], group=wires)
            parameter.data.copy_(here)

    def close(self) -> None:
        """Closes its own process group, on all ranks, behind their last step: for programs that make many optimizers."""
        self._messages.close()

    def add_param_group(self, param_group: Dict[str, Any]) -> None:
        """For PyTorch, while the optimizer is made. Afterwards the ranks have agreed on its parameters."""
        if hasattr(self, "_messages"):
            raise NotImplementedError(
                "LionCub: its parameters are fixed when it is made: make one with all of them, or another for these."
            )
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """
        StepRefusedError on all ranks where their options differ, or a gradient is not finite: then go on from a save,
        because momenta have changed.
        """
        if not hasattr(self, "_messages"):
            raise RuntimeError(
                "LionCub: this is a copy, which has no connections to other ranks: make one on every rank, and give it "
                "the state_dict() of the copy."
            )
        loss = None
        if closure is not None:
            with self._messages.ending_all(), torch.enable_grad():
                loss = closure()
        with contextlib.suppress(StepSkippedError), self._messages.ending_all():
            self._step(self.param_groups[0]["step"])
        return loss

    def _step(self, number: int) -> None:
        work = self._work(number)
        names = [each.name for each in work]
        if self._bits == 1:

            def write(i: int, wire: torch.Tensor) -> None:
                vote(wire, work[i].momentum, work[i].gradient, work[i].mixing)

            tie = terse_codecs.sign_at(self._tie, number)
            lengths = [each.parameter.numel() for each in work]
            for each, signs in zip(work, by_signs(self._messages, number, names, lengths, tie, write)):
                apply_signs(each.parameter, signs, each.lr, each.weight_decay)
        else:
            mixed = [mix(each.momentum, each.gradient, each.mixing).cpu() for each in work]
            votes = [torch.zeros_like(each) for each in mixed]
            by_levels(self._messages, number, names, self._bits, mixed, votes)
            for each, voted in zip(work, votes):
                apply(each.parameter, voted, each.lr, each.weight_decay)
        for group in self.param_groups:
            group["step"] += 1

    def _work(self, number: int) -> List[Work]:
        """The parameters that some rank has a gradient of."""
        for group in self.param_groups:  # a schedule may have changed them
            check_options(group)
        owners = [group for group in self.param_groups for _ in group["params"]]
        named = self._named()
        note = SKIPPED if float(getattr(self, "found_inf", 0)) else 0
        inverse_scale = 1 / float(getattr(self, "grad_scale", None) or 1)
        for name, parameter in named:
            if parameter.grad is not None and parameter.grad.is_sparse:
                raise NotImplementedError(f"LionCub: the gradient of {name} is sparse: build it with sparse=False.")
        absent = packed([parameter.grad is None for _, parameter in named])
        mine = torch.cat([absent, packed_options(self.param_groups)])
        ranks = self._messages.ranks
        everyones = torch.stack(self._messages.exchange([mine] * ranks, [mine.numel()] * ranks, number, note))
        refuse_other_options(everyones[:, absent.numel() :], number)
        zero = terse_codecs.sign_at(self._zero, number)
        work = []
        for place, ((name, parameter), group) in enumerate(zip(named, owners)):
            if bool((everyones[:, place // 8] >> (place % 8) & 1).all()):
                continue
            state = self.state[parameter]
            if not state:
                state["momentum"] = torch.zeros(parameter.shape, dtype=torch.float32, device=parameter.device)
            m = state["momentum"]
            g = torch.zeros_like(m) if parameter.grad is None else parameter.grad
            mixing = Mixing(*group["betas"], inverse_scale, zero)
            work.append(Work(name, parameter, m, g, mixing, float(group["lr"]), float(group["weight_decay"])))
        return work

    def _named(self) -> List[Tuple[str, torch.Tensor]]:
        found = []
        for i, group in enumerate(self.param_groups):
            names = group.get("param_names") or [f"{k} of group {i}" for k in range(len(group["params"]))]
            found += list(zip(names, group["params"]))
        return found

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """The momentum stays in float32, where PyTorch would cast it to the type of its parameter."""
        saved = [group for group in state_dict.get("param_groups", []) if "betas" in group and "step" in group]
        whole = all("momentum" in state for state in state_dict.get("state", {}).values())
        if not whole or len(saved) != len(self.param_groups):
            raise ValueError("LionCub: the state is that of another optimizer, or of other groups of parameters.")
        places = [place for group in state_dict["param_groups"] for place in group["params"]]
        for place, (name, parameter) in zip(places, self._named()):
            shape = state_dict["state"].get(place, {"momentum": parameter})["momentum"].shape
            if shape != parameter.shape:
                raise ValueError(f"LionCub: the state is that of another model: the momentum of {name} is of "
                                 f"{tuple(shape)}, and the parameter of {tuple(parameter.shape)}.")  # fmt: skip
        super().load_state_dict(state_dict)
        for place, (_, parameter) in zip(places, self._named()):
            if place in state_dict["state"]:
                saved = state_dict["state"][place]["momentum"]
                self.state[parameter]["momentum"] = saved.to(parameter.device, torch.float32, copy=True)


def check_options(group: Dict[str, Any]) -> None:
    for name in ("lr", "weight_decay"):
        if not (is_number(group[name]) and 0 <= group[name] < math.inf):
            raise ValueError(f"LionCub: {name} is {group[name]!r}, and must be a number, 0 or more, and finite.")
    betas = group["betas"]
    if not (isinstance(betas, (tuple, list)) and len(betas) == 2 and all(is_number(b) and 0 <= b < 1 for b in betas)):
        raise ValueError(f"LionCub: betas are {betas!r}, and must be two numbers from 0 to below 1.")


def is_number(value: Any) -> bool:
    return isinstance(value, (numbers.Real, torch.Tensor))


OPTIONS = ("lr", "the first beta", "the second beta", "weight_decay")


def packed_options(groups: List[Dict[str, Any]]) -> torch.Tensor:
    rows = [[group["lr"], *group["betas"], group["weight_decay"]] for group in groups]
    values = [[float(value) for value in row] for row in rows]
    return torch.tensor(values, dtype=torch.float64, device="cpu").view(torch.uint8).reshape(-1)


def refuse_other_options(everyones: torch.Tensor, step: int) -> None:
    """All ranks raise where a schedule, say, has given them different options: parameters would go different ways."""
    whole = everyones.clone(memory_format=torch.contiguous_format)
    values = whole.view(torch.float64).reshape(len(everyones), -1, len(OPTIONS)).tolist()
    for rank, groups in enumerate(values):
        for i, (first, theirs) in enumerate(zip(values[0], groups)):
            for name, one, other in zip(OPTIONS, first, theirs):
                if one != other:
                    raise StepRefusedError(
                        f"step {step}: {name} of group {i} is {one} on rank 0, and {other} on rank {rank}: it must be "
                        "the same on every rank, so give schedules only what all ranks have, such as their mean loss."
                    )
