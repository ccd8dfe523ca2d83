"""Models on a GPU: the same gradients arrive with the bits that they have on the CPU."""

import functools
import unittest

from ranks import on_ranks, raised

LENGTHS = {"large": 1_000_001, "small": 65}
STEPS = 3
TYPES = ("float32", "bfloat16", "float16")


def states():
    import terse_torch

    return {
        "one bit": terse_torch.CompensatedMean,
        "four bits": terse_torch.four_bits,
        "int8": terse_torch.int8,
        "top-k": lambda model: terse_torch.CompensatedMean(model, "top-k", ratio=0.01),
        "terngrad": terse_torch.TernGrad,
        "vote": terse_torch.Vote,
        "vote of 4 bits": lambda model: terse_torch.Vote(model, bits=4),
    }


def linear(dtype, device):
    """Under DDP. Its loss is linear, so that each parameter has the given gradient."""
    import torch

    class Linear(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, n in LENGTHS.items():
                self.register_parameter(name, torch.nn.Parameter(torch.zeros(n, dtype=dtype, device=device)))

        def forward(self, gradients):
            return sum((getattr(self, name) * given).sum() for name, given in gradients.items())

    return torch.nn.parallel.DistributedDataParallel(Linear())


def gradients(rank, step, dtype, device):
    """On a GPU they are there long after the call."""
    import torch

    draws = torch.Generator().manual_seed(100 * step + rank)
    given = {name: torch.randn(n, generator=draws).to(dtype).to(device) for name, n in LENGTHS.items()}
    if device == "cuda":
        zeros = torch.zeros(8192, 8192, device=device)
        for _ in range(10):
            zeros = zeros @ zeros
        given = {name: each + zeros[0, 0].to(dtype) for name, each in given.items()}
    return given


def with_hooks(rank, ranks, device):
    import terse_torch
    import torch

    found = {}
    for name, state_of in states().items():
        for dtype in TYPES if name == "one bit" else TYPES[:1]:
            model = linear(getattr(torch, dtype), device)
            model.register_comm_hook(state_of(model), terse_torch.hook)
            for step in range(STEPS):
                model.zero_grad()
                model(gradients(rank, step, getattr(torch, dtype), device)).backward()
                # A copy in the stream that the optimizer's work would be in.
                means = {each: parameter.grad.clone() for each, parameter in model.module.named_parameters()}
                found[name, dtype, step] = {each: mean.float().cpu().numpy().tobytes() for each, mean in means.items()}
    model = linear(torch.float32, device)
    model.register_comm_hook(terse_torch.CompensatedMean(model), terse_torch.hook)
    given = gradients(rank, 0, torch.float32, device)
    if rank == 1:
        given["large"][7] = float("nan")
    found["not finite"] = raised(lambda: model(given).backward())
    return found


def with_lion_cub(rank, ranks, device):
    import terse_torch
    import torch

    found = {}
    for bits in (1, 4):
        for dtype in TYPES[:2]:
            draws = torch.Generator().manual_seed(rank)
            begin = {name: torch.randn(n, generator=draws).to(getattr(torch, dtype)) for name, n in LENGTHS.items()}
            named = {name: torch.nn.Parameter(each.to(device)) for name, each in begin.items()}
            optimizer = terse_torch.LionCub(list(named.items()), lr=0.01, weight_decay=0.1, bits=bits)
            for step in range(STEPS):
                given = gradients(rank, step, getattr(torch, dtype), device)
                for name, parameter in named.items():
                    parameter.grad = given[name]
                optimizer.step()
            found[bits, dtype] = {name: each.detach().float().cpu().numpy() for name, each in named.items()}
    return found


class OnAGpu(unittest.TestCase):
    def setUp(self):
        import torch

        if not torch.cuda.is_available():
            self.skipTest("PyTorch sees no GPU here")

    def test_hooks_give_the_bits_of_the_cpu(self):
        of_cpu, of_gpu = (on_ranks(2, functools.partial(with_hooks, device=device)) for device in ("cpu", "cuda"))
        for rank, found in enumerate(of_gpu):
            for case, expected in of_cpu[rank].items():
                self.assertEqual(found[case], expected, case)
            refusal = "StepRefusedError: rank 1 refuses step 0: the gradient of large is not finite"
            self.assertIn(refusal, found["not finite"])

    def test_lion_cub_ends_with_the_same_bits_on_all_ranks_near_the_cpu(self):
        import numpy as np

        of_cpu, of_gpu = (on_ranks(2, functools.partial(with_lion_cub, device=device)) for device in ("cpu", "cuda"))
        for case, expected in of_cpu[0].items():
            for name in LENGTHS:
                self.assertEqual(of_gpu[0][case][name].tobytes(), of_gpu[1][case][name].tobytes(), (case, name))
                away = np.abs(of_gpu[0][case][name] - expected[name]) > (0.02 if case[1] == "bfloat16" else 1e-5)
                self.assertLess(away.mean(), 1e-4, (case, name))  # a sign that rounding changes moves 2 lr


if __name__ == "__main__":
    unittest.main()
