"""Lion by PyTorch's multi-tensor operations, Chen et al. 2023, Program 1: what a user of PyTorch would write."""

import torch


def lion_step(parameters, lr, beta1=0.9, beta2=0.99, decay=0.1):
    """A function that takes one step by the gradients that the parameters have then."""
    m = [torch.zeros_like(p) for p in parameters]
    scratch = [torch.zeros_like(p) for p in parameters]  # reused: new ones would cost page faults in every step

    @torch.no_grad()
    def step():
        gradients = [p.grad for p in parameters]
        torch._foreach_copy_(scratch, m)
        torch._foreach_lerp_(scratch, gradients, 1 - beta1)
        torch._foreach_sign_(scratch)
        torch._foreach_lerp_(m, gradients, 1 - beta2)
        torch._foreach_mul_(parameters, 1 - lr * decay)
        torch._foreach_add_(parameters, scratch, alpha=-lr)

    return step
