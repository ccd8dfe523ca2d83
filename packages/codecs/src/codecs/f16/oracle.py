"""f16 is numpy's own float16."""

import numpy as np
from packing import short_decimals


def encode(x, parameters, call):
    return x.astype("<f2").tobytes()


def decode(wire, n, parameters):
    return wire.view("<f2").astype(np.float32)


def cases():
    named = {
        "nothing": [],
        "ties, to even": [
            1 + 2**-11,
            1 + 3 * 2**-11,
            -(1 + 2**-11),
            -(1 + 3 * 2**-11),
            1 + 2**-11 + 2**-20,
            2049,
            2051,
        ],
        "zeros and the ends of the range": [0.0, -0.0, 65504, -65504, 65519.99609375, 2.0**-14, -(2.0**-14)],
        "denormals": [
            2.0**-24,
            -(2.0**-24),
            2.0**-25,
            3 * 2.0**-25,
            2.0**-25 + 2.0**-40,
            2.0**-14 - 2.0**-26,
            2.0**-149,
        ],
        **{f"normal, {n}": short_decimals(n, n) * np.float32(1.37) for n in [1, 7, 64, 65, 129]},
    }
    for name, x in named.items():
        yield name, x, {}, {}, -0.5 if "ends" in name else 0.3
