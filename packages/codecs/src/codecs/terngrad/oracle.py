import numpy as np
from packing import draw_below, philox_words, scale_groups, short_decimals


def scale_of(part, clip):
    largest = np.max(np.abs(part), initial=0)
    deviation = np.std(part) if clip and len(part) else 0
    return np.float32(min(largest, np.float64(np.float32(clip)) * deviation) if deviation > 0 else largest)


def encode(x, parameters, call):
    n, exact = len(x), x.astype(np.float64)
    parts = scale_groups(n, parameters)
    scales = [scale_of(exact[begin:end], parameters.get("clip", 0)) for begin, end in parts]
    chance = np.zeros(n)
    for scale, (begin, end) in zip(scales, parts):
        if scale > 0:
            chance[begin:end] = np.abs(exact[begin:end]) * (1 / np.float64(scale))
    codes = draw_below(chance, call["seed"], call["step"], call.get("index", 0)) * np.sign(exact) + 1
    quarters = np.concatenate([codes, np.zeros(-n % 4)]).reshape(4, -1).astype(np.uint8)
    return (
        np.array(scales, "<f4").tobytes()
        + (quarters * np.array([[1], [4], [16], [64]], np.uint8)).sum(axis=0, dtype=np.uint8).tobytes()
    )


def decode(wire, n, parameters):
    parts = scale_groups(n, parameters)
    scales, packed = wire[: 4 * len(parts)].view("<f4"), wire[4 * len(parts) :]
    codes = np.concatenate([packed >> shift & 3 for shift in [0, 2, 4, 6]])[:n].astype(np.int64)
    return (np.minimum(codes, 2) - 1).astype(np.float32) * np.repeat(scales, [end - begin for begin, end in parts])


def as_likely_as_drawn(n, seed, step):
    """Numbers that their own draw equals, so that one bit decides: drawn is what lies below. A 1 makes the scale."""
    draws = philox_words(n, seed, step) >> np.uint32(1)
    exact = draws % 128 == 0  # 24 bits, as fp32 has
    above = np.nextafter(np.float32(draws / 2**31), np.float32(1))
    x = np.where(exact, np.where(np.cumsum(exact) % 2 == 1, draws / 2**31, above), 0).astype(np.float32)
    assert exact.sum() > 3
    x[-1] = 1
    return x


def cases():
    denormal, largest = np.float32(1.4e-45), np.finfo(np.float32).max
    named = {
        "quarters": ([1, 0, -1, 1, 0, 0, -1, 1], {}),
        "nothing": ([], {}),
        "nothing, in two segments": ([], {"segments": [0, 0]}),
        "zeros, then ones": ([0.0, -0.0] * 5 + [1, 1, -1], {"block": 10}),
        "denormals": ([denormal, -denormal, 3 * denormal, 0], {}),
        "the largest and the smallest": ([largest, -largest, 1, denormal, largest / 2], {}),
        "an empty segment": (short_decimals(30, 30), {"segments": [7, 0, 22, 1]}),
        "clipped at one and a half deviations": (short_decimals(70, 3), {"clip": 1.5}),
        "clipped, in blocks": (short_decimals(70, 4) + np.float32(1), {"clip": 2.5, "block": 32}),
        "all equal, so not clipped": ([0.5] * 9, {"clip": 2.5}),
        **{f"normal, {n}": (short_decimals(n, n), {}) for n in [1, 7, 8, 9, 33, 64, 65, 129, 300]},
        **{f"blocks of {block}": (short_decimals(70, block), {"block": block}) for block in [1, 3, 16, 64, 100]},
    }
    for i, (name, (x, parameters)) in enumerate(named.items()):
        call = {"seed": 2**45 + i, "step": 2**33 + 7 * i, "index": 64 * (i % 3)}
        yield name, x, parameters, call, -0.5 if "largest" in name else -0.3 if "zeros" in name else 0.3
    yield "draws that equal the odds", as_likely_as_drawn(512, 7, 9), {}, {"seed": 7, "step": 9}, 0.3
