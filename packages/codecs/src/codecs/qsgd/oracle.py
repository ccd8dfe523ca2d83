import numpy as np
from packing import draw_below, pack_fields, scale_groups, short_decimals, unpack_fields


def encode(x, parameters, call):
    s = 2 ** (parameters["bits"] - 1) - 1
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
    s = 2 ** (parameters["bits"] - 1) - 1
    parts = scale_groups(n, parameters)
    scales = np.frombuffer(wire[: 4 * len(parts)].tobytes(), "<f4").astype(np.float64)
    q = np.minimum(unpack_fields(wire[4 * len(parts) :], n, parameters["bits"]), 2 * s) - s
    values = np.zeros(n, np.float32)
    for (begin, end), scale in zip(parts, scales):
        values[begin:end] = (q[begin:end] * (scale / s)).astype(np.float32)
    return values


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
            n = len(x)
            parameters = {**way, "segments": [n // 3, 0, n - n // 3]} if "segments" in way else way
            call = {"seed": 2**45 + i, "step": 2**32 + i, "index": 64 * i}
            yield name, x, parameters, call, 0.25 if n > 9 else 0.3
