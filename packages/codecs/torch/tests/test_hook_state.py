"""What hooks need of all ranks, and CompensatedMean with every codec, type and unused parameter."""

import copy
import io
import json
import os
import tempfile
import unittest

import numpy as np
from given_gradients import SHAPES, gradient, kept, kept_of, model_of, registered, stepped
from ranks import on_ranks, raised

STEPS = 3
CODECS = [
    ("int8", {"block": 24}),
    ("f16", {}),
    ("l1", {"bits": 4, "block": 32}),
    ("bin-means", {"bits": 2}),
    ("linf", {"bits": 4, "block": 64}),
    ("top-k", {"k": 100}),
    ("top-k", {"ratio": 0.1, "values": "f16"}),
    ("dct-top-k", {"block": 16, "k": 4}),
]


def with_codecs_and_types(rank, ranks):
    import terse_torch
    import torch

    found = {}
    f32, f64 = torch.float32, torch.float64
    for default, dtype in [(f32, f32), (f64, f64), (f32, torch.bfloat16), (f32, torch.float16)]:
        for codec, parameters in CODECS if dtype == torch.float32 else CODECS[:1]:
            torch.set_default_dtype(default)
            model, state = registered(
                lambda model: terse_torch.CompensatedMean(model, codec, **parameters),
                dtype,
                gradient_as_bucket_view=dtype == torch.float64,
            )
            means = [stepped(model, rank, step) for step in range(STEPS)]
            found[f"{codec} {parameters} {dtype}"] = means, kept(state)
            torch.set_default_dtype(torch.float32)
    return found


def with_unused(rank, ranks):
    import terse_torch

    model, state = registered(terse_torch.CompensatedMean, find_unused_parameters=True)
    used = stepped(model, rank, 0)
    before = kept(state)
    nobody = stepped(model, rank, 1, without=["b"])
    return used, before, nobody, kept(state)


def refused(rank, ranks):
    import terse_torch
    import torch

    Mean = terse_torch.CompensatedMean
    model = model_of()
    sparse = torch.nn.parallel.DistributedDataParallel(torch.nn.Embedding(4, 4, sparse=True))
    return {
        "codec": raised(lambda: Mean(model, "int8" if rank else "f16")),
        "options": raised(lambda: Mean(model, "l1", bits=4 + rank)),
        "seed": raised(lambda: Mean(model, seed=rank)),
        "one rank's": raised(lambda: Mean(model, "qsgd" if rank else "l1", bits=4)),
        "typo": raised(lambda: Mean(model, "int9" if rank else "int8")),
        "chunk": raised(lambda: Mean(model, "dct-top-k", dimensions=2, block=8, k=2)),
        "segments": raised(lambda: Mean(model, "int8", segments=[1])),
        "ratio": raised(lambda: Mean(model, "top-k", ratio=2)),
        "text": raised(lambda: Mean(model, "top-k", ratio="0.1")),
        "clip": raised(lambda: terse_torch.TernGrad(model, clip="2.5")),
        "negative": raised(lambda: Mean(model, "linf", bits=4, seed=-1)),
        "no seed": raised(lambda: terse_torch.TernGrad(model, seed=None)),
        "sparse": raised(lambda: Mean(sparse)),
        "no DDP": raised(lambda: Mean(model.module)),
    }


def made_often(rank, ranks):
    import terse_torch
    import torch

    descriptors = []
    for _ in range(4):
        model, state = registered(terse_torch.CompensatedMean)
        stepped(model, rank, 0)
        parameter = torch.nn.Parameter(torch.ones(3))
        optimizer = terse_torch.LionCub([parameter])
        parameter.grad = torch.ones(3)
        optimizer.step()
        state.close()
        optimizer.close()
        state.close()
        torch.distributed.barrier()
        descriptors.append(len(os.listdir("/proc/self/fd")))
    return descriptors, raised(optimizer.step)


def copied(rank, ranks):
    import terse_torch
    import torch

    model, state = registered(terse_torch.CompensatedMean)
    stepped(model, rank, 0)
    average = torch.optim.swa_utils.AveragedModel(model)
    same = all(torch.equal(*each) for each in zip(average.module.parameters(), model.parameters()))
    optimizer = terse_torch.LionCub([torch.nn.Parameter(torch.ones(3))])
    said = [
        raised(lambda: torch.save({"hook": state}, io.BytesIO())),
        raised(lambda: terse_torch.hook(copy.deepcopy(state), None)),
        raised(copy.deepcopy(optimizer).step),
    ]
    stepped(model, rank, 1)
    return same, said


def with_backends(rank, ranks, folder):
    """Groups whose backend is not simply gloo; then all of them are closed, and the state's own are among them."""
    import terse_torch
    import torch.distributed as dist

    def begin(backend, store):
        dist.destroy_process_group()
        dist.init_process_group(backend, init_method=f"file://{folder}/{store}", rank=rank, world_size=ranks)

    found = []
    for backend in (None, "cpu:gloo"):
        begin(backend, str(backend))
        model, state = registered(terse_torch.CompensatedMean)
        stepped(model, rank, 0)
        found.append(len(state._messages._groups))
    begin("gloo", "last")
    state.close()
    return found


def in_groups(rank, ranks):
    """Rank 1 is in one group more than rank 2 is."""
    import terse_torch
    import torch
    import torch.distributed as dist

    dist.new_group([0, 1])
    group = dist.new_group([1, 2])
    found = []
    for _ in range(2 if rank else 0):
        model, state = registered(terse_torch.CompensatedMean, process_group=group)
        found.append(stepped(model, rank, 0)["b"].tobytes())
        state.close()
        parameter = torch.nn.Parameter(torch.full((3,), float(rank)))
        optimizer = terse_torch.LionCub([parameter], lr=0.5, process_group=group)
        parameter.grad = torch.ones(3)
        optimizer.step()
        optimizer.close()
        found.append(parameter.tolist())
    return found


class CompensatedMeans(unittest.TestCase):
    def test_and_lion_cub_close_their_connections(self):
        for descriptors, later in on_ranks(2, made_often):
            self.assertEqual(descriptors[1:], descriptors[1:2] * 3)
            self.assertIn("StepRefusedError: it is closed, or an earlier step has failed", later)

    def test_and_lion_cub_begin_anew_in_a_group_of_some_ranks(self):
        _, one, other = on_ranks(3, in_groups)
        self.assertEqual(one, other)
        self.assertEqual(one[:2], one[2:])
        self.assertEqual(one[1], [0.5, 0.5, 0.5])

    def test_go_up_and_come_back_over_groups_of_their_own_with_every_name_of_gloo(self):
        with tempfile.TemporaryDirectory() as folder:
            for groups in on_ranks(2, with_backends, folder):
                self.assertEqual(groups, [2, 2])

    def test_are_copied_with_their_model_and_not_saved_as_a_whole(self):
        for same, (saved, copy_of_state, copy_of_optimizer) in on_ranks(2, copied):
            self.assertTrue(same)
            self.assertIn("TypeError: CompensatedMean: it has connections, which no file holds: save its", saved)
            self.assertIn("TypeError: terse_torch.hook: its state is a CopiedState, and must be", copy_of_state)
            self.assertIn("RuntimeError: LionCub: this is a copy, which has no connections", copy_of_optimizer)

    def test_add_up_to_the_gradients_with_every_codec_and_type(self):
        results = on_ranks(2, with_codecs_and_types)
        for case, (means, _) in results[0].items():
            for name in SHAPES:
                sent = sum(of[name] for of in means).reshape(-1)
                other = sum(of[name] for of in results[1][case][0]).reshape(-1)
                self.assertEqual(sent.tobytes(), other.tobytes())
                waits = kept_of([each[case][1] for each in results], name)
                given = sum(gradient(r, step, name) for r in range(2) for step in range(STEPS)).reshape(-1) / 2
                coarse = 3e-2 if case.endswith("float16") else 1e-5
                np.testing.assert_allclose(sent + waits, given, atol=coarse, err_msg=f"{case} {name}")

    def test_of_a_parameter_that_no_rank_uses_send_nothing_and_keep_its_errors(self):
        for _, before, nobody, after in on_ranks(2, with_unused):
            self.assertIsNone(nobody["b"])
            self.assertGreater(np.abs(before[0]["b"]).max(), 0)
            for kind in range(2):
                self.assertEqual(before[kind]["b"].tobytes(), after[kind]["b"].tobytes())
            self.assertNotEqual(before[0]["a"].tobytes(), after[0]["a"].tobytes())

    def test_are_refused_on_all_ranks_before_the_first_step(self):
        expected = {
            "codec": "codec is codec('f16') on rank 0, and codec('int8') on rank 1: it must be the same",
            "options": "codec is codec('l1', bits=4) on rank 0, and codec('l1', bits=5) on rank 1",
            "seed": "seed is 0 on rank 0, and 1 on rank 1",
            "one rank's": "error may exceed the gradient",
            "typo": "there is no codec 'int9'",
            "chunk": "a cannot be sent",
            "segments": "segments has no meaning for gradients",
            "ratio": "ratio is 2, and must be a share",
            "text": "ratio is '0.1', and must be a share",
            "clip": "clip is '2.5', and must be a number",
            "negative": "CompensatedMean: seed is -1, and must be a whole number",
            "no seed": "TernGrad: seed is None, and must be a whole number",
            "sparse": "sparse gradients",
            "no DDP": "TypeError: CompensatedMean: model is a Model, and must be a DistributedDataParallel",
        }
        for of_rank in on_ranks(2, refused):
            for case, sentence in expected.items():
                self.assertIn(sentence, of_rank[case] or "", case)


class Layouts(unittest.TestCase):
    def test_are_those_of_the_definitions_in_typescript(self):
        from terse_codecs import codec
        from terse_torch._chunks import layout_of

        definitions = json.loads(os.environ["TERSE_CODEC_LAYOUTS"])
        self.assertGreater(len(definitions), 10)
        for name, parameters, layout in definitions:
            expected = layout and (layout["fieldBits"], 4 * layout["scales"])
            expected = expected and (*expected, parameters.get("block", 0))
            self.assertEqual(layout_of(codec(name, **parameters)), expected, name)

    def test_and_errors_without_end_are_refused_where_the_definitions_do(self):
        from terse_torch._compensated_mean import refuse_codec

        for name, parameters, refused in json.loads(os.environ["TERSE_CODEC_FEEDBACK"]):
            said = raised(lambda: refuse_codec(name, parameters))
            place = "NO_FEEDBACK in packages/codecs/torch/terse_torch/_compensated_mean.py"
            self.assertEqual(said is not None, refused, f"{name} {said}: {place} has what is refused, and why")


if __name__ == "__main__":
    unittest.main()
