"""Runs a function on several ranks, each a process, over Gloo."""
import multiprocessing
import os
import pickle
import sys
import tempfile
import traceback

HAS_FORK_SERVER = "forkserver" in multiprocessing.get_all_start_methods()
processes = multiprocessing.get_context("forkserver" if HAS_FORK_SERVER else "spawn")
if HAS_FORK_SERVER:
    processes.set_forkserver_preload(["torch", "torch.distributed"])  # PyTorch takes seconds to import


def one_rank(folder, ranks, function, rank):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    try:
        outcome = function(rank, ranks)
    except BaseException:
        outcome = traceback.format_exc()
    with open(os.path.join(folder, f"out.{rank}"), "wb") as file:
        pickle.dump(outcome, file)
    dist.barrier()
    os._exit(0)  # in an orderly exit Gloo's threads sometimes abort


def on_ranks(ranks, function):
    """What `function(rank, ranks)` returned on each rank. `function` is one of a module's."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0")
    with tempfile.TemporaryDirectory() as folder:
        started = [processes.Process(target=one_rank, args=(folder, ranks, function, rank)) for rank in range(ranks)]
        for each in started:
            each.start()
        try:
            for each in started:
                each.join(timeout=500)
        finally:
            for each in started:
                each.kill()
                each.join()
        outcomes = []
        for rank in range(ranks):
            with open(os.path.join(folder, f"out.{rank}"), "rb") as file:
                outcomes.append(pickle.load(file))
        for outcome in outcomes:
            if isinstance(outcome, str):
                raise RuntimeError(outcome)
        return outcomes


def raised(work):
    """The error of `work` as text, or None."""
    try:
        work()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None
