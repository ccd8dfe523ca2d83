"""Steps of optimizers in PyTorch, eager, over N square matrices, on one thread.

Arguments: NAME N SIDE RANK. Reads "step" and answers with its seconds as JSON. lion and lamb are multi-tensor
operations with scratch tensors that are kept; sgd, adamw (fused) and muon are torch.optim's. dion is the algebra of
Algorithm 1 on one rank; powersgd what PyTorch's hook computes between its messages (rank 4, error feedback, warm
start), and SGD's update.
"""

import json
import sys
import time

import torch
from lion_step import lion_step

name, count, side, rank = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(1)
torch.manual_seed(0)
parameters = [torch.randn(side, side).mul_(0.02).requires_grad_() for _ in range(count)]
gradients = [torch.randn(side, side).mul_(0.01) for _ in range(count)]
for p, g in zip(parameters, gradients):
    p.grad = g
zeros = lambda: [torch.zeros(side, side) for _ in range(count)]
lr = 1e-4


def lamb():
    m, v, update, root = zeros(), zeros(), zeros(), zeros()

    def step():
        torch._foreach_lerp_(m, gradients, 0.1)
        torch._foreach_mul_(v, 0.999)
        torch._foreach_addcmul_(v, gradients, gradients, 0.001)
        torch._foreach_copy_(root, v)
        torch._foreach_sqrt_(root)
        torch._foreach_add_(root, 1e-6)
        torch._foreach_copy_(update, m)
        torch._foreach_div_(update, root)
        torch._foreach_add_(update, parameters, alpha=0.01)
        weights, updates = torch._foreach_norm(parameters), torch._foreach_norm(update)
        ratios = [float((w / u).clamp(0.01, 0.3)) for w, u in zip(weights, updates)]
        torch._foreach_mul_(update, [lr * ratio for ratio in ratios])
        torch._foreach_sub_(parameters, update)

    return step


def dion():
    M, Q = zeros(), [torch.randn(side, rank) for _ in range(count)]

    def step():
        for X, G, B, basis in zip(parameters, gradients, M, Q):
            B.add_(G)
            P, _ = torch.linalg.qr(B @ basis)
            R = B.T @ P
            B.addmm_(P, R.T, alpha=-0.05)
            basis.copy_(R / (R.norm(dim=0, keepdim=True) + 1e-8))
            X.mul_(1 - lr * 0.01)
            X.addmm_(P, basis.T, alpha=-lr)

    return step


def powersgd():
    error = zeros()
    Q = [torch.randn(side, 4) for _ in range(count)]

    def orthogonalize(matrix):
        for i in range(matrix.shape[1]):  # Gram–Schmidt, as the hook
            column = matrix[:, i : i + 1]
            column /= torch.norm(column)
            rest = matrix[:, i + 1 :]
            rest -= torch.sum(column * rest, dim=0) * column

    def step():
        for X, G, e, basis in zip(parameters, gradients, error, Q):
            e.add_(G)  # the gradient with the error, and its copy
            whole = e.clone()
            orthogonalize(basis)
            P = e @ basis
            orthogonalize(P)
            torch.matmul(e.T, P, out=basis)
            mean = P @ basis.T
            torch.sub(whole, mean, out=e)
            X.add_(mean, alpha=-lr)

    return step


def torch_optim(create):
    optimizer = create()
    return optimizer.step


work = {
    "sgd": lambda: torch_optim(lambda: torch.optim.SGD(parameters, lr=lr, momentum=0.9, fused=True)),
    "adamw": lambda: torch_optim(lambda: torch.optim.AdamW(parameters, lr=lr, fused=True)),
    "muon": lambda: torch_optim(lambda: torch.optim.Muon(parameters, lr=lr)),
    "lion": lambda: lion_step(parameters, lr),
    "lamb": lamb,
    "dion": dion,
    "powersgd": powersgd,
}[name]()

print(json.dumps({"torch": torch.__version__}), flush=True)
with torch.no_grad():
    for line in sys.stdin:
        begin = time.perf_counter()
        work()
        print(json.dumps({"seconds": time.perf_counter() - begin}), flush=True)
