import numpy as np
from packing import decode_levels, in_thirds, levels_a_side, pack_fields, scale_groups, short_decimals


def encode(x, parameters, call):
    s = levels_a_side(parameters)
    scales, fields = [], np.full(len(x), s, np.int64)
    for begin, end in scale_groups(len(x), parameters):
        part = x[begin:end].astype(np.float64)
        scale = np.float32(np.abs(part).mean() if end > begin else 0)
        scales.append(scale)
        if scale > 0:
            fields[begin:end] += np.clip(np.rint((part * s) / (2 * np.float64(scale))), -s, s).astype(np.int64)
    head = b"" if parameters.get("unscaled") else np.array(scales, "<f4").tobytes()
    return head + pack_fields(fields, parameters.get("width", parameters["bits"])).tobytes()


def decode(wire, n, parameters):
    return decode_levels(wire, n, parameters, lambda q, scale, s: q * (2 * scale / s))


def cases():
    golden = np.float32([0, 0.01, -0.02, 0.03, -0.5, 1, -0.04, 0.05])
    named = {
        "the golden eight": golden,
        "nothing": [],
        "one": [-0.375],
        "zeros of both signs": [0.0, -0.0] * 5,
        "denormals": np.float32([1e-45, -3e-45, 0, 1e-44]),
        **{f"normal, {n}": short_decimals(n, n) for n in [7, 8, 9, 63, 64, 65, 129]},
        "halfway between levels": [1, -1, 3, -3, 1, -3, 1, -3],
        "all at the mean": [0.1, -0.1] * 10,
    }
    ways = [{"bits": bits} for bits in [2, 3, 5, 8]] + [
        {"bits": 4, "width": 8, "unscaled": True, "ranks": 16},
        {"bits": 3, "width": 16, "unscaled": True, "ranks": 9362},
        {"bits": 5, "block": 16},
        {"bits": 6, "width": 8, "block": 5},
        {"bits": 7, "segments": "thirds"},
        {"bits": 7, "side": 42, "width": 8, "unscaled": True, "ranks": 3},
        {"bits": 5, "side": 11},
    ]
    for name, x in named.items():
        for way in ways:
            # Sums of fp32 have no more than 53 bits where there are few of them, in any order: numpy's mean is exact.
            yield name, x, in_thirds(len(x), way), {}, 0.25 if len(x) > 9 else 0.3
