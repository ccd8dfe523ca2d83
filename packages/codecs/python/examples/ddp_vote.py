"""
PyTorch DDP that sends one bit per parameter: ranks exchange the signs of their gradients and take a majority vote.

    torchrun --nproc-per-node 2 ddp_vote.py

signSGD with majority vote (Bernstein et al. 2018, https://arxiv.org/abs/1810.05291). Every rank sends n/8 bytes to
every other, where an all-reduce of floats sends about 8n; the vote is counted in the packed bytes, and gradients become
+1 and -1.
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import terse_codecs
from terse_codecs import sign

NOT_FINITE = 2  # beside what zeros became, 0 or 1


class Vote:
    """The hook's state: what an exact zero and a tie become. "alternate": elements that always tie step to and fro."""

    def __init__(self, policy="alternate"):
        self.policy, self.step = policy, 0


def vote_hook(vote, bucket):
    """For DistributedDataParallel.register_comm_hook(Vote(), vote_hook)."""
    gradient = bucket.buffer()
    # A function of the step alone, so every rank has the same answer.
    zero_or_tie = terse_codecs.sign_at(vote.policy, vote.step)
    if bucket.is_last():
        vote.step += 1

    # One more byte says what zeros become: ranks that do not agree on it would drift apart in silence. It can also say
    # that there are no signs: the others wait for this rank's, and then all end together.
    mine = torch.empty(sign.wire_bytes(gradient.numel()) + 1, dtype=torch.uint8)
    mine[-1] = zero_or_tie == "plus"
    try:
        sign.encode(gradient, zero=zero_or_tie, out=mine[:-1])
    except terse_codecs.NotFiniteError:
        mine[-1] = NOT_FINITE
    everyones = [torch.empty_like(mine) for _ in range(dist.get_world_size())]

    def elect(gathered):
        gathered.value()  # raises where a rank is gone, and nothing came
        broken = [rank for rank, theirs in enumerate(everyones) if theirs[-1] == NOT_FINITE]
        if broken:
            raise ValueError(f"vote_hook: a gradient is not finite, on rank {', '.join(map(str, broken))}.")
        if any(theirs[-1] != mine[-1] for theirs in everyones):
            raise ValueError(
                "vote_hook: ranks disagree on what zeros and ties become: give all the same policy, and start them at the same step."
            )
        elected = terse_codecs.majority([theirs[:-1] for theirs in everyones], gradient.numel(), tie=zero_or_tie)
        return sign.decode_add(gradient.zero_(), elected)

    return dist.all_gather(everyones, mine, async_op=True).get_future().then(elect)


def train(state, hook, steps=60):
    """A small classifier of points in and out of a circle; each rank has its own points. Returns model and losses."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    parallel = DistributedDataParallel(model)
    parallel.register_comm_hook(state, hook)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.01)

    draws = torch.Generator().manual_seed(dist.get_rank())
    points = torch.rand(512, 2, generator=draws) * 2 - 1
    inside = (points.square().sum(1, keepdim=True) < 0.5).float()
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(parallel(points), inside)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, losses


def main():
    dist.init_process_group("gloo")
    _, losses = train(Vote(), vote_hook)
    print(f"rank {dist.get_rank()}: loss {losses[0]:.2f} -> {losses[-1]:.2f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
