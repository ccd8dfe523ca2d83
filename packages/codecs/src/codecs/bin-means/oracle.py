import numpy as np
from packing import in_thirds, means_of_bins, pack_fields, scale_groups, short_decimals, total, unpack_fields


def table_of(part, m):
    rms = np.sqrt(total(part**2) / len(part)) if len(part) else 0
    if rms == 0:
        return np.zeros(m, np.float32)
    step = 6 * rms / m
    bins = np.clip(np.floor(part * (m / (6 * rms)) + m / 2), 0, m - 1)
    largest = np.float64(np.finfo(np.float32).max)
    middles = np.clip((np.arange(m) + 0.5) * step - 3 * rms, -largest, largest)
    return np.array(means_of_bins(part, bins, middles)).astype(np.float32)


def encode(x, parameters, call):
    m = 2 ** parameters["bits"]
    tables, nearest = [], np.zeros(len(x), np.int64)
    for begin, end in scale_groups(len(x), parameters):
        part = x[begin:end].astype(np.float64)
        table = table_of(part, m).astype(np.float64)
        tables.append(table)
        nearest[begin:end] = np.searchsorted((table[:-1] + table[1:]) / 2, part)  # the lower of two equally near ones
    return np.array(tables, "<f4").tobytes() + pack_fields(nearest, parameters["bits"]).tobytes()


def decode(wire, n, parameters):
    m, parts = 2 ** parameters["bits"], scale_groups(n, parameters)
    split = 4 * m * len(parts)
    tables, q = wire[:split].view("<f4").reshape(len(parts), m), unpack_fields(wire[split:], n, parameters["bits"])
    values = np.zeros(n, np.float32)
    for (begin, end), table in zip(parts, tables):
        values[begin:end] = table[q[begin:end]]
    return values


def cases():
    largest = np.finfo(np.float32).max
    named = {
        "nothing": [],
        "one": [-0.375],
        "zeros of both signs": [0.0, -0.0] * 5,
        "all the same": [0.1] * 9,
        "denormals": np.float32([1e-45, -3e-45, 0, 1e-44]),
        "the largest": [largest, -largest, 0, 1, largest / 2],
        "all the largest": [largest, -largest] * 4,
        "halfway between two entries": [-4, -4, 4, 4, 0, 0, 2, -2, 0, 0],
        "one far outlier": [*short_decimals(60, 1) / 64, 1000.0],
        "at the borders of bins": [3, -3, 1.5, -1.5, 0, 0.75, -0.75, 0.375] * 2,
        **{f"normal, {n}": short_decimals(n, n, 0.1) for n in [7, 8, 9, 63, 64, 65, 129, 300]},
    }
    ways = [{"bits": bits} for bits in [2, 3, 4]] + [
        {"bits": 4, "block": 16},
        {"bits": 2, "block": 5},
        {"bits": 3, "segments": "thirds"},
    ]
    for name, x in named.items():
        for way in ways:
            yield name, x, in_thirds(len(x), way), {}, -0.25 if "largest" in name else 0.3
