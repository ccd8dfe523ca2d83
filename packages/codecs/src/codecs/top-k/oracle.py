import numpy as np
from packing import pack_fields, short_decimals, unpack_fields


def width_of(n):
    return int(n - 1).bit_length()


def encode(x, parameters, call):
    kept = np.sort(np.argsort(-np.abs(x), kind="stable")[: parameters["k"]])
    return pack_fields(kept, width_of(len(x))).tobytes() + x[kept].astype("<f4").tobytes()


def decode(wire, n, parameters):
    k, width = parameters["k"], width_of(n)
    indices, values = np.split(wire, [(k * width + 7) // 8])
    decoded = np.full(n, np.nan, np.float32)  # not on the wire
    decoded[unpack_fields(indices, k, width)] = values.view("<f4")
    return decoded


def cases():
    rng = np.random.default_rng(20263)
    largest = np.finfo(np.float32).max
    named = {
        "one": [[-3.5], [1]],
        "two": [[0.25, -0.5], [1, 2]],
        "ties": [[1, -2, 2, -1, 2, 1, -2, 0], [1, 2, 3, 5, 8]],
        "zeros of both signs": [[-0.0, 0.0] * 4, [1, 5]],
        "zeros among a few": [[0, 0, -7, 0, -0.0, 0.5, 0], [4]],
        "denormals and the ends of the range": [[1e-45, -largest, 1.17549435e-38, largest, -1.4e-45], [1, 3, 5]],
        # The width of an index changes behind a power of two.
        **{f"normal, {n}": [short_decimals(n, n), [1, max(n // 5, 1)]] for n in [3, 8, 9, 64, 65, 255, 256, 257]},
    }
    for name, (x, ks) in named.items():
        for k in ks:
            yield name, x, {"k": k}, {}, -0.25 if "range" in name else rng.choice([1.0, 0.3])
