"""How the processes of a peer meet: one process group on Gloo, one thread in each process."""

import os

import torch
import torch.distributed as dist


def join():
    """Joins the group, and returns this process's rank and the number of ranks.

    The environment has RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, where our own rendezvous listens; that of the
    group has the next port.
    """
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]) + 1, size, is_master=rank == 0)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    return rank, size
