"""A model under DDP whose gradients are given, for the tests of hooks."""

import numpy as np

SHAPES = {"a": (40, 7), "b": (65,), "c": (1,), "d": (3,), "empty": (0,)}


def gradient(rank, step, name):
    draws = np.random.default_rng([rank, step, sorted(SHAPES).index(name)])
    return draws.standard_normal(SHAPES[name])


def model_of(dtype=None, **options):
    import torch

    class Model(torch.nn.Module):
        """Its loss is linear, so that each parameter has the given gradient."""

        def __init__(self):
            super().__init__()
            for name, shape in SHAPES.items():
                self.register_parameter(name, torch.nn.Parameter(torch.zeros(shape, dtype=dtype or torch.float32)))

        def forward(self, gradients):
            return sum((getattr(self, name) * given).sum() for name, given in gradients.items())

    return torch.nn.parallel.DistributedDataParallel(Model(), **options)


def registered(state_of, dtype=None, **options):
    """A model and the state of its hook."""
    import terse_torch

    model = model_of(dtype, **options)
    state = state_of(model)
    model.register_comm_hook(state, terse_torch.hook)
    return model, state


def stepped(model, rank, step, without=(), nan=None):
    """The gradients that DDP leaves. `nan`: a parameter with one."""
    import torch

    named = dict(model.module.named_parameters())
    model.zero_grad()
    given = {name: torch.from_numpy(gradient(rank, step, name)).to(each.dtype) for name, each in named.items()}
    if nan:
        given[nan].view(-1)[-1] = float("nan")
    model({name: each for name, each in given.items() if name not in without}).backward()
    return {name: None if each.grad is None else each.grad.double().numpy().copy() for name, each in named.items()}


def kept(state):
    """What this rank has not sent: its own errors, and what it owns."""
    errors = {name: error.double().numpy() for name, error in state._errors.items()}
    owned = {name: error.double().numpy() for name, error in state._owned.items()}
    return errors, owned


def kept_of(results, name):
    """The same of all ranks together, from what kept() returned on each."""
    errors = sum(errors[name] for errors, _ in results) / len(results)
    return errors + (np.concatenate([owned[name] for _, owned in results]) if len(results) > 1 else 0)
