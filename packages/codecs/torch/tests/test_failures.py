"""What fails on one rank ends all ranks with its sentence, and states of others are refused, on 2 and 3 ranks."""

import unittest

from given_gradients import model_of, registered, stepped
from ranks import on_ranks, raised


def of_lion_cub(rank, ranks):
    import terse_torch
    import torch

    def optimizer_of():
        parameter = torch.nn.Parameter(torch.zeros(4, 2))
        return parameter, terse_torch.LionCub([parameter], lr=0.5)

    found = {}
    parameter, optimizer = optimizer_of()
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    for step in range(2):
        parameter.grad = torch.full((4, 2), float("inf") if rank == 1 and step == 0 else 8.0)
        scaler.scale(torch.ones(()))  # a scaler without a loss has no scale yet
        scaler.step(optimizer)
        scaler.update()
        found[f"scaled {step}"] = parameter[0, 0].item()
    found["momentum"] = optimizer.state[parameter]["momentum"][0, 0].item()

    other = torch.optim.SGD([parameter], momentum=0.9)
    found["SGD"] = raised(lambda: optimizer.load_state_dict(other.state_dict()))
    adam = torch.optim.AdamW([parameter])
    adam.step()
    found["AdamW"] = raised(lambda: optimizer.load_state_dict(adam.state_dict()))

    parameter, optimizer = optimizer_of()
    parameter.grad = torch.ones(4, 2).to_sparse() if rank == 1 else torch.ones(4, 2)
    found["sparse"] = raised(optimizer.step)
    parameter.grad = torch.ones(4, 2)
    found["again"] = raised(optimizer.step)
    return found


def of_hooks(rank, ranks):
    import terse_codecs
    import terse_torch
    import torch

    found = {
        "no state": raised(lambda: terse_torch.hook(None, None)),
        "FSDP": raised(lambda: terse_torch.hook(None, torch.zeros(4), torch.zeros(2))),  # as it calls hooks
    }
    Mean, Vote = terse_torch.CompensatedMean, terse_torch.Vote
    mean, vote = Mean(model_of()), Vote(model_of())
    states = {"other": vote.state_dict(), "none": None, "empty": {}, "cut": {"hook": "CompensatedMean", "step": 1}}
    for name, state in states.items():
        found[f"mean {name}"] = raised(lambda: mean.load_state_dict(state))
    for name, state in {"other": mean.state_dict(), "list": [vote.state_dict()], "cut": {"hook": "Vote"}}.items():
        found[f"vote {name}"] = raised(lambda: vote.load_state_dict(state))

    model, _ = registered(lambda model: Mean(model, "f16"), torch.float16)
    named = dict(model.module.named_parameters())
    given = {name: torch.full_like(each, 60000 if name == "b" else 1) for name, each in named.items()}
    model(given).backward()  # what the wire holds
    model, state = registered(lambda model: Mean(model, "int8"), torch.float16)
    state._errors["b"].fill_(60000)
    found["beyond"] = raised(lambda: model(given).backward())

    model, state = registered(Mean)

    def broken(*_):
        raise terse_codecs.BadWireError("this wire is damaged.", 10)

    if rank == 1:
        state._mean = broken
    found["broken"] = raised(lambda: stepped(model, rank, 0))
    return found


class Failures(unittest.TestCase):
    def test_of_lion_cub_reach_every_rank(self):
        for ranks in (2, 3):
            for rank, found in enumerate(on_ranks(ranks, of_lion_cub)):
                self.assertEqual(found["scaled 0"], 0)
                self.assertEqual(found["scaled 1"], -0.5)
                scale = 2.0 if rank == 1 else 4.0  # the scaler of the rank that skipped has halved its own
                self.assertAlmostEqual(found["momentum"], 0.01 * 8 / scale, places=6)
                for other in ("SGD", "AdamW"):
                    self.assertIn("ValueError: LionCub: the state is that of another optimizer", found[other])
                kind = "NotImplementedError" if rank == 1 else "StepRefusedError"
                self.assertIn(kind, found["sparse"])
                self.assertIn("LionCub: the gradient of 0 of group 0 is sparse", found["sparse"])
                self.assertIn("StepRefusedError: rank 1 has failed: NotImplementedError", found["again"])

    def test_of_hooks_reach_every_rank_and_states_of_others_are_refused(self):
        for ranks in (2, 3):
            for rank, found in enumerate(on_ranks(ranks, of_hooks)):
                expected = {
                    "no state": "terse_torch.hook: its state is a NoneType, and must be one of this package",
                    "FSDP": "terse_torch.hook: FullyShardedDataParallel calls it with shards of a gradient",
                    "mean other": "CompensatedMean: the state is that of Vote",
                    "mean none": "CompensatedMean: the state is a NoneType",
                    "mean empty": "CompensatedMean: the state is that of something else",
                    "mean cut": "CompensatedMean: the state has no 'rank'",
                    "vote other": "Vote: the state is that of CompensatedMean",
                    "vote list": "Vote: the state is a list",
                    "vote cut": "Vote: the state has no 'step'",
                    "beyond": "the mean of the gradients of b is beyond the range of torch.float16",
                    "broken": "this wire is damaged",
                }
                for case, sentence in expected.items():
                    self.assertIn(sentence, found[case] or "", case)
                if rank != 1:
                    self.assertIn("StepRefusedError: rank 1 has failed: BadWireError", found["broken"])


if __name__ == "__main__":
    unittest.main()
