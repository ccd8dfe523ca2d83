import numpy as np
from packing import pack, short_decimals, unpack


def encode(x, parameters, call):
    return pack(x > 0).tobytes() + pack(x != 0).tobytes()


def decode(wire, n, parameters):
    plus, nonzero = np.split(wire, 2)
    return (unpack(nonzero, n) * np.where(unpack(plus, n), 1, -1)).astype(np.float32)


def cases():
    rng = np.random.default_rng(20262)
    tiny, denormal, largest = np.float32(1.17549435e-38), np.float32(1.4e-45), np.finfo(np.float32).max
    named = {
        "one of each": [1, -1, 0, 1, -0.0, 1, -1, 1],
        "nothing": [],
        "zeros": [0.0, -0.0] * 5,
        "denormals and the ends of the range": [denormal, -denormal, tiny, -tiny, largest, -largest, 0, -0.0],
        **{f"normal, {n}": short_decimals(n, n) for n in [1, 7, 8, 9, 31, 33, 63, 64, 65, 70, 129]},
    }
    for name, x in named.items():
        for scale in [0.25, -0.3]:
            yield name, x, {}, {}, scale
