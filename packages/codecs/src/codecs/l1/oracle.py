import numpy as np
from packing import pack_fields, scale_groups, short_decimals, unpack_fields


def levels_a_side(parameters):
    return parameters.get("side", 2 ** (parameters["bits"] - 1) - 1)


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
    s, width = levels_a_side(parameters), parameters.get("width", parameters["bits"])
    if parameters.get("unscaled"):
        return (unpack_fields(wire, n, width) - parameters.get("ranks", 1) * s).astype(np.float32)
    parts = scale_groups(n, parameters)
    scales = np.frombuffer(wire[: 4 * len(parts)].tobytes(), "<f4").astype(np.float64)
    q = np.minimum(unpack_fields(wire[4 * len(parts) :], n, width), 2 * s) - s
    values = np.zeros(n, np.float32)
    for (begin, end), scale in zip(parts, scales):
        values[begin:end] = (q[begin:end] * (2 * scale / s)).astype(np.float32)
    return values


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
            n = len(x)
            parameters = {**way, "segments": [n // 3, 0, n - n // 3]} if "segments" in way else way
            # Sums of fp32 have no more than 53 bits where there are few of them, in any order: numpy's mean is exact.
            yield name, x, parameters, {}, 0.25 if n > 9 else 0.3
