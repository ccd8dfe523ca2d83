"""Votes, TernGrad and the named hooks beside NumPy, on 2 and 3 ranks."""

import unittest

import numpy as np
from given_gradients import SHAPES, gradient, kept, kept_of, model_of, registered, stepped
from ranks import on_ranks, raised

STEPS = 4
DRAWS = 60  # steps of TernGrad without bias


def all_hooks(rank, ranks):
    import terse_torch
    import torch

    found = {}
    for bits in (1, 3):
        model, state = registered(lambda model: terse_torch.Vote(model, bits=bits), bucket_cap_mb=0.0001)
        found[f"vote {bits}"] = [stepped(model, rank, step) for step in range(STEPS)]
        found[f"state of vote {bits}"] = state.state_dict()["step"]
    for clip in (0, 1.5):
        model, _ = registered(lambda model: terse_torch.TernGrad(model, clip=clip), bucket_cap_mb=0.0001)
        found[f"terngrad {clip}"] = [stepped(model, rank, 0) for _ in range(DRAWS if clip == 0 else 1)]
    model, _ = registered(terse_torch.Vote, torch.bfloat16)
    found["vote of bf16"] = [stepped(model, rank, 0)]

    for name in ("int8", "four_bits"):
        model, state = registered(getattr(terse_torch, name))
        named = dict(model.module.named_parameters())
        given = [{name: torch.from_numpy(gradient(rank, step, name)).float() for name in SHAPES} for step in range(2)]
        model.zero_grad()
        with model.no_sync():
            model(given[0]).backward()
        model(given[1]).backward()
        accumulated = {name: each.grad.double().numpy().copy() for name, each in named.items()}
        found[name] = accumulated, kept(state)

    def step_with_nan(state_of):
        model, _ = registered(state_of)
        stepped(model, rank, 0, nan="b" if rank == 1 else None)

    for name in ("Vote", "TernGrad", "int8"):
        found[f"NaN {name}"] = raised(lambda: step_with_nan(getattr(terse_torch, name)))
    found["NaN levels"] = raised(lambda: step_with_nan(lambda model: terse_torch.Vote(model, bits=4)))
    model = model_of()
    found["two bits"] = raised(lambda: terse_torch.Vote(model, bits=2))
    found["ranks differ"] = raised(lambda: (terse_torch.Vote if rank else terse_torch.TernGrad)(model))
    return found


def levels(x, s):
    """Q1: whole numbers -s to s, s for twice the mean magnitude."""
    unit = np.float32(2) * np.abs(x).mean(dtype=np.float64) / s
    return np.clip(np.rint(x / unit), -s, s)


class Hooks(unittest.TestCase):
    def test_on_2_and_3_ranks_are_those_of_numpy_and_the_same_bits_on_all(self):
        for ranks in (2, 3):
            results = on_ranks(ranks, all_hooks)
            with self.subTest(ranks=ranks):
                self.same_bits(results)
                self.votes(ranks, results[0])
                self.terngrad(ranks, results[0])
                self.named(ranks, results)
                self.refusals(ranks, results)

    def same_bits(self, results):
        for case, expected in results[0].items():
            if case.startswith(("vote", "terngrad")):
                for other in results[1:]:
                    for mine, theirs in zip(expected, other[case]):
                        for name in SHAPES:
                            self.assertEqual(mine[name].tobytes(), theirs[name].tobytes(), f"{case} {name}")

    def votes(self, ranks, found):
        for step in range(STEPS):
            for name in SHAPES:
                gradients = [gradient(rank, step, name).astype(np.float32) for rank in range(ranks)]
                total = sum(np.where(g >= 0, 1, -1) for g in gradients)
                tie = 1 if step % 2 == 0 else -1
                np.testing.assert_array_equal(found["vote 1"][step][name], np.where(total == 0, tie, np.sign(total)))
                if gradients[0].size:
                    of_levels = np.sign(sum(levels(g, 3) for g in gradients))
                    np.testing.assert_array_equal(found["vote 3"][step][name], of_levels)
        self.assertEqual(found["state of vote 3"], STEPS)
        self.assertEqual(set(np.abs(found["vote of bf16"][0]["a"].reshape(-1))), {1})

    def terngrad(self, ranks, found):
        for name in ("a", "b", "c"):
            gradients = [gradient(rank, 0, name).astype(np.float32) for rank in range(ranks)]
            scale = max(np.abs(g).max() for g in gradients)
            drawn = [of[name] for of in found["terngrad 0"]]
            whole = np.stack(drawn) * ranks / scale
            np.testing.assert_allclose(whole, np.rint(whole), atol=1e-4)
            deviation = scale / np.sqrt(DRAWS * ranks)  # at most, of the mean of all draws
            np.testing.assert_allclose(np.mean(drawn, axis=0), np.mean(gradients, axis=0), atol=4 * deviation)
            self.assertLess(np.abs(np.mean(drawn, axis=0) - np.mean(gradients, axis=0)).mean(), deviation)
            clips = [g if g.size == 1 else np.clip(g, -1.5 * g.std(), 1.5 * g.std()) for g in gradients]
            whole = found["terngrad 1.5"][0][name] * ranks / max(np.abs(g).max() for g in clips)
            np.testing.assert_allclose(whole, np.rint(whole), atol=1e-4)

    def named(self, ranks, results):
        for hook in ("int8", "four_bits"):
            for name in SHAPES:
                accumulated = results[0][hook][0][name].reshape(-1)
                waits = kept_of([each[hook][1] for each in results], name)
                given = sum(gradient(r, step, name) for r in range(ranks) for step in range(2)).reshape(-1) / ranks
                np.testing.assert_allclose(accumulated + waits, given, atol=1e-5)

    def refusals(self, ranks, results):
        for found in results:
            for case in ("NaN Vote", "NaN TernGrad", "NaN int8", "NaN levels"):
                self.assertIn("rank 1 refuses step 0: the gradient of b is not finite", found[case] or "")
            self.assertIn("with 2 bits the one element of c would never move", found["two bits"])
            self.assertIn("the hook is TernGrad on rank 0, and Vote on rank 1", found["ranks differ"])


if __name__ == "__main__":
    unittest.main()
