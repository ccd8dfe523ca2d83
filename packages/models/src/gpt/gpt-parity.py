"""Reads weights and tokens from a safetensors file; writes the PyTorch model's loss and gradients. Arguments: IN OUT SHAPE(json)."""

import json
import sys

import torch
from gpt import Gpt
from safetensors.torch import load_file, save_file

source, target, shape = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
tensors = load_file(source)
tokens, next = tensors.pop("tokens"), tensors.pop("next")
model = Gpt(**shape)
model.load_state_dict(tensors, strict=True)
loss = model.loss(tokens, next)
loss.backward()
save_file({"loss": loss.detach().reshape(1), **{name: p.grad for name, p in model.named_parameters()}}, target)
