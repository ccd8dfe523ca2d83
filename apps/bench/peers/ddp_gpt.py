"""PyTorch's DistributedDataParallel on Gloo, for comparison: the same model, weights, batches, threads and optimizer.

Argument: JSON with shape, batchSize, lion, folder (model.safetensors and tokens, one byte each), and peers, each with a name, a
hook (none, fp16, powersgd), bucketMegabytes (0: one bucket; absent: DDP's default) and alone (no exchange).
Reads lines "NAME<tab>N", takes N training steps, and answers with their times as JSON. The environment has RANK, WORLD_SIZE,
MASTER_ADDR and MASTER_PORT.
"""

import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "packages/models/src/gpt"))

import numpy
import safetensors.torch
import torch
import torch.distributed as dist
from gpt import Gpt
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

task = json.loads(sys.argv[1])
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.set_num_threads(1)
store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]) + 1, size, is_master=rank == 0)
dist.init_process_group("gloo", store=store, rank=rank, world_size=size)

rows = numpy.fromfile(f"{task['folder']}/tokens", dtype=numpy.uint8)
rows = torch.from_numpy(rows.reshape(-1, task["batchSize"], task["shape"]["context"] + 1).astype(numpy.int64))


class Side:
    def __init__(self, peer):
        self.model = Gpt(**task["shape"])
        self.model.load_state_dict(safetensors.torch.load_file(f"{task['folder']}/model.safetensors"))
        self.parameters = list(self.model.parameters())
        self.momenta = [torch.zeros_like(p) for p in self.parameters]
        self.scratch = [torch.empty_like(p) for p in self.parameters]  # reused: new ones would cost page faults in every step
        self.taken = 0
        self.ready = 0.0  # time of the last gradient: autograd calls this hook before DDP's, which sends the gradient
        for p in self.parameters:
            p.register_post_accumulate_grad_hook(self.arrived)
        self.forward = self.model
        if peer.get("alone"):
            return
        group = dist.new_group(backend="gloo")
        megabytes = peer.get("bucketMegabytes")
        # A module whose forward is the loss, so that DDP wraps the whole computation.
        whole = torch.nn.Module()
        whole.model = self.model
        whole.forward = self.model.loss
        caps = {} if megabytes is None else {"bucket_cap_mb": megabytes or 10_000}
        ddp = DistributedDataParallel(whole, process_group=group, gradient_as_bucket_view=True, **caps)
        if peer["hook"] == "fp16":
            ddp.register_comm_hook(group, default_hooks.fp16_compress_hook)
        if peer["hook"] == "powersgd":
            state = powerSGD_hook.PowerSGDState(group, matrix_approximation_rank=2, start_powerSGD_iter=2)
            ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        self.ddp = ddp

    def arrived(self, _):
        self.ready = time.perf_counter()

    def loss(self, tokens, following):
        return (self.ddp if hasattr(self, "ddp") else self.model.loss)(tokens, following)

    @torch.no_grad()
    def lion(self):
        lr, beta1, beta2, decay = (task["lion"][name] for name in ("lr", "beta1", "beta2", "weightDecay"))
        gradients = [p.grad for p in self.parameters]
        torch._foreach_copy_(self.scratch, self.momenta)
        torch._foreach_lerp_(self.scratch, gradients, 1 - beta1)
        torch._foreach_sign_(self.scratch)
        torch._foreach_lerp_(self.momenta, gradients, 1 - beta2)
        torch._foreach_mul_(self.parameters, 1 - lr * decay)
        torch._foreach_add_(self.parameters, self.scratch, alpha=-lr)

    def step(self):
        tokens = rows[self.taken]
        self.taken += 1
        begin = time.perf_counter()
        # DDP's gradients are views of its buckets and must stay; without DDP new ones are as fast.
        self.model.zero_grad(set_to_none=not hasattr(self, "ddp"))
        loss = self.loss(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
        value = loss.item()
        loss.backward()
        exposed = time.perf_counter() - self.ready
        self.lion()
        return {"milliseconds": 1000 * (time.perf_counter() - begin), "exposedMilliseconds": 1000 * exposed, "loss": value}


sides = {peer["name"]: Side(peer) for peer in task["peers"]}
dist.barrier()
print(json.dumps({"torch": torch.__version__}), flush=True)
for line in sys.stdin:
    name, count = line.rstrip("\n").split("\t")
    print(json.dumps({"steps": [sides[name].step() for _ in range(int(count))]}), flush=True)
os._exit(0)  # in an orderly exit Gloo's threads sometimes abort
