import numpy as np
from packing import decode_levels, draw_below, in_thirds, levels_a_side, pack_fields, scale_groups, short_decimals


def encode(x, parameters, call):
    s = levels_a_side(parameters)
    scales, v = [], np.zeros(len(x))
    for begin, end in scale_groups(len(x), parameters):
        part = x[begin:end].astype(np.float64)
        scale = np.float32(np.sqrt((part * part).sum()))
        scales.append(scale)
        if scale > 0:
            v[begin:end] = np.minimum(np.abs(part) * (s / np.float64(scale)), s)
    magnitude = np.floor(v) + draw_below(v - np.floor(v), call["seed"], call["step"], call.get("index", 0))
    fields = (np.where(x < 0, -magnitude, magnitude) + s).astype(np.int64)
    return np.array(scales, "<f4").tobytes() + pack_fields(fields, parameters["bits"]).tobytes()


def decode(wire, n, parameters):
    return decode_levels(wire, n, parameters, lambda q, scale, s: q * (scale / s))


def cases():
    named = {
        "nothing": [],
        "one": [-0.375],
        "zeros of both signs": [0.0, -0.0] * 5,
        "denormals": np.float32([1e-45, -3e-45, 0, 1e-44]),
        "large": np.float32([1e38, -2e38, 1, 0, -1e-45]),
        **{f"normal, {n}": short_decimals(n, n) for n in [7, 8, 9, 63, 64, 65, 129]},
    }
    ways = [{"bits": bits} for bits in [2, 3, 4, 8]] + [
        {"bits": 5, "block": 64},
        {"bits": 6, "block": 5},
        {"bits": 7, "segments": "thirds"},
    ]
    for i, (name, x) in enumerate(named.items()):
        for way in ways:
            call = {"seed": 2**45 + i, "step": 2**32 + i, "index": 64 * i}
            yield name, x, in_thirds(len(x), way), call, 0.25 if len(x) > 9 else 0.3
