import numpy as np
from packing import pack_fields, short_decimals, unpack_fields


def shape(parameters):
    bits = parameters.get("bits", 1)
    return bits, parameters.get("width", bits), parameters.get("ranks", 1), 2 ** (bits - 1) - 1


def encode(x, parameters, call):
    bits, width, _, s = shape(parameters)
    if bits == 1:
        return pack_fields(x >= 0 if call["zero"] == "plus" else x > 0, width).tobytes()
    return pack_fields(x.astype(np.int64) + s, width).tobytes()


def decode(wire, n, parameters):
    bits, width, ranks, s = shape(parameters)
    c = unpack_fields(wire, n, width)
    return (2 * c - ranks if bits == 1 else c - ranks * s).astype(np.float32)


def cases():
    lengths = [0, 1, 7, 8, 9, 63, 64, 65, 129]
    for width, ranks in [(2, 3), (4, 15), (8, 255), (16, 1000)]:
        for zero in ["plus", "minus"]:
            for n in lengths:
                yield f"signs, {n}", short_decimals(n, n), {"width": width, "ranks": ranks}, {"zero": zero}, 0.25
    for bits, width, ranks in [(2, 2, 1), (3, 4, 2), (4, 8, 17), (5, 8, 8), (8, 16, 257)]:
        s = 2 ** (bits - 1) - 1
        for n in lengths:
            x = np.random.default_rng(n + bits).integers(-s, s, n, endpoint=True).astype(np.float32)
            yield (
                f"whole numbers, {n}",
                np.where((x == 0) & (np.arange(n) % 2 == 0), np.float32(-0.0), x),
                {"bits": bits, "width": width, "ranks": ranks},
                {"zero": "plus"},
                0.5,
            )
