import numpy as np
from packing import means_of_bins, pack, pack_fields, short_decimals, total, unpack, unpack_fields


def width_of(n):
    return int(n - 1).bit_length()


def is_bitmap(k, n):
    """Whether n bits, one for each element, are fewer than Elias and Fano's."""
    low = int(np.floor(np.log2(n / k)))
    return n < k * low + k + n // 2**low


def write_indices(kept, n, coding):
    k = len(kept)
    if coding == "fixed":
        return pack_fields(kept, width_of(n)).tobytes()
    if is_bitmap(k, n):
        return pack(np.isin(np.arange(n), kept)).tobytes()
    low = int(np.floor(np.log2(n / k)))
    lower = (kept[:, None] >> np.arange(low) & 1).reshape(-1)
    # Unary: before the 1 of each index as many 0 as its high part exceeds the one before; at the end all up to n.
    high = np.diff(kept >> low, prepend=0)
    upper = [bit for zeros in high for bit in [0] * zeros + [1]]
    upper += [0] * (n // 2**low - (int(kept[-1]) >> low))
    return pack(np.concatenate([lower, upper])).tobytes()


def read_indices(wire, k, n, coding):
    """The indices, and how many bytes they take."""
    if coding == "fixed":
        size = (k * width_of(n) + 7) // 8
        return unpack_fields(wire[:size], k, width_of(n)), size
    if is_bitmap(k, n):
        return np.flatnonzero(unpack(wire, n)), (n + 7) // 8
    low = int(np.floor(np.log2(n / k)))
    bits = k * low + k + n // 2**low
    all_bits = unpack(wire, bits).astype(np.int64)
    ones = np.flatnonzero(all_bits[k * low :])
    lower = (all_bits[: k * low].reshape(k, low) << np.arange(low)).sum(axis=1)
    return ((ones - np.arange(k)) << low) + lower, (bits + 7) // 8


def write_values(c, coding):
    """The table, and the values."""
    if coding == "f32":
        return b"", c.astype("<f4").tobytes()
    if coding == "f16":
        return b"", c.astype("<f2").tobytes()
    k, exact = len(c), c.astype(np.float64)
    if coding == "sign":
        return np.array(total(np.abs(exact)) / k, "<f4").tobytes(), pack(c >= 0).tobytes()
    mean = total(exact) / k
    deviation = np.sqrt(total((exact - mean) ** 2) / k)
    bins = np.digitize(exact, [mean - 1.5 * deviation, mean, mean + 1.5 * deviation])
    return np.array(means_of_bins(exact, bins, [0] * 4), "<f4").tobytes(), pack_fields(bins, 2).tobytes()


def read_values(table, wire, k, coding):
    if coding in ("f32", "f16"):
        return wire.view("<f4" if coding == "f32" else "<f2").astype(np.float32)
    if coding == "sign":
        return np.where(unpack(wire, k), table[0], -table[0])
    return table[unpack_fields(wire, k, 2)]


def encode(x, parameters, call):
    kept = np.sort(np.argsort(-np.abs(x), kind="stable")[: parameters["k"]])
    table, values = write_values(x[kept], parameters.get("values", "f32"))
    return table + write_indices(kept, len(x), parameters.get("indices", "fixed")) + values


def decode(wire, n, parameters):
    k, coding = parameters["k"], parameters.get("values", "f32")
    table, rest = np.split(wire, [{"2bit": 16, "sign": 4}.get(coding, 0)])
    indices, size = read_indices(rest, k, n, parameters.get("indices", "fixed"))
    decoded = np.full(n, np.nan, np.float32)  # not on the wire
    decoded[indices] = read_values(table.view("<f4"), rest[size:], k, coding)
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
    # From here on the shorter wires. Elias and Fano's is as long as a bitmap at 2 of 7 and 4 of 16, and longer beyond.
    shorter = {
        "2 of 7": [[0, 3, 0, 0, -2, 0, 1], [2]],
        "4 of 16, and 5": [short_decimals(16, 16), [4, 5]],
        "all at the end": [[0] * 96 + [5, -6, 7, -8], [4]],
        "all at the beginning": [[5, -6, 7, -8] + [0] * 97, [4]],
        "all zeros": [[-0.0, 0.0] * 20, [3]],
        "one sign": [[4, 5, 6, 7, 100, 0, 0, 0, 0], [5]],
        "all the same": [[0.1] * 11, [11]],
        "denormals, and what rounds to one": [[1e-45, -1e-45, 6e-8, -2.9e-8, 3e-8, 6.0975e-5], [6]],
        "the ends of the range of halves": [[65519, -65504, 65488, -0.1, 0.3333], [3, 5]],
        **{
            f"normal, {n}": [short_decimals(n, n), sorted({1, max(n // 17, 1), max(n // 5, 1)})]
            for n in [1, 9, 64, 300]
        },
    }
    for name, (x, ks) in shorter.items():
        for k in ks:
            for indices in ["fixed", "elias-fano"]:
                for values in ["f32", "f16", "2bit", "sign"]:
                    if (indices, values) != ("fixed", "f32"):
                        yield name, x, {"k": k, "indices": indices, "values": values}, {}, rng.choice([1.0, 0.3])
