import numpy as np
from packing import pack, short_decimals, unpack


def encode(x, parameters, call):
    plus = x >= 0 if call["zero"] == "plus" else x > 0
    if "hold" in call:
        plus = plus & ~unpack(call["hold"], len(x))
    return pack(plus).tobytes()


def decode(wire, n, parameters):
    return np.where(unpack(wire, n), np.float32(1), np.float32(-1))


def cases():
    rng = np.random.default_rng(20261)
    tiny, denormal, largest = np.float32(1.17549435e-38), np.float32(1.4e-45), np.finfo(np.float32).max
    named = {
        "one of each": [1, -1, -1, 1, 1, 1, -1, 1],
        "nothing": [],
        "mixed, with both zeros": [0.5, -1, 0, 2, -3, 4, -5, 6, -0.0],
        "zeros": [0.0, -0.0] * 5,
        "denormals and the ends of the range": [denormal, -denormal, tiny, -tiny, largest, -largest, 0, -0.0],
        **{f"normal, {n}": short_decimals(n, n) for n in [1, 7, 8, 9, 31, 33, 63, 64, 65, 70, 129]},
    }
    for name, x in named.items():
        for zero in ["plus", "minus"]:
            for held in [False, True]:
                call = {"zero": zero, "hold": pack(rng.random(len(x)) < 0.3)} if held else {"zero": zero}
                yield name, x, {}, call, rng.choice([1.0, 0.25] if len(x) > 9 else [0.3, 1e-4])
