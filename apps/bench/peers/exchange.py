"""Exchanges over PyTorch's Gloo backend, for comparison: its all-reduce, and DeepSpeed's compressed one in plain torch.

Reads lines "WHAT N TIMES" with WHAT all-reduce or compressed, and answers with the milliseconds of TIMES exchanges of N
floats. gloo_group.py says what the environment has.

The compressed all-reduce (Tang et al. 2021, 1-bit Adam, Algorithm 1), with the steps of DeepSpeed: add the worker's
error; encode as one scale ‖x‖₂/√n and one sign a float, and keep the new error; send packed signs by all-to-all and
scales by all-gather; average the decoded chunks and add the server's error; encode the mean in the same way; send it to
all ranks by all-gather.
"""

import json
import os
import sys
import time

import gloo_group
import numpy
import torch
import torch.distributed as dist

rank, size = gloo_group.join()


def pack(plus):
    return torch.from_numpy(numpy.packbits(plus.numpy()))


def unpack(packed):
    """Each bit as ±1."""
    return torch.from_numpy(numpy.unpackbits(packed.numpy())).to(torch.float32).mul_(2).sub_(1)


class Compressed:
    def __init__(self, n):
        self.n = n
        self.padded = -(-n // (8 * size)) * 8 * size
        self.x = torch.zeros(self.padded)
        self.worker_error = torch.zeros(self.padded)
        self.server_error = torch.zeros(self.padded // size)

    def __call__(self, values):
        x = self.x
        x[: self.n] = values
        x.add_(self.worker_error)
        scale = x.norm() / numpy.sqrt(x.numel())
        plus = x >= 0
        self.worker_error.set_(x - scale * plus.to(torch.float32).mul_(2).sub_(1))

        outgoing = pack(plus)
        incoming = torch.empty_like(outgoing)
        dist.all_to_all_single(incoming, outgoing)
        scales = [torch.empty(1) for _ in range(size)]
        dist.all_gather(scales, scale.reshape(1))

        signs = unpack(incoming).view(size, -1)
        mean = (signs * (torch.cat(scales) / size).unsqueeze(1)).sum(0)
        mean.add_(self.server_error)
        scale = mean.norm() / numpy.sqrt(mean.numel())
        plus = mean >= 0
        self.server_error.set_(mean - scale * plus.to(torch.float32).mul_(2).sub_(1))

        packed = [torch.empty(self.padded // size // 8, dtype=torch.uint8) for _ in range(size)]
        dist.all_gather(packed, pack(plus))
        dist.all_gather(scales, scale.reshape(1))
        values.copy_((unpack(torch.cat(packed)).view(size, -1) * torch.cat(scales).unsqueeze(1)).flatten()[: self.n])


print(json.dumps({"torch": torch.__version__}), flush=True)
for line in sys.stdin:
    what, n, times = line.split()
    n = int(n)
    x = torch.sin(torch.arange(n, dtype=torch.float32) + rank)
    exchange = Compressed(n) if what == "compressed" else dist.all_reduce
    milliseconds = []
    for _ in range(int(times)):
        dist.barrier()
        begin = time.perf_counter()
        exchange(x)
        milliseconds.append(1000 * (time.perf_counter() - begin))
    print(json.dumps({"milliseconds": milliseconds}), flush=True)
os._exit(0)
