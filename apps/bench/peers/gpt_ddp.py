"""The GPT of packages/models/src/gpt/gpt.py with the weights of a task's folder, in DistributedDataParallel."""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "packages/models/src/gpt"))

import safetensors.torch
import torch
from gpt import Gpt
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.nn.parallel import DistributedDataParallel


def gpt_of(task):
    model = Gpt(**task["shape"])
    model.load_state_dict(safetensors.torch.load_file(f"{task['folder']}/model.safetensors"))
    return model


def ddp_of(model, group=None, bucket_megabytes=None):
    """The loss of the model, by DDP. bucket_megabytes: 0 for one bucket, None for DDP's default."""
    whole = torch.nn.Module()  # its forward is the loss, so that DDP wraps the whole computation
    whole.model = model
    whole.forward = model.loss
    caps = {} if bucket_megabytes is None else {"bucket_cap_mb": bucket_megabytes or 10_000}
    return DistributedDataParallel(whole, process_group=group, gradient_as_bucket_view=True, **caps)


def compress_by_terse_torch(ddp):
    """One bit an element, by the hook of packages/codecs/torch, with this repository's library of codecs."""
    repository = pathlib.Path(__file__).parents[3]
    library = pathlib.Path(tempfile.mkdtemp()) / "libterse_codecs.so"
    static = repository / "native/codecs/build/libterse_codecs.a"
    whole = ["-Wl,--whole-archive", static, "-Wl,--no-whole-archive", "-lm"]
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-o", library, *whole], check=True)
    os.environ["TERSE_CODECS_LIBRARY"] = str(library)
    sys.path[:0] = [str(repository / "packages/codecs/torch"), str(repository / "packages/codecs/python")]
    import terse_torch

    ddp.register_comm_hook(terse_torch.CompensatedMean(ddp), terse_torch.hook)


def compress_by_powersgd(ddp, approximation, group=None):
    state = powerSGD_hook.PowerSGDState(group, matrix_approximation_rank=approximation, start_powerSGD_iter=2)
    ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
