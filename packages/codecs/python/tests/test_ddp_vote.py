"""The DDP hook of examples/ddp_vote.py against plain floats, on two processes over Gloo."""

import os
import sys
import unittest

from families import HAS_TORCH, NEEDS_TORCH
from ranks import on_ranks

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../examples"))

RANKS = 2


class Reference:
    """The state of the reference: counts the elements that tied, and the gradients that were exactly 0."""

    def __init__(self, policy):
        self.policy, self.step, self.ties, self.zeros = policy, 0, 0, 0


def reference_hook(state, bucket):
    """The same vote in floats: the sign of the sum of signs."""
    gradient = bucket.buffer()
    # Even steps plus, odd ones minus.
    one = {"plus": 1.0, "minus": -1.0, "alternate": -1.0 if state.step % 2 else 1.0}[state.policy]
    state.step += bucket.is_last()
    state.zeros += int((gradient == 0).sum())
    signs = torch.where(gradient == 0, torch.tensor(one), gradient.sign())

    def elect(future):
        total = future.value()[0]
        state.ties += int((total == 0).sum())
        return torch.where(total == 0, torch.tensor(one), total.sign())

    return dist.all_reduce(signs, async_op=True).get_future().then(elect)


def trained(rank, ranks, policy, fault=""):
    """With the hook, and with the reference: gradients, parameters and losses. `policy`: each rank's, where they differ."""
    # The test itself has no use for them.
    global torch, dist
    import torch
    import torch.distributed as dist

    import ddp_vote

    policies = policy.split(",")
    policy = policies[rank % len(policies)]
    results = {}
    for name, state, hook in [
        ("vote", ddp_vote.Vote(policy), ddp_vote.vote_hook),
        ("reference", Reference(policy), reference_hook),
    ]:
        gradients = []

        def keep(state, bucket, hook=hook, gradients=gradients):
            if rank == 1 and state.step == 3:
                if fault == "death":
                    os._exit(9)
                if fault == "nan":
                    bucket.buffer()[5] = float("nan")

            def kept(future):
                gradients.append(future.value().clone())
                return future.value()

            return hook(state, bucket).then(kept)

        model, losses = ddp_vote.train(state, keep)
        results[name] = {
            "losses": losses,
            "parameters": bits(torch.nn.utils.parameters_to_vector(model.parameters())),
            "gradients": [bits(gradient) for gradient in gradients],
            "values": sorted({value for gradient in gradients for value in gradient.tolist()}),
        }
    results["ties"], results["zeros"] = state.ties, state.zeros
    return results


def bits(tensor):
    return tensor.detach().view(torch.int32).tolist()


@unittest.skipUnless(HAS_TORCH, NEEDS_TORCH)
class VotedGradients(unittest.TestCase):
    def test_equal_the_sign_of_the_sum_of_signs_and_train_alike_on_every_rank(self):
        first, second = on_ranks(RANKS, trained, "alternate")
        for rank in [first, second]:
            self.assertEqual(rank["vote"]["gradients"], rank["reference"]["gradients"])
            self.assertEqual(rank["vote"]["parameters"], rank["reference"]["parameters"])
            self.assertEqual(rank["vote"]["values"], [-1, 1])
            losses = rank["vote"]["losses"]
            self.assertLess(losses[-1], 0.7 * losses[0])
        self.assertEqual(first["vote"]["parameters"], second["vote"]["parameters"])
        # Without different data, ties and zeros a wrong vote could look right.
        self.assertNotEqual(first["vote"]["losses"], second["vote"]["losses"])
        self.assertGreater(first["ties"], 100)
        self.assertGreater(first["zeros"], 0)

    def test_are_refused_where_ranks_disagree_on_ties(self):
        with self.assertRaisesRegex(RuntimeError, "ranks disagree on what zeros and ties become"):
            on_ranks(RANKS, trained, "plus,minus")

    def test_end_on_every_rank_when_one_has_a_gradient_that_is_not_finite(self):
        with self.assertRaises(RuntimeError) as caught:
            on_ranks(RANKS, trained, "alternate", "nan")
        self.assertEqual(
            str(caught.exception).count("ValueError: vote_hook: a gradient is not finite, on rank 1."), RANKS
        )

    def test_are_those_of_nobody_when_a_rank_is_gone(self):
        with self.assertRaisesRegex(RuntimeError, "RuntimeError: .*(by peer|[Bb]roken pipe)"):
            on_ranks(RANKS, trained, "alternate", "death")


if __name__ == "__main__":
    unittest.main()
