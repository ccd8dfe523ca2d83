import numpy as np
from packing import decode_levels, draw_below, in_thirds, levels_a_side, pack_fields, scale_groups, short_decimals


def magnitudes(x, scale, s, kind):
    """For each |x|: the level below it, and how far it is on the way to the one above."""
    if kind != "logarithmic":
        v = np.minimum(np.abs(x) * (s / scale), s)
        return np.floor(v), v - np.floor(v)
    stands_for = np.concatenate([[0.0], 2.0 ** np.arange(1 - s, 1), [2.0]])
    v = np.minimum(np.abs(x) * (1 / scale), 1)
    k = np.searchsorted(stands_for[:-1], v, side="right") - 1
    return k.astype(np.float64), (v - stands_for[k]) / (stands_for[k + 1] - stands_for[k])


def encode(x, parameters, call):
    s, kind = levels_a_side(parameters), parameters.get("levels", "uniform")
    scales, below, p = [], np.zeros(len(x)), np.zeros(len(x))
    for begin, end in scale_groups(len(x), parameters):
        part = x[begin:end].astype(np.float64)
        scale = np.abs(part).max(initial=0)
        scales.append(scale)
        if scale > 0:
            below[begin:end], p[begin:end] = magnitudes(part, scale, s, kind)
    magnitude = below + draw_below(p, call["seed"], call["step"], call.get("index", 0))
    if kind == "without-zero":
        magnitude = np.where((magnitude == 0) & (x != 0), 1, magnitude)
    fields = (np.where(x < 0, -magnitude, magnitude) + s).astype(np.int64)
    head = b"" if parameters.get("unscaled") else np.array(scales, "<f4").tobytes()
    return head + pack_fields(fields, parameters.get("width", parameters["bits"])).tobytes()


def decode(wire, n, parameters):
    def value_of(q, scale, s):
        if parameters.get("levels") == "logarithmic":
            return np.where(q == 0, 0, np.sign(q) * scale * 2.0 ** (np.abs(q) - s))
        return q * (scale / s)

    return decode_levels(wire, n, parameters, value_of)


def cases():
    named = {
        "nothing": [],
        "one": [-0.375],
        "zeros of both signs": [0.0, -0.0] * 5,
        "denormals": np.float32([1e-45, -3e-45, 0, 1e-44]),
        "large and small": np.float32([2e38, -2e38, 1, 0, -1e-45, 1e38]),
        **{f"normal, {n}": short_decimals(n, n) for n in [7, 9, 63, 64, 65, 129]},
    }
    ways = [
        {"bits": 2},
        {"bits": 5},
        {"bits": 8, "levels": "uniform"},
        {"bits": 3, "levels": "without-zero"},
        {"bits": 4, "levels": "logarithmic"},
        {"bits": 8, "levels": "logarithmic", "block": 50},
        {"bits": 4, "width": 8, "unscaled": True, "ranks": 16},
        {"bits": 6, "width": 8, "block": 5},
        {"bits": 7, "segments": "thirds"},
    ]
    for i, (name, x) in enumerate(named.items()):
        for way in ways:
            call = {"seed": 2**40 + i, "step": 2**33 + 7 * i, "index": 64 * (2**34 + i)}
            yield name, x, in_thirds(len(x), way), call, 0.25 if len(x) > 9 else 0.3
