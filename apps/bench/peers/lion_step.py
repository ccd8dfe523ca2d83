"""Lion by PyTorch's multi-tensor operations, Chen et al. 2023, Program 1: what a user of PyTorch would write."""

import torch


def lion_step(parameters, gradients, lr):
    """A function that takes one step with β₁ 0.9, β₂ 0.99 and λ 0.1."""
    m = [torch.zeros_like(p) for p in parameters]
    scratch = [torch.zeros_like(p) for p in parameters]

    def step():
        torch._foreach_copy_(scratch, m)
        torch._foreach_lerp_(scratch, gradients, 0.1)
        torch._foreach_sign_(scratch)
        torch._foreach_lerp_(m, gradients, 0.01)
        torch._foreach_mul_(parameters, 1 - lr * 0.1)
        torch._foreach_add_(parameters, scratch, alpha=-lr)

    return step
