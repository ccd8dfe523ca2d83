import numpy as np
from packing import scale_groups, short_decimals


def encode(x, parameters, call):
    scales, levels = [], np.zeros(len(x), np.int8)
    for begin, end in scale_groups(len(x), parameters):
        part = x[begin:end].astype(np.float64)
        scales.append(np.max(np.abs(part), initial=0))
        if scales[-1] > 0:
            levels[begin:end] = np.rint(part * (127 / scales[-1]))
    return np.array(scales, "<f4").tobytes() + levels.tobytes()


def decode(wire, n, parameters):
    parts = scale_groups(n, parameters)
    scales, levels = wire[: 4 * len(parts)].view("<f4").astype(np.float64), wire[4 * len(parts) :].view(np.int8)
    steps = np.repeat(scales / 127, [end - begin for begin, end in parts])
    return (levels * steps).astype(np.float32)


def cases():
    denormal, largest = np.float32(1.4e-45), np.finfo(np.float32).max
    named = {
        "every level": (np.arange(-127, 128), {}),
        "ties, to even": ([127, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5], {}),
        "nothing": ([], {}),
        "nothing, in two segments": ([], {"segments": [0, 0]}),
        "zeros, then ones": ([0.0, -0.0] * 5 + [1, 1, -1], {"block": 10}),
        "denormals": ([denormal, -denormal, 3 * denormal, 0], {}),
        "the largest and the smallest": ([largest, -largest, 1, denormal, largest / 2], {}),
        "an empty segment": (short_decimals(30, 30), {"segments": [7, 0, 22, 1]}),
        **{f"normal, {n}": (short_decimals(n, n), {}) for n in [1, 7, 8, 9, 33, 64, 65, 129]},
        **{f"blocks of {block}": (short_decimals(70, block), {"block": block}) for block in [1, 3, 16, 64, 100]},
    }
    for name, (x, parameters) in named.items():
        yield name, x, parameters, {}, -0.5 if "largest" in name else -0.3 if "zeros" in name else 0.3
