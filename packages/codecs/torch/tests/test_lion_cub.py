"""LionCub beside the paper's lines in NumPy, on 2 and 3 ranks."""

import unittest
from unittest import mock

import numpy as np
from ranks import on_ranks, raised

SHAPES = {"matrix": (12, 5), "vector": (9,), "half": (3,), "unused": (4,)}
STEPS, RESUMED = 5, 3
OPTIONS = {"lr": 0.01, "betas": (0.9, 0.99), "weight_decay": 0.1}


def draws(*key):
    return np.random.default_rng(key)


def gradient(rank, step, name):
    """None where this rank does not use the parameter: nobody `unused`, and rank 1 the vector in odd steps."""
    if name == "unused" or (name == "vector" and rank == 1 and step % 2):
        return None
    return draws(rank, step, len(name)).standard_normal(SHAPES[name]).astype(np.float32)


def begin(rank, name):
    return draws(rank, len(name)).standard_normal(SHAPES[name]).astype(np.float32)


def optimizer_of(rank, bits):
    import terse_torch
    import torch

    named = {name: torch.nn.Parameter(torch.from_numpy(begin(rank, name))) for name in SHAPES}
    return named, terse_torch.LionCub(list(named.items()), bits=bits, **OPTIONS)


def stepped(named, optimizer, rank, step):
    import torch

    for name, parameter in named.items():
        given = gradient(rank, step, name)
        parameter.grad = None if given is None else torch.from_numpy(given)
    optimizer.step()


def without_kernels():
    """PyTorch's operators alone."""
    from terse_torch import _lion

    return mock.patch.object(_lion, "library", lambda *_: None)


def by_operators(rank, ranks):
    with without_kernels():
        return trajectories(rank, ranks)


def trajectories(rank, ranks):
    import terse_torch
    import torch

    found = {}
    for bits in (1, 3):
        named, optimizer = optimizer_of(rank, bits)
        for step in range(STEPS):
            if step == RESUMED:
                values, saved = {name: each.detach().clone() for name, each in named.items()}, optimizer.state_dict()
                named, optimizer = optimizer_of(rank, bits)
                for name, value in values.items():
                    named[name].data.copy_(value)
                optimizer.load_state_dict(saved)
            stepped(named, optimizer, rank, step)
            found[bits, step] = {name: each.detach().numpy().copy() for name, each in named.items()}

    for dtype in (torch.float16, torch.bfloat16):
        half = torch.nn.Parameter(torch.zeros(5, dtype=dtype))
        optimizer = terse_torch.LionCub([half], lr=0.5)
        half.grad = torch.tensor([1, -1, 2, -3, 0.5], dtype=dtype)
        optimizer.step()
        found[dtype] = half.detach().float().numpy().copy(), str(optimizer.state[half]["momentum"].dtype)

    half.grad = torch.tensor([1, float("inf") if rank == 1 else 1, 1, 1, 1], dtype=torch.bfloat16)
    found["not finite"] = raised(optimizer.step)
    found["lr"] = raised(lambda: terse_torch.LionCub([half], lr=0.1 + rank))
    found["bits"] = raised(lambda: terse_torch.LionCub([half], bits=9))
    found["group"] = raised(lambda: optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(2))]}))
    found["groups"] = len(optimizer.param_groups)
    longer = terse_torch.LionCub([torch.nn.Parameter(torch.zeros(6))])
    found["shape"] = raised(lambda: longer.load_state_dict(optimizer.state_dict()))
    found["loaded"] = len(longer.state)
    half.grad = torch.ones(5, dtype=torch.bfloat16)
    before = half.detach().clone()
    optimizer.param_groups[0]["lr"] = 0.25 if rank == 1 else 0.5
    found["schedules differ"] = raised(optimizer.step), torch.equal(half, before)
    optimizer.param_groups[0]["lr"] = float("nan") if rank == 1 else 0.5
    found["schedule"] = raised(optimizer.step), torch.equal(half, before)
    for options in ({"lr": "1e-4"}, {"betas": 0.9}, {"betas": (0.9, 0.99, 0.999)}):
        found[str(options)] = raised(lambda: terse_torch.LionCub([half], **options))
    return found


def on_another_default_device(rank, ranks):
    import torch

    torch.set_default_device("meta")
    found = {}
    for bits in (1, 3):
        named, optimizer = optimizer_of(rank, bits)
        stepped(named, optimizer, rank, 0)
        found[bits] = {name: each.detach().numpy().copy() for name, each in named.items()}
    return found


def sharded(rank, ranks):
    import terse_torch
    import torch
    from torch.distributed.fsdp import FullyShardedDataParallel

    def refusal(**options):
        model = FullyShardedDataParallel(torch.nn.Linear(4, 4), device_id=torch.device("cpu"), **options)
        return raised(lambda: terse_torch.LionCub(model.parameters()))

    return [refusal(), refusal(use_orig_params=True)]


def levels(c, s):
    unit = np.float32(2) * np.abs(c).mean(dtype=np.float64) / s
    return np.clip(np.rint(c / unit), -s, s) if np.any(c) else c


def reference(ranks, bits):
    """The paper's lines, in float64."""
    values = {name: begin(0, name).astype(np.float64) for name in SHAPES}
    momenta = [{name: np.zeros(shape) for name, shape in SHAPES.items()} for _ in range(ranks)]
    for step in range(STEPS):
        for name, shape in SHAPES.items():
            given = [gradient(rank, step, name) for rank in range(ranks)]
            if all(each is None for each in given):
                continue
            total = np.zeros(shape)
            for rank, g in enumerate(given):
                g = np.zeros(shape) if g is None else g.astype(np.float64)
                c = 0.9 * momenta[rank][name] + 0.1 * g
                momenta[rank][name] = 0.99 * momenta[rank][name] + 0.01 * g
                total += levels(c, 3) if bits > 1 else np.where(c >= 0, 1, -1)
            vote = np.sign(total)
            if bits == 1:
                vote = np.where(total == 0, 1 if step % 2 == 0 else -1, vote)
            values[name] = values[name] * (1 - 0.01 * 0.1) - 0.01 * vote
        yield {name: each.copy() for name, each in values.items()}


class LionCubs(unittest.TestCase):
    def test_go_the_way_of_the_paper_on_2_and_3_ranks_also_after_a_save(self):
        import torch

        for ranks in (2, 3):
            results = on_ranks(ranks, trajectories)
            for bits in (1, 3):
                for step, expected in enumerate(reference(ranks, bits)):
                    for name in SHAPES:
                        got = [found[bits, step][name] for found in results]
                        for each in got:
                            self.assertEqual(each.tobytes(), got[0].tobytes())
                        np.testing.assert_allclose(got[0], expected[name], rtol=1e-5, atol=1e-6, err_msg=name)
            for found in results:
                for half, momentum in (found[dtype] for dtype in (torch.float16, torch.bfloat16)):
                    np.testing.assert_array_equal(half, [-0.5, 0.5, -0.5, 0.5, -0.5])
                    self.assertEqual(momentum, "torch.float32")
                refusal = "StepRefusedError: rank 1 refuses step 1: the gradient of 0 of group 0"
                self.assertIn(refusal, found["not finite"])
                self.assertIn("ValueError: LionCub: param_groups is", found["lr"])
                self.assertIn("bits is 9, and must be 1 to 8", found["bits"])
                self.assertIn("NotImplementedError: LionCub: its parameters are fixed", found["group"])
                self.assertEqual(found["groups"], 1)
                self.assertIn("another model: the momentum of 0 of group 0 is of (5,), and the", found["shape"])
                self.assertEqual(found["loaded"], 0)
                expected = {
                    "schedules differ": "StepRefusedError: step 1: lr of group 0 is 0.5 on rank 0, and 0.25 on rank 1",
                    "schedule": "LionCub: lr is nan, and must be a number, 0 or more, and finite.",
                }
                for case, sentence in expected.items():
                    error, unchanged = found[case]
                    self.assertIn(sentence, error or "")
                    self.assertTrue(unchanged)
                self.assertIn("LionCub: lr is '1e-4', and must be a number", found["{'lr': '1e-4'}"])
                for betas in ("0.9", "(0.9, 0.99, 0.999)"):
                    said = found[f"{{'betas': {betas}}}"] or ""
                    self.assertIn(f"ValueError: LionCub: betas are {betas}, and must be two numbers", said)

    def test_work_on_the_cpu_whatever_device_new_tensors_are_made_on(self):
        for found in on_ranks(2, on_another_default_device):
            for bits in (1, 3):
                expected = next(iter(reference(2, bits)))
                for name in SHAPES:
                    np.testing.assert_allclose(found[bits][name], expected[name], rtol=1e-5, atol=1e-6, err_msg=name)

    def test_go_the_same_way_with_kernels_and_with_pytorchs_operators(self):
        for with_kernels, without in zip(on_ranks(2, trajectories), on_ranks(2, by_operators)):
            for bits in (1, 3):
                for step in range(STEPS):
                    for name in SHAPES:
                        mine, theirs = with_kernels[bits, step][name], without[bits, step][name]
                        self.assertEqual(mine.tobytes(), theirs.tobytes(), f"{bits} bits, step {step}, {name}")

    def test_refuse_parameters_that_fsdp_has_sharded(self):
        for refusals in on_ranks(2, sharded):
            for refusal in refusals:
                self.assertIn("is sharded, as by FSDP", refusal)


class Kernels(unittest.TestCase):
    def test_give_the_bits_of_pytorchs_operators(self):
        import torch
        from terse_torch._lion import Mixing
        from terse_torch._lion_library import loaded

        self.assertIsNotNone(loaded(), "TERSE_LION_LIBRARY names no library")
        special = np.array([0, -0.0, 1e-42, -1e-42, 1e30, -1e30, 1, -1], np.float32)
        for n in [*range(71), 1021, 70_001]:
            for zero, scale in [("plus", 1.0), ("minus", 1 / 3)]:
                x = draws(n).standard_normal((3, n)).astype(np.float32)
                chosen = draws(n, 1).random((3, n)) < 0.3
                x[chosen] = draws(n, 2).choice(special, (3, n))[chosen]
                by = Mixing(0.9, 0.99, scale, zero)
                torch.set_num_threads(2)
                kernels = self.bits_of(x, by)
                with without_kernels():
                    for name, bits in self.bits_of(x, by).items():
                        self.assertTrue(kernels[name] == bits, f"{name} of {n} elements, zero: {zero}")

    def bits_of(self, x, by):
        import torch
        from terse_torch._lion import apply_signs, mix, vote

        p, m, g = (torch.from_numpy(each.copy()) for each in x)
        wire = torch.zeros(-(-p.numel() // 8), dtype=torch.uint8)
        vote(wire, m, g, by)
        c = mix(m, g, by)
        version = p._version
        apply_signs(p, wire, 0.01, 0.1)
        self.assertGreater(p._version, version)
        return {name: each.numpy().tobytes() for name, each in {"wire": wire, "c": c, "m": m, "p": p}.items()}

    def test_refuse_what_is_not_finite_as_pytorchs_operators_do(self):
        import terse_codecs
        import torch
        from terse_torch._lion import Mixing, vote

        def refused():
            g = torch.ones(100)
            g[70] = float("nan")
            with self.assertRaises(terse_codecs.NotFiniteError) as caught:
                vote(torch.zeros(13, dtype=torch.uint8), torch.zeros(100), g, Mixing(0.9, 0.99, 1.0, "plus"))
            return caught.exception.index

        self.assertEqual(refused(), 70)
        with without_kernels():
            self.assertEqual(refused(), 70)


if __name__ == "__main__":
    unittest.main()
