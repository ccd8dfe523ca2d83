"""
The hook, and the thread that carries buckets: it begins while backward still computes the gradients of the next one.

One thread, and a process group of its own, so the collectives have the same order on every rank, whatever DDP does on
its group meanwhile.
"""
import queue
import threading
from typing import Any

import torch
import torch.distributed as dist


class StepRefusedError(RuntimeError):
    """A gradient is not finite, or ranks do not fit together; every rank raises it."""


def hook(state: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """For DistributedDataParallel.register_comm_hook(state, hook)."""
    buffer, parameters, last = bucket.buffer(), bucket.parameters(), bucket.is_last()
    if buffer.is_sparse:
        raise NotImplementedError("terse_torch: a gradient is sparse: build its embedding with sparse=False.")
    done: torch.futures.Future[Any] = torch.futures.Future()
    state._carrier.put((done, lambda: state._carry(buffer, parameters, last)))

    def outcome(future: torch.futures.Future[Any]) -> torch.Tensor:
        result = future.value()
        if isinstance(result, BaseException):
            raise result
        return result

    return done.then(outcome)


class Carrier:
    """Runs one bucket after the other."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=run, args=(self._tasks,), daemon=True, name="terse_torch").start()

    def put(self, task: Any) -> None:
        self._tasks.put(task)

    def __del__(self) -> None:
        self._tasks.put(None)


def run(tasks: Any) -> None:
    while (task := tasks.get()) is not None:
        done, work = task
        try:
            done.set_result(work())
        except BaseException as error:  # the hook's future raises it, where DDP waits
            done.set_result(error)
        del task, done, work
