"""PyTorch's operators on a GPU for what our kernels do, over N Mi floats.

Argument: N. Reads names of `work` and answers with JSON: the milliseconds of the median of 21 calls by the device's
clock, after 3 that warm up.
"""

import json
import math
import statistics
import sys

import torch
from lion_step import lion_step

n = int(sys.argv[1]) << 20
lr = 1e-4
device = torch.device("cuda")
floats = lambda count=n: torch.randn(count, device=device).mul_(0.01)


def torch_optim(create):
    parameter = floats().requires_grad_()
    parameter.grad = floats()
    return create([parameter]).step


def lion():
    parameter = floats()
    parameter.grad = floats()
    return lion_step([parameter], lr)


def low_rank():
    side = math.isqrt(n)
    x, p, q = floats(side * side).view(side, side), floats(side * 64).view(side, 64), floats(side * 64).view(side, 64)
    return lambda: x.addmm_(p, q.T, alpha=-lr)


def converted(dtype):
    x, wire = floats(), torch.empty(n, dtype=dtype, device=device)
    return lambda: wire.copy_(x)


def added(dtype):
    x, wire = floats(), floats().to(dtype)
    return lambda: x.add_(wire, alpha=1e-3)


def top_k(of):
    x = floats()

    def choose():
        index = torch.topk(x.abs(), n // of, sorted=False).indices
        return index, x[index]

    return choose


def sum_of_squares():
    x = floats()
    return lambda: torch.linalg.vector_norm(x)


work = {
    "adamw": lambda: torch_optim(lambda theta: torch.optim.AdamW(theta, lr=lr, fused=True)),
    "sgd": lambda: torch_optim(lambda theta: torch.optim.SGD(theta, lr=lr, momentum=0.9, fused=True)),
    "lion": lion,
    "low-rank": low_rank,
    "sum-of-squares": sum_of_squares,
    "bf16": lambda: converted(torch.bfloat16),
    "bf16-add": lambda: added(torch.bfloat16),
    "f16": lambda: converted(torch.float16),
    "f16-add": lambda: added(torch.float16),
    "top-k-1000": lambda: top_k(1000),
    "top-k-100": lambda: top_k(100),
}


def milliseconds(call):
    times = []
    for i in range(24):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times[3:])


print(json.dumps({"torch": torch.__version__}), flush=True)
for line in sys.stdin:
    with torch.no_grad():
        print(json.dumps({"milliseconds": milliseconds(work[line.strip()]())}), flush=True)
