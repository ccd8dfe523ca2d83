"""Runs a function on several ranks, each a process, over Gloo."""

import contextlib
import multiprocessing
import os
import pickle
import sys
import tempfile
import time
import traceback
import unittest

SECONDS = 500
# PyTorch takes seconds to import, and what DDP and optimizers then ask for many more: one process does it, and every
# rank is a copy of that process.
HAS_FORK_SERVER = "forkserver" in multiprocessing.get_all_start_methods()
processes = multiprocessing.get_context("forkserver" if HAS_FORK_SERVER else "spawn")
if HAS_FORK_SERVER:
    processes.set_forkserver_preload(["torch", "torch.distributed", "torch._dynamo"])


def one_rank(folder, ranks, function, arguments, rank):
    import torch
    import torch.distributed as dist

    def end(kind, outcome, status):
        with open(os.path.join(folder, f"out.{rank}"), "wb") as file:
            pickle.dump((kind, outcome), file)
        if status == 0:
            with contextlib.suppress(RuntimeError):  # another rank has failed
                dist.barrier()
        os._exit(status)  # in an orderly exit Gloo's threads sometimes abort

    if not (dist.is_available() and dist.is_gloo_available()):
        end("skipped", "this PyTorch has no Gloo", 1)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    try:
        outcome = function(rank, ranks, *arguments)
    except BaseException:
        end("failed", traceback.format_exc(), 1)
    end("returned", outcome, 0)


def on_ranks(ranks, function, *arguments):
    """What `function(rank, ranks, *arguments)` returned on each rank; RuntimeError says how those ended that failed."""
    # Gloo takes the interface that the host's name resolves to, and not every machine's does.
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0")
    with tempfile.TemporaryDirectory() as folder:
        given = (folder, ranks, function, arguments)
        started = [processes.Process(target=one_rank, args=(*given, rank)) for rank in range(ranks)]
        for each in started:
            each.start()
        until = time.monotonic() + SECONDS
        try:
            for each in started:
                each.join(timeout=max(0, until - time.monotonic()))
        finally:
            for each in started:
                each.kill()
                each.join()
        returned, failures = [], []
        for rank, each in enumerate(started):
            kind, outcome = "failed", f"rank {rank} ended with {each.exitcode}"
            with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, f"out.{rank}"), "rb") as file:
                kind, outcome = pickle.load(file)
            if kind == "skipped":
                raise unittest.SkipTest(outcome)
            (failures if kind == "failed" else returned).append(outcome)
        if failures:
            raise RuntimeError("\n".join(failures))
        return returned


def raised(work):
    """The error of `work` as text, or None."""
    try:
        work()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None
