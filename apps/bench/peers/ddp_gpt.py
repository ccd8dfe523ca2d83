"""PyTorch's DistributedDataParallel on Gloo, for comparison: the same model, weights, batches, threads and optimizer.

Argument: JSON with shape, batchSize, lion, folder (model.safetensors and tokens, one byte each), and peers, each with a
name, a hook (none, fp16, powersgd, terse_torch), rank of PowerSGD, bucketMegabytes (0: one bucket; absent: DDP's default) and alone
(no exchange). Reads lines "NAME<tab>N", takes N training steps, and answers with their times as JSON. gloo_group.py
says what the environment has.
"""

import json
import os
import sys
import time

import gloo_group
import gpt_ddp
import numpy
import torch
import torch.distributed as dist
from lion_step import lion_step
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

task = json.loads(sys.argv[1])
gloo_group.join()

rows = numpy.fromfile(f"{task['folder']}/tokens", dtype=numpy.uint8)
rows = torch.from_numpy(rows.reshape(-1, task["batchSize"], task["shape"]["context"] + 1).astype(numpy.int64))


class Side:
    def __init__(self, peer):
        self.model = gpt_ddp.gpt_of(task)
        self.parameters = list(self.model.parameters())
        lion = task["lion"]
        self.lion = lion_step(self.parameters, lion["lr"], lion["beta1"], lion["beta2"], lion["weightDecay"])
        self.taken = 0
        self.ready = 0.0  # time of the last gradient: autograd calls this hook before DDP's, which sends the gradient
        for p in self.parameters:
            p.register_post_accumulate_grad_hook(self.arrived)
        self.forward = self.model
        if peer.get("alone"):
            return
        group = dist.new_group(backend="gloo")
        self.ddp = gpt_ddp.ddp_of(self.model, group, peer.get("bucketMegabytes"))
        if peer["hook"] == "fp16":
            self.ddp.register_comm_hook(group, default_hooks.fp16_compress_hook)
        if peer["hook"] == "terse_torch":
            gpt_ddp.compress_by_terse_torch(self.ddp)
        if peer["hook"] == "powersgd":
            gpt_ddp.compress_by_powersgd(self.ddp, peer["rank"], group)

    def arrived(self, _):
        self.ready = time.perf_counter()

    def loss(self, tokens, following):
        return (self.ddp if hasattr(self, "ddp") else self.model.loss)(tokens, following)

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
        return {
            "milliseconds": 1000 * (time.perf_counter() - begin),
            "exposedMilliseconds": 1000 * exposed,
            "loss": value,
        }


sides = {peer["name"]: Side(peer) for peer in task["peers"]}
dist.barrier()
print(json.dumps({"torch": torch.__version__}), flush=True)
for line in sys.stdin:
    name, count = line.rstrip("\n").split("\t")
    print(json.dumps({"steps": [sides[name].step() for _ in range(int(count))]}), flush=True)
os._exit(0)  # in an orderly exit Gloo's threads sometimes abort
