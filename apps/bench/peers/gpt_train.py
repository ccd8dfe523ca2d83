"""PyTorch, for comparison: the GPT of packages/models/src/gpt/gpt.py with multi-tensor Lion, eager and compiled.

Reads lines and answers with JSON: "eager N" and "compiled N" with the seconds of N training steps, "add N" with the
nanoseconds of one small add, a mean of N. The first "compiled" compiles the model and Lion, which takes up to a minute.
Arguments: SHAPE(json) BATCH THREADS.
"""

import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "packages/models/src/gpt"))

import torch
from gpt import Gpt
from lion_step import lion_step

shape, batch, threads = json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(threads)
torch.manual_seed(0)
model = Gpt(**shape)
parameters = list(model.parameters())
with torch.no_grad():
    for p in parameters:
        if p.dim() > 1:
            p.normal_(0, 0.02)
clip = 1.0
update = lion_step(parameters, lr=1e-3)


def lion():
    torch.nn.utils.clip_grad_norm_(parameters, clip, foreach=True)
    update()


def step(loss_of, lion):
    tokens = torch.randint(0, shape["vocabulary"], (batch, shape["context"] + 1))
    model.zero_grad(set_to_none=True)
    loss = loss_of(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
    loss.backward()
    lion()
    return loss.item()


def add_nanoseconds(calls=200_000):
    a, b = torch.ones(4), torch.ones(4)
    with torch.no_grad():
        for _ in range(calls // 10):
            a.add(b)
        begin = time.perf_counter()
        for _ in range(calls):
            a.add(b)
        return (time.perf_counter() - begin) / calls * 1e9


sides = {"eager": (model.loss, lion), "compiled": (torch.compile(model.loss), torch.compile(lion))}
print(json.dumps({"torch": torch.__version__}), flush=True)
for line in sys.stdin:
    word, count = line.split()
    if word == "add":
        print(json.dumps({"nanoseconds": add_nanoseconds(int(count))}), flush=True)
        continue
    begin = time.perf_counter()
    for _ in range(int(count)):
        loss = step(*sides[word])
    print(json.dumps({"seconds": time.perf_counter() - begin, "loss": loss}), flush=True)
