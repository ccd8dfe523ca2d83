"""
The hook, and the threads that carry buckets: they begin while backward still computes the gradients of the next one.

A bucket has two halves: up to the owners of chunks, and back from them. While one comes back, the next one goes up.
Each half has an order and a process group of its own, so the collectives have the same order on every rank, whatever
DDP does on its group meanwhile. (DDP reads the annotations of `hook`, so they are no strings here.)
"""

import itertools
import queue
import threading
from collections.abc import Mapping
from typing import Any, Callable, Dict, List, Optional

import torch
import torch.distributed as dist
from terse_codecs._codec import is_whole
from torch.nn.parallel import DistributedDataParallel

from ._agreement import Named, agree, layout_of, refuse_kinds
from ._messages import Messages, StepRefusedError, own_group


def hook(state: Any, bucket: dist.GradBucket, *sharded: Any) -> torch.futures.Future[torch.Tensor]:
    """For DistributedDataParallel.register_comm_hook(state, hook)."""
    if sharded:
        raise NotImplementedError(
            "terse_torch.hook: FullyShardedDataParallel calls it with shards of a gradient, and it needs whole ones: "
            "wrap the model in DistributedDataParallel."
        )
    if not isinstance(state, HookState):
        raise TypeError(
            f"terse_torch.hook: its state is a {type(state).__name__}, and must be one of this package: "
            "model.register_comm_hook(CompensatedMean(model), hook)."
        )
    buffer, parameters, last = bucket.buffer(), bucket.parameters(), bucket.is_last()
    with state._messages.ending_all():
        if buffer.is_sparse:
            raise NotImplementedError("terse_torch: a gradient is sparse: build its embedding with sparse=False.")
        # A copy from a GPU waits for what computes the gradient; here its stream is the current one.
        gradient = buffer.to(device="cpu", dtype=torch.float32)
    done: torch.futures.Future[Any] = torch.futures.Future()

    def carry() -> torch.Tensor:
        with state._messages.ending_all(), torch.no_grad():
            step, names = state.step, state._names_of(parameters)
            mean = state._mean(gradient, names, last)
            if mean is not buffer:
                buffer.copy_(mean)
            if buffer.is_cuda:  # the optimizer reads it from another stream than this thread's
                torch.cuda.current_stream(buffer.device).synchronize()
            refuse_overflow(step, names, buffer, mean.split([state._lengths[name] for name in names]))
            return buffer

    def outcome(future: torch.futures.Future[Any]) -> torch.Tensor:
        result = future.value()
        if isinstance(result, BaseException):
            raise result
        return result

    state._carrier.put((done, carry))
    return done.then(outcome)


class HookState:
    """What all hooks have: the parameters by name, a process group of their own, and the number of the step."""

    def __init__(
        self,
        model: DistributedDataParallel,
        process_group: Optional[dist.ProcessGroup],
        setting: Callable[[Named], Dict[str, Any]],
    ) -> None:
        """`setting`: what must be the same on every rank; it refuses parameters that the hook cannot carry."""
        self._where = where = type(self).__name__
        if not isinstance(model, DistributedDataParallel):
            raise TypeError(
                f"{where}: model is a {type(model).__name__}, and must be a DistributedDataParallel; "
                "FullyShardedDataParallel and fully_shard have no such hook."
            )
        named = [(name, parameter) for name, parameter in model.module.named_parameters() if parameter.requires_grad]

        def whole_setting() -> Dict[str, Any]:
            refuse_kinds(where, named)
            refuse_sparse(where, model.module)
            own_group = process_group and dist.get_process_group_ranks(process_group)
            return {"the hook": where, "process_group": own_group, **setting(named), **layout_of(named)}

        agree(where, model.process_group, whole_setting)
        self.step = 0
        self._names = {id(parameter): name for name, parameter in named}
        self._lengths = {name: parameter.numel() for name, parameter in named}
        if process_group is None:
            process_group = model.process_group
        on_cpu = all(parameter.device.type == "cpu" for _, parameter in named)
        up = own_group(process_group, on_cpu)
        # Two collectives at once: with MPI one of them may keep the other one waiting for ever.
        down = own_group(process_group, on_cpu) if dist.get_backend(up) == "gloo" else None
        self._messages = Messages(up, list(self._lengths), down)
        self._carrier = Carrier()
        if down:
            self._messages.second_half = self._carrier.turns.second_half  # type: ignore[method-assign]

    def close(self) -> None:
        """
        Closes the process groups of its own, on all ranks, behind their last step: for programs that make many. No step
        follows.
        """
        self._messages.close()

    def __deepcopy__(self, _: Any) -> "CopiedState":
        """A model is copied with its hook, for averaged weights, say. DDP calls no hook of a copy."""
        return CopiedState()

    def __reduce__(self) -> Any:
        raise TypeError(
            f"{self._where}: it has connections, which no file holds: save its state_dict(), and that of model.module."
        )

    def _mean(self, gradient: torch.Tensor, names: List[str], last: bool) -> torch.Tensor:
        """
        In place of the mean over ranks of the gradients of one bucket, on the CPU in float32; it may be `gradient`,
        written anew.
        """
        raise NotImplementedError

    def _names_of(self, parameters: List[torch.Tensor]) -> List[str]:
        names = [self._names.get(id(parameter)) for parameter in parameters]
        if None in names:
            raise ValueError(f"{self._where}: DDP has other parameters than before: make the hook's state anew.")
        return names  # type: ignore[return-value]

    def state_dict(self) -> Dict[str, Any]:
        """A copy of what this rank has: save it beside the model, a file for each rank."""
        return {"hook": self._where, "step": self.step, "rank": self._messages.rank, "ranks": self._messages.ranks}


class CopiedState:
    """What a copy of a model has in place of the state of its hook."""


def refuse_overflow(step: int, names: List[str], buffer: torch.Tensor, means: Any) -> None:
    """All ranks have the same mean, and so all raise."""
    if buffer.dtype in (torch.float32, torch.float64):
        return
    most = torch.finfo(buffer.dtype).max
    for name, mean in zip(names, means):
        if mean.numel() and bool((mean.to(buffer.dtype).abs() > most).any()):
            raise StepRefusedError(
                f"step {step}: the mean of the gradients of {name} is beyond the range of {buffer.dtype}: "
                "take bf16, or a smaller loss scale."
            )


def refuse_state(where: str, state: Any, *parts: str) -> None:
    """ValueError where this is no state of such a hook."""
    if not isinstance(state, Mapping):
        raise ValueError(f"{where}: the state is a {type(state).__name__}, and must be what state_dict() returned.")
    if state.get("hook") != where:
        raise ValueError(f"{where}: the state is that of {state.get('hook', 'something else')}.")
    for part in ("step", *parts):
        if part not in state:
            raise ValueError(f"{where}: the state has no {part!r}: give what state_dict() returned.")


def refuse_seed(where: str, seed: Any) -> None:
    if not is_whole(seed, 2**64):
        raise ValueError(f"{where}: seed is {seed!r}, and must be a whole number from 0 to {2**64 - 1}.")


class Places:
    """The place of each parameter in one long vector, for random numbers that do not depend on buckets."""

    def __init__(self, lengths: Dict[str, int]) -> None:
        self._begins: Dict[str, int] = {}
        begin = 0
        for name, n in lengths.items():
            self._begins[name] = begin
            begin += -(-n // 64) * 64

    def index(self, stream: int, name: str, begin: int) -> int:
        """Each rank and each owner has a stream of its own."""
        return stream * 2**40 + self._begins[name] + begin


def refuse_sparse(where: str, module: torch.nn.Module) -> None:
    for name, each in module.named_modules():
        if isinstance(each, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and each.sparse:
            what = name or "the model"
            raise NotImplementedError(f"{where}: {what} has sparse gradients: build it with sparse=False.")


class Turns:
    """The order of buckets in each half."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._next = [0, 0]
        self._own = threading.local()

    def begin(self, bucket: int) -> None:
        """Waits until the bucket, which this thread carries, may go up."""
        self._own.bucket = bucket
        self._wait(0)

    def second_half(self) -> None:
        """Lets the next bucket go up, and waits until this one may come back."""
        self._pass(0)
        self._wait(1)

    def end(self) -> None:
        """Also of a bucket that has failed."""
        self._pass(0)
        self._wait(1)
        self._pass(1)

    def _wait(self, half: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._next[half] >= self._own.bucket)

    def _pass(self, half: int) -> None:
        with self._changed:
            self._next[half] = max(self._next[half], self._own.bucket + 1)
            self._changed.notify_all()


class Carrier:
    """Runs the work of buckets, of two at once where the first of them has come to its second half."""

    def __init__(self) -> None:
        self.turns = Turns()
        self._tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._buckets = itertools.count()
        for _ in range(2):
            threading.Thread(target=run, args=(self._tasks, self.turns), daemon=True, name="terse_torch").start()

    def put(self, task: Any) -> None:
        self._tasks.put((next(self._buckets), *task))

    def __del__(self) -> None:
        for _ in range(2):
            self._tasks.put(None)


def run(tasks: Any, turns: Turns) -> None:
    while (task := tasks.get()) is not None:
        bucket, done, work = task
        turns.begin(bucket)
        try:
            result = work()
        except BaseException as error:  # the hook's future raises it, where DDP waits
            result = error
        turns.end()
        done.set_result(result)
        del task, done, work, result
