"""CompensatedMean of one bit against Algorithm 1 of 1-bit Adam written in NumPy, in float64; and its states."""

import unittest

import numpy as np
from given_gradients import SHAPES, gradient, kept, kept_of, registered, stepped
from ranks import on_ranks

STEPS = 5


def trajectory(rank, ranks, codec="scaled-sign", nan=False, saved=None, during=range(STEPS)):
    """The means of all steps, what is kept after them, and the state. `saved`: the state at the beginning."""
    import terse_torch

    # A kilobyte a bucket: several buckets, which DDP builds anew after the first step.
    model, state = registered(lambda model: terse_torch.CompensatedMean(model, codec), bucket_cap_mb=0.001)
    if saved:
        state.load_state_dict(saved)
    means = [stepped(model, rank, step, nan="b" if nan and rank == 1 and step == 2 else None) for step in during]
    return means, kept(state), state.state_dict()


def one_bit(x):
    scale = np.sqrt(np.mean(x * x)) if x.size else 0.0
    return np.where(x >= 0, scale, -scale)


def reference(ranks, name):
    """The mean of each step. Chunks begin at multiples of 8 elements."""
    n = int(np.prod(SHAPES[name]))
    units = -(-n // 8)
    starts = [min(n, 8 * (r * units // ranks)) for r in range(ranks + 1)]
    e, f = [np.zeros(n) for _ in range(ranks)], np.zeros(n)
    for step in range(STEPS):
        sent = []
        for r in range(ranks):
            e[r] = e[r] + gradient(r, step, name).reshape(-1)
            sent.append(one_bit(e[r]))
            e[r] = e[r] - sent[r]
        f = f + sum(sent) / ranks
        b = np.concatenate([one_bit(f[begin:end]) for begin, end in zip(starts, starts[1:])])
        f = f - b
        yield b


class Means(unittest.TestCase):
    def test_of_one_bit_are_algorithm_1_on_2_and_3_ranks_with_rebuilt_buckets(self):
        for ranks in [2, 3]:
            results = on_ranks(ranks, trajectory)
            for name in SHAPES:
                for step, expected in enumerate(reference(ranks, name)):
                    got = [means[step][name].reshape(-1) for means, *_ in results]
                    for each in got:
                        self.assertEqual(each.tobytes(), got[0].tobytes())
                    np.testing.assert_allclose(got[0], expected, rtol=2e-5, atol=2e-6)

    def test_go_on_from_saved_states_with_the_same_bits_and_on_other_ranks_with_the_same_sum(self):
        whole = on_ranks(2, trajectory)
        begun = on_ranks(2, trajectory, "scaled-sign", False, None, range(3))
        saved = [state for *_, state in begun]

        def resumed_on(ranks, states):
            return on_ranks(ranks, trajectory, "scaled-sign", False, states, range(3, STEPS))

        for states in [saved, saved[::-1]]:
            for (means, *_), (of_whole, *_) in zip(resumed_on(2, states), whole):
                for name in SHAPES:
                    for resumed_step, whole_step in zip(means, of_whole[3:]):
                        self.assertEqual(resumed_step[name].tobytes(), whole_step[name].tobytes())
        for ranks in [1, 3]:
            resumed = resumed_on(ranks, saved)
            for name in SHAPES:
                given = sum(gradient(r, step, name) for r in range(ranks) for step in range(3, STEPS)) / ranks
                sent = sum(of[name] for of in resumed[0][0])
                before, after = (kept_of([kept for _, kept, _ in of], name) for of in (begun, resumed))
                np.testing.assert_allclose(sent.reshape(-1) + after, before + given.reshape(-1), atol=1e-4)

    def test_refuse_states_of_others(self):
        begun = [state for *_, state in on_ranks(2, trajectory)]
        for states, codec, sentence in [
            (begun[:1], "scaled-sign", "give a list of the states of all 2 ranks"),
            (begun, "int8", "the state is that of"),
            ([{**each, "errors": {"a": each["errors"]["a"]}} for each in begun], "scaled-sign", "another model: b"),
            ([begun[0], {**begun[1], "step": 4}], "scaled-sign", "step is 5 in the state of rank 0, and 4 in that of"),
            ([begun[0], {**begun[1], "ranks": 3}], "scaled-sign", "ranks is 2 in the state of rank 0, and 3 in that"),
        ]:
            with self.assertRaises(RuntimeError) as caught:
                on_ranks(3, trajectory, codec, False, states)
            self.assertIn("ValueError: CompensatedMean: ", str(caught.exception))
            self.assertIn(sentence, str(caught.exception))

    def test_are_refused_on_every_rank_where_one_gradient_is_not_finite(self):
        with self.assertRaises(RuntimeError) as caught:
            on_ranks(2, trajectory, "scaled-sign", True)
        said = str(caught.exception)
        refusal = "StepRefusedError: rank 1 refuses step 2: the gradient of b is not finite"
        self.assertEqual(said.count(refusal), 2, said)


if __name__ == "__main__":
    unittest.main()
