# Reference of parity.test.ts: 100 steps of each optimizer as its paper prints it, on gradients that are given.
#
#   inputs["G"]       (steps, ranks, n)   float32: the ranks' own gradients
#   inputs["start"]   (n)                 float32
#   outputs[name]     (n)                 the parameters after the last step
#
# The n elements are those of two layers, one after the other. SGD and AdamW are torch's own, in float32; the formulas
# are in float64. Options are those of parity.test.ts. Names: θ parameters, g a rank's gradient, η learning rate, λ
# weight decay.
layers, shapes = [120, 10], [(12, 10), (10,)]
η, λ = 0.01, 0.1
G, start = inputs["G"].double(), inputs["start"].double()
steps, ranks, n = G.shape
everyone = range(ranks)


def by_layer(x):
    return x.split(layers)


# Signs. With `alternate` an exact 0 is + in even steps and − in odd ones. No gradient is 0 here, but a vote of two
# ranks can be.
def alternating(x, t):
    return torch.where(x == 0, 1.0 if t % 2 == 0 else -1.0, x.sign())


# The owner of a chunk: rank r owns units ⌊r u / P⌋ to ⌊(r + 1) u / P⌋ of 8 elements.
def chunks(length):
    units = (length + 7) // 8
    starts = [min(length, 8 * (r * units // ranks)) for r in range(ranks + 1)]
    return [slice(a, b) for a, b in zip(starts, starts[1:]) if a < b]


def one_magnitude(c):
    return c.norm() / c.numel() ** 0.5 * torch.where(c >= 0, 1.0, -1.0)


class CompensatedMean:
    """
    Tang et al. 2021, Algorithm 1: a rank sends one bit an element and one scale a layer; the owner of a chunk one scale
    for it. fused: one scale for all layers. The owners' chunks are then those of the arena, where 8 pads follow the
    first layer and 54 the second; pads are not sent.
    """

    def __init__(self, fused=False):
        self.fused = fused
        self.worker = [torch.zeros(n, dtype=torch.float64) for _ in everyone]
        self.server = torch.zeros(n, dtype=torch.float64)

    def __call__(self, xs):
        sent = []
        for r, x in enumerate(xs):
            e = self.worker[r] + x
            a = one_magnitude(e) if self.fused else torch.cat([one_magnitude(c) for c in by_layer(e)])
            self.worker[r] = e - a
            sent.append(a)
        e = self.server + sum(sent) / ranks
        b = torch.zeros_like(e)
        if self.fused:
            for chunk in (slice(0, 96), slice(96, 130)):
                b[chunk] = one_magnitude(e[chunk])
        else:
            for of, error in zip(by_layer(b), by_layer(e)):
                for chunk in chunks(of.numel()):
                    of[chunk] = one_magnitude(error[chunk])
        self.server = e - b
        return b


def zeros():
    return torch.zeros(n, dtype=torch.float64)


def of_torch(create):
    θ = nn.Parameter(inputs["start"].clone())
    optimizer = create([θ])
    for g in inputs["G"]:
        θ.grad = g.mean(0)
        optimizer.step()
    return θ


def lion(update, β1=0.9, β2=0.99):
    """update(c of all ranks, t): what θ moves by; each rank has its own momentum."""
    θ, m = start.clone(), [zeros() for _ in everyone]
    for t in range(steps):
        c = [β1 * m[r] + (1 - β1) * G[t, r] for r in everyone]
        m = [β2 * m[r] + (1 - β2) * G[t, r] for r in everyone]
        θ -= η * (update(c, t) + λ * θ)
    return θ


def levels(c, s):
    def q(x):
        return (x * s / (2 * x.abs().mean())).clamp(-s, s).round()  # halves to the even level

    return sum(torch.cat([q(x) for x in by_layer(own)]) for own in c).sign()


def lamb_ratio(θ, u):
    return (θ.norm() / u.norm()).clamp(0.01, 0.3)


def lamb(β1=0.9, β2=0.999, ε=1e-6):
    θ, m, v = start.clone(), zeros(), zeros()
    for t in range(steps):
        g = G[t].mean(0)
        m, v = β1 * m + (1 - β1) * g, β2 * v + (1 - β2) * g * g
        for x, u in zip(by_layer(θ), by_layer(m / (v.sqrt() + ε) + λ * θ)):
            x -= η * lamb_ratio(x, u) * u
    return θ


def scaled(mean, m):
    """Li et al. 2021, Appendix A.5.2: after the warm-up, layers are brought to the mean of their sizes, √mean m²."""
    sizes = [x.norm() / x.numel() ** 0.5 for x in by_layer(m)]
    factors = torch.cat([(sum(sizes) / len(sizes) / size).expand(l) for size, l in zip(sizes, layers)])
    return lambda xs: mean([x * factors for x in xs]) / factors


def one_bit_adam(fused=False, scales=False, warmup=30, β1=0.9, β2=0.999, ε=1e-8):
    θ, m, v, mean = start.clone(), zeros(), zeros(), CompensatedMean(fused)
    for t in range(steps):
        if t < warmup:
            g = G[t].mean(0)
            m, v = β1 * m + (1 - β1) * g, β2 * v + (1 - β2) * g * g
        else:
            if t == warmup and scales:
                mean = scaled(mean, m)
            m = mean([β1 * m + (1 - β1) * G[t, r] for r in everyone])
        θ -= η * (m / (v.sqrt() + ε) + λ * θ)
    return θ


def one_bit_lamb(follows, fused=False, scales=False, warmup=30, β1=0.9, β2=0.999, β3=0.9, ε=1e-6):
    """Li et al. 2021, Algorithm 1; follows: whether r follows the variance."""
    θ, m, v, mean = start.clone(), zeros(), zeros(), CompensatedMean(fused)
    a, r = [0.0, 0.0], [1.0, 1.0]
    for t in range(steps):
        if t < warmup:
            g = G[t].mean(0)
            m, v = β1 * m + (1 - β1) * g, β2 * v + (1 - β2) * g * g
            frozen = v
            for l, (x, u) in enumerate(zip(by_layer(θ), by_layer(m / (v.sqrt() + ε) + λ * θ))):
                c = lamb_ratio(x, u)
                a[l] = β3 * a[l] + (1 - β3) * c
                x -= η * c * u
            continue
        if t == warmup and scales:
            mean = scaled(mean, m)
        last = m
        m = mean([β1 * last + (1 - β1) * G[t, r_] for r_ in everyone])
        g = (m - β1 * last) / (1 - β1)
        v = β2 * v + (1 - β2) * g * g
        update = m / (frozen.sqrt() + ε) + λ * θ
        for l, (x, u, w, fresh) in enumerate(zip(*map(by_layer, (θ, update, frozen, v)))):
            if follows:
                change = (w / fresh).max().clamp(0.9 * r[l], 1.1 * r[l])
                r[l] = change.clamp(0.5, 4)
            x -= η * r[l] * a[l] * u
    return θ


def zero_one_adam(refreshes, freeze, synchronises, β1=0.9, β2=0.999, ε=1e-8):
    """Lu et al. 2022, Algorithm 1, with the exact mean of the momentum where the mean of the gradient is there."""
    shared, v, mean = start.clone(), zeros(), CompensatedMean()
    m, u, rates = [zeros() for _ in everyone], [zeros() for _ in everyone], 0.0
    for t in range(steps):
        if t < freeze and t in refreshes:
            g = G[t].mean(0)
            v = β2 * v + (1 - β2) * g * g
            m = [β1 * own + (1 - β1) * g for own in m]
            shared -= η * (m[0] / (v.sqrt() + ε) + λ * shared)
            continue
        m = [β1 * m[r] + (1 - β1) * G[t, r] for r in everyone]
        u = [u[r] + η * m[r] for r in everyone]
        rates += η
        shared -= η * λ * shared
        if not synchronises(t):
            continue
        average = mean(u)
        shared -= average / (v.sqrt() + ε)
        m, u, rates = [average / rates for _ in everyone], [zeros() for _ in everyone], 0.0
    return shared


def cosines(L):
    k, i = torch.arange(L, dtype=torch.float64)[:, None], torch.arange(L, dtype=torch.float64)[None, :]
    rows = (2 / L) ** 0.5 * torch.cos(torch.pi * k * (2 * i + 1) / (2 * L))
    rows[0] /= 2**0.5
    return rows  # orthonormal


def demo(β=0.999, chunk=4, k=3):
    """Peng et al. 2024, Algorithm 1: chunks are 4 × 4 where 4 divides both sides, else 16; 4 elements of a vector."""
    θ, m = start.clone(), [zeros() for _ in everyone]
    for t in range(steps):
        m = [β * m[r] + G[t, r] for r in everyone]
        Q = zeros()
        at = 0
        for length, shape in zip(layers, shapes):
            run = chunk if len(shape) == 1 else chunk**2
            for begin in range(at, at + length, run):
                part = slice(begin, min(at + length, begin + run))
                D = cosines(part.stop - part.start)
                for own in m:
                    X = D @ own[part]
                    kept = torch.zeros_like(X)
                    top = X.abs().topk(min(k, X.numel())).indices
                    kept[top] = X[top]
                    own[part] -= D.T @ kept
                    Q[part] += D.T @ kept / ranks
            at += length
        θ -= η * (Q.sign() + λ * θ)
    return θ


SGD, AdamW = torch.optim.SGD, torch.optim.AdamW
outputs["sgd"] = of_torch(lambda θ: SGD(θ, lr=η, momentum=0.9, dampening=0.1, weight_decay=λ))
outputs["sgd, nesterov"] = of_torch(lambda θ: SGD(θ, lr=η, momentum=0.9, nesterov=True, weight_decay=λ))
outputs["adamw"] = of_torch(lambda θ: AdamW(θ, lr=η, weight_decay=λ))
outputs["lion"] = lion(lambda c, t: (sum(c) / ranks).sign())
outputs["signum"] = lion(lambda c, t: alternating(sum(x.sign() for x in c), t), 0.9, 0.9)
outputs["signsgd"] = lion(lambda c, t: alternating(sum(x.sign() for x in c), t), 0.0, 0.0)
outputs["distributed-lion"] = lion(lambda c, t: sum(x.sign() for x in c).sign())
outputs["distributed-lion, average"] = lion(lambda c, t: sum(x.sign() for x in c) / ranks)
outputs["lion-cub"] = lion(lambda c, t: alternating(sum(x.sign() for x in c), t))
outputs["lion-cub, 5 bits"] = lion(lambda c, t: levels(c, 15))
outputs["lamb"] = lamb()
outputs["one-bit-adam"] = one_bit_adam()
outputs["one-bit-adam, fused"] = one_bit_adam(fused=True)
outputs["one-bit-adam, momentum-scaled"] = one_bit_adam(fused=True, scales=True)
outputs["one-bit-lamb"] = one_bit_lamb(follows=True)
outputs["one-bit-lamb, momentum-scaled"] = one_bit_lamb(follows=True, fused=True, scales=True)
outputs["lamb-basic-one-bit"] = one_bit_lamb(follows=False)
outputs["zero-one-adam"] = zero_one_adam(
    # κ = 8: the intervals are 1 eight times, 2 eight times, 4 from step 24 on
    refreshes=[*range(8), *range(8, 24, 2), *range(24, 56, 4)],
    freeze=40,
    # every step to 59, every 2nd to 79, then every 4th
    synchronises=lambda t: t < 60 or (t - 39) % (2 if t < 80 else 4) == 0,
)
outputs["demo"] = demo()
