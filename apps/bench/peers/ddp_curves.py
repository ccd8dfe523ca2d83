"""PyTorch's DistributedDataParallel on Gloo with torch.optim, for comparison: same model, data, weights and rates.

Argument: JSON with shape, batchSize, folder (model.safetensors, and the files training and held-out with one byte a
token), clip, hook and optimizers: each with its name (adamw or muon), the names of its parameters, its rates of all
steps, and its options under our names. Hooks are none, fp16, and powersgd with its rank: "powersgd 2". With "averages
10" the ranks train by themselves, and PeriodicModelAverager averages their parameters after every tenth step. Reads
"train N" and "evaluate", and answers with the times of the steps and with the mean loss of the held-out rows, as JSON;
null where the loss is not finite. gloo_group.py says what the environment has.
"""

import json
import math
import os
import sys
import time

import gloo_group
import gpt_ddp
import numpy
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager

task = json.loads(sys.argv[1])
gloo_group.join()


def rows(name):
    bytes = numpy.fromfile(f"{task['folder']}/{name}", dtype=numpy.uint8)
    return torch.from_numpy(bytes.reshape(-1, task["shape"]["context"] + 1).astype(numpy.int64))


training, held_out = rows("training").split(task["batchSize"]), rows("held-out")

model = gpt_ddp.gpt_of(task)
hook, _, number = task["hook"].partition(" ")
averager = None
if hook == "averages":
    loss_of = model.loss
    period = int(number)
    averager = PeriodicModelAverager(period, warmup_steps=period - 1)  # the first after as many steps as later
else:
    # PowerSGD works on whole buckets: one, as its authors have it.
    loss_of = gpt_ddp.ddp_of(model, bucket_megabytes=0 if hook == "powersgd" else None)
    if hook == "powersgd":
        gpt_ddp.compress_by_powersgd(loss_of, int(number))
    if hook == "fp16":
        loss_of.register_comm_hook(None, default_hooks.fp16_compress_hook)
named = dict(model.named_parameters())


def optimizer_of(given):
    parameters = [named.pop(name) for name in given["parameters"]]
    decay = given["weightDecay"]
    if given["name"] == "adamw":
        return torch.optim.AdamW(
            parameters, betas=(given["beta1"], given["beta2"]), eps=given["eps"], weight_decay=decay
        )
    return torch.optim.Muon(
        parameters,
        momentum=given["momentum"],
        nesterov=given["nesterov"],
        ns_coefficients=tuple(given["nsCoefficients"]),
        ns_steps=given.get("nsSteps", 5),
        eps=given["eps"],
        weight_decay=decay,
        adjust_lr_fn=given["adjustLrFn"],
    )


optimizers = [(optimizer_of(given), given["rates"]) for given in task["optimizers"] if given["parameters"]]
assert not named, f"no optimizer has {list(named)}"
taken = 0


def step():
    global taken
    tokens = training[taken]
    for optimizer, rates in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = rates[taken]
    taken += 1
    begin = time.perf_counter()
    for optimizer, _ in optimizers:
        optimizer.zero_grad(set_to_none=False)  # gradients are views of DDP's buckets
    loss_of(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()).backward()
    if task["clip"] > 0:
        torch.nn.utils.clip_grad_norm_(model.parameters(), task["clip"])
    for optimizer, _ in optimizers:
        optimizer.step()
    if averager:
        averager.average_parameters(model.parameters())
    return 1000 * (time.perf_counter() - begin)


@torch.no_grad()
def evaluate():
    losses = [
        model.loss(part[:, :-1].contiguous(), part[:, 1:].contiguous()).item() * len(part)
        for part in held_out.split(16)
    ]
    loss = sum(losses) / len(held_out)
    return loss if math.isfinite(loss) else None  # JSON has no NaN


dist.barrier()
print(json.dumps({"torch": torch.__version__}), flush=True)
for line in sys.stdin:
    word, *count = line.split()
    answer = {"milliseconds": [step() for _ in range(int(*count))]} if word == "train" else {"loss": evaluate()}
    print(json.dumps(answer), flush=True)
os._exit(0)  # in an orderly exit Gloo's threads sometimes abort
