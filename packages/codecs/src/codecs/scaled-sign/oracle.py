import numpy as np
from packing import pack, scale_groups, short_decimals, unpack


def encode(x, parameters, call):
    held = unpack(call["hold"], len(x)) if "hold" in call else np.zeros(len(x), bool)
    scales, plus = [], np.zeros(len(x), bool)
    for begin, end in scale_groups(len(x), parameters):
        spoken = x[begin:end][~held[begin:end]].astype(np.float64)
        scales.append(np.float32(np.sqrt(np.mean(spoken**2))) if len(spoken) else np.float32(0))
        plus[begin:end] = (x[begin:end] >= 0 if call["zero"] == "plus" else x[begin:end] > 0) & (scales[-1] > 0)
    return np.array(scales, "<f4").tobytes() + pack(plus & ~held).tobytes()


def decode(wire, n, parameters):
    parts = scale_groups(n, parameters)
    scales, bits = wire[: 4 * len(parts)].view("<f4"), unpack(wire[4 * len(parts) :], n)
    decoded = np.zeros(n, np.float32)
    for scale, (begin, end) in zip(scales, parts):
        decoded[begin:end] = np.where(bits[begin:end], scale, -scale)
    return decoded


def cases():
    rng = np.random.default_rng(20263)
    denormal, largest = np.float32(1.4e-45), np.finfo(np.float32).max
    named = {
        "a 3-4-5 triangle": ([3, -4, 0, 0], {}),
        "nothing": ([], {}),
        "nothing, in two segments": ([], {"segments": [0, 0]}),
        "zeros, then ones": ([0.0, -0.0] * 5 + [1, 1, -1], {"block": 10}),
        "denormals": ([denormal, -denormal, denormal], {}),
        "so many zeros that the scale is 0": ([denormal] + [0] * 30, {"block": 20}),
        "the largest": ([largest, -largest, largest], {}),
        "an empty segment": (short_decimals(30, 30), {"segments": [7, 0, 22, 1]}),
        **{f"normal, {n}": (short_decimals(n, n), {}) for n in [1, 7, 8, 9, 33, 64, 65, 129]},
        **{f"blocks of {block}": (short_decimals(70, block), {"block": block}) for block in [1, 3, 16, 64, 100]},
    }
    for name, (x, parameters) in named.items():
        for zero, held in [("plus", False), ("minus", False), ("plus", True), ("minus", True)]:
            call = {"zero": zero, "hold": pack(rng.random(len(x)) < 0.3)} if held else {"zero": zero}
            yield name, x, parameters, call, -0.5 if name == "the largest" else -0.3 if "zeros" in name else 0.3
