"""
The two halves of Lion Cub's step for one parameter, between which the ranks vote. PyTorch's operators define them; the
kernels of native/optimizers/lion give the same bits in one pass each, for contiguous float32 in the CPU's memory.
"""

from __future__ import annotations

from typing import NamedTuple

import terse_codecs
import torch
from terse_codecs._library import NOT_FINITE

from ._lion_library import Options, library


class Mixing(NamedTuple):
    beta1: float
    beta2: float
    gradient_scale: float  # multiplies g first
    zero: str  # the sign of an exact zero


def vote(wire: torch.Tensor, m: torch.Tensor, g: torch.Tensor, by: Mixing) -> None:
    """wire <- signs of c, and m, as in `mix`. NotFiniteError where a c is not finite; m is then changed in part."""
    kernels = library(m, g)
    if kernels is None:
        terse_codecs.sign.encode(mix(m, g, by).cpu(), zero=by.zero, out=wire)
        return
    n = m.numel()
    good = kernels.vote(wire.data_ptr(), m.data_ptr(), g.data_ptr(), n, options_of(by))
    if good < n:
        raise terse_codecs.NotFiniteError(f"vote: element {good} of g is not finite.", NOT_FINITE, good)


def mix(m: torch.Tensor, g: torch.Tensor, by: Mixing) -> torch.Tensor:
    """c = b1 m + (1 - b1) g, flat;  m <- b2 m + (1 - b2) g"""
    kernels = library(m, g)
    if kernels is None:
        g = g.to(torch.float32) * by.gradient_scale
        c = (m * by.beta1 + g * (1 - by.beta1)).reshape(-1)
        m.mul_(by.beta2).add_(g * (1 - by.beta2))
        return c
    c = torch.empty(m.numel(), dtype=torch.float32, device="cpu")
    kernels.mix(c.data_ptr(), m.data_ptr(), g.data_ptr(), m.numel(), options_of(by))
    return c


def apply_signs(p: torch.Tensor, signs: torch.Tensor, lr: float, weight_decay: float) -> None:
    """p <- p (1 - lr weight_decay) - lr v, where v is what the signs are of."""
    kernels = library(p)
    if kernels is None:
        apply(p, terse_codecs.sign.decode(signs, p.numel()), lr, weight_decay)
    else:
        kernels.apply_signs(p.data_ptr(), signs.data_ptr(), p.numel(), 1 - lr * weight_decay, -lr)
        if hasattr(torch.autograd.graph, "increment_version"):  # a backward that needs the old values then says so
            torch.autograd.graph.increment_version(p)


def apply(p: torch.Tensor, v: torch.Tensor, lr: float, weight_decay: float) -> None:
    p.mul_(1 - lr * weight_decay).add_(v.view(p.shape).to(p), alpha=-lr)


def options_of(by: Mixing) -> Options:
    return Options(beta1=by.beta1, beta2=by.beta2, zero=int(by.zero == "plus"), gradient_scale=by.gradient_scale)
