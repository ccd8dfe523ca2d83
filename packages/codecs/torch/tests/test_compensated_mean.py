"""
CompensatedMean under DDP on several processes over Gloo, against Algorithm 1 of 1-bit Adam written in NumPy, in
float64.
"""
import multiprocessing
import os
import pickle
import sys
import tempfile
import unittest

import numpy as np

HAS_FORK_SERVER = "forkserver" in multiprocessing.get_all_start_methods()
processes = multiprocessing.get_context("forkserver" if HAS_FORK_SERVER else "spawn")
if HAS_FORK_SERVER:
    processes.set_forkserver_preload(["torch", "torch.distributed"])  # PyTorch takes seconds to import

STEPS = 5
SHAPES = {"a": (40, 7), "b": (3,), "c": (1,), "d": (65,), "e": (200, 10)}


def gradient(rank, step, name):
    draws = np.random.default_rng([rank, step, sorted(SHAPES).index(name)])
    return draws.standard_normal(SHAPES[name]).astype(np.float32)


def one_rank(folder, ranks, codec, parameters, fault, saved, during, rank):
    os.dup2(os.open(os.path.join(folder, f"err.{rank}"), os.O_WRONLY | os.O_CREAT), 2)
    import torch
    import torch.distributed as dist
    import terse_torch

    class Model(torch.nn.Module):
        """Its loss is linear, so that each parameter has the given gradient."""

        def __init__(self):
            super().__init__()
            for name, shape in SHAPES.items():
                self.register_parameter(name, torch.nn.Parameter(torch.zeros(shape)))

        def forward(self, gradients):
            return sum((getattr(self, name) * given).sum() for name, given in gradients.items())

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    # A kilobyte a bucket: several buckets, which DDP builds anew after the first step.
    model = torch.nn.parallel.DistributedDataParallel(Model(), bucket_cap_mb=0.001)
    state = terse_torch.CompensatedMean(model, codec, **parameters)
    model.register_comm_hook(state, terse_torch.hook)
    if saved:
        state.load_state_dict(saved)
    visited = []
    for step in during:
        given = {name: torch.from_numpy(gradient(rank, step, name)) for name in SHAPES}
        if fault == "nan" and rank == 1 and step == 2:
            given["d"][5] = float("nan")
        model.zero_grad()
        model(given).backward()
        visited.append({name: getattr(model.module, name).grad.numpy().copy() for name in SHAPES})
    errors = {name: error.numpy() for name, error in state._errors.items()}
    owned = {name: error.numpy() for name, error in state._owned.items()}
    with open(os.path.join(folder, f"out.{rank}"), "wb") as file:
        pickle.dump((visited, errors, owned, state.state_dict()), file)
    dist.destroy_process_group()


def run_ranks(ranks, codec="scaled-sign", fault="", saved=None, during=range(STEPS), **parameters):
    """What each rank wrote; the ends of those that failed instead. `saved`: what all ranks load before the steps."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0")
    with tempfile.TemporaryDirectory() as folder:
        given = (folder, ranks, codec, parameters, fault, saved, during)
        started = [processes.Process(target=one_rank, args=(*given, rank)) for rank in range(ranks)]
        for each in started:
            each.start()
        try:
            for each in started:
                each.join(timeout=240)
        finally:
            for each in started:
                each.kill()
                each.join()

        def said(rank):
            with open(os.path.join(folder, f"err.{rank}")) as file:
                return file.read()

        failed = [said(rank) for rank, each in enumerate(started) if each.exitcode]
        if failed:
            raise RuntimeError("\n".join(failed))
        results = []
        for rank in range(ranks):
            with open(os.path.join(folder, f"out.{rank}"), "rb") as file:
                results.append(pickle.load(file))
        return results


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
            e[r] = e[r] + gradient(r, step, name).reshape(-1).astype(np.float64)
            sent.append(one_bit(e[r]))
            e[r] = e[r] - sent[r]
        f = f + sum(sent) / ranks
        b = np.concatenate([one_bit(f[begin:end]) for begin, end in zip(starts, starts[1:])])
        f = f - b
        yield b


def kept_of(results, name):
    """What ranks and owners have not sent yet."""
    owned = np.concatenate([owned[name] for _, _, owned, _ in results])
    return sum(errors[name] for _, errors, *_ in results) / len(results) + (owned if len(results) > 1 else 0)


class Means(unittest.TestCase):
    def test_of_one_bit_are_algorithm_1_on_2_and_3_ranks_with_rebuilt_buckets(self):
        for ranks in [2, 3]:
            results = run_ranks(ranks)
            for name in SHAPES:
                for step, expected in enumerate(reference(ranks, name)):
                    got = [visited[step][name].reshape(-1) for visited, *_ in results]
                    for each in got:
                        self.assertEqual(each.tobytes(), got[0].tobytes())
                    np.testing.assert_allclose(got[0], expected, rtol=2e-5, atol=2e-6)

    def test_go_on_from_saved_states_with_the_same_bits_and_on_other_ranks_with_the_same_sum(self):
        whole = run_ranks(2)
        begun = run_ranks(2, during=range(3))
        saved = [state for *_, state in begun]
        for states in [saved, saved[::-1]]:
            resumed = run_ranks(2, saved=states, during=range(3, STEPS))
            for (visited, *_), (of_whole, *_) in zip(resumed, whole):
                for name in SHAPES:
                    for resumed_step, whole_step in zip(visited, of_whole[3:]):
                        self.assertEqual(resumed_step[name].tobytes(), whole_step[name].tobytes())
        for ranks in [1, 3]:
            resumed = run_ranks(ranks, saved=saved, during=range(3, STEPS))
            for name in SHAPES:
                given = sum(gradient(r, step, name) for r in range(ranks) for step in range(3, STEPS)) / ranks
                sent = sum(of[name] for of in resumed[0][0])
                before, after = kept_of(begun, name), kept_of(resumed, name)
                np.testing.assert_allclose(sent.reshape(-1) + after, before + given.reshape(-1), atol=1e-4)

    def test_refuse_states_of_others(self):
        begun = [state for *_, state in run_ranks(2)]
        for states, codec, sentence in [
            (begun[:1], "scaled-sign", "give a list of the states of all 2 ranks"),
            (begun, "int8", "the state is that of"),
            ([{**each, "errors": {"a": each["errors"]["a"]}} for each in begun], "scaled-sign", "another model: b"),
        ]:
            with self.assertRaises(RuntimeError) as caught:
                run_ranks(3, codec, saved=states)
            self.assertIn("ValueError: CompensatedMean: ", str(caught.exception))
            self.assertIn(sentence, str(caught.exception))

    def test_are_refused_on_every_rank_where_one_gradient_is_not_finite(self):
        with self.assertRaises(RuntimeError) as caught:
            run_ranks(2, fault="nan")
        said = str(caught.exception)
        refusal = "StepRefusedError: rank 1 refuses step 2: the gradient of d is not finite"
        self.assertEqual(said.count(refusal), 2, said)


if __name__ == "__main__":
    unittest.main()
