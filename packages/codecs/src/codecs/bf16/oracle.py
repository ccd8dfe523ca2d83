"""bf16 by value, without bits of fp32: the nearest of the numbers that are exact in float64, ties to the even one."""

import numpy as np
from packing import short_decimals

FRACTION, LEAST = 7, -126


def encode(x, parameters, call):
    exact = np.abs(x.astype(np.float64))
    exponent = np.maximum(np.frexp(exact)[1] - 1, LEAST)
    steps = np.rint(np.ldexp(exact, FRACTION - exponent)).astype(np.int64)
    half = np.where(exact == 0, 0, (exponent - LEAST) * 2**FRACTION + steps) | np.signbit(x).astype(np.int64) << 15
    return half.astype("<u2").tobytes()


def decode(wire, n, parameters):
    # The halves of fp32, so fp32 reads them.
    return np.frombuffer(np.stack([np.zeros(n, "<u2"), wire.view("<u2")], axis=1).tobytes(), "<f4").astype(np.float32)


def cases():
    largest = 255 * 2.0**120  # of bf16
    named = {
        "nothing": [],
        "ties, to even": [
            1 + 1 / 256,
            1 + 3 / 256,
            -(1 + 1 / 256),
            -(1 + 3 / 256),
            1 + 1 / 256 + 2**-20,
            1 + 3 / 256 - 2**-20,
        ],
        "zeros and the ends of the range": [
            0.0,
            -0.0,
            largest,
            -largest,
            (2 - 2**-8 - 2**-23) * 2.0**127,
            2.0**-126,
            -(2.0**-126),
        ],
        "denormals": [2.0**-133, -(2.0**-133), 2.0**-134, 3 * 2.0**-134, 2.0**-149, 2.0**-126 - 2.0**-149],
        **{f"normal, {n}": short_decimals(n, n) * np.float32(1.37) for n in [1, 7, 64, 65, 129]},
    }
    for name, x in named.items():
        yield name, x, {}, {}, -0.5 if "ends" in name else 0.3
