"""What the oracles share: numpy's own bit packing, and inputs."""

import numpy as np


def pack(bits):
    return np.packbits(np.asarray(bits, dtype=bool), bitorder="little")


def unpack(packed, n):
    return np.unpackbits(np.asarray(packed, dtype=np.uint8), count=n, bitorder="little").astype(bool)


def pack_fields(values, width):
    """Unsigned integers of `width` bits, least significant bit first, one after the other."""
    values = np.asarray(values, dtype=np.int64)
    return np.packbits((values[:, None] >> np.arange(width) & 1).astype(np.uint8).reshape(-1), bitorder="little")


def unpack_fields(packed, n, width):
    bits = np.unpackbits(np.asarray(packed, dtype=np.uint8), count=n * width, bitorder="little").astype(np.int64)
    return (bits.reshape(n, width) << np.arange(width)).sum(axis=1)


def scale_groups(n, parameters):
    """[begin, end) of every scale group that shares a scale."""
    if "segments" in parameters:
        ends = np.cumsum(parameters["segments"]).tolist()
    else:
        block = parameters.get("block", 0) or n
        ends = list(range(block, n, block)) + [n] if n else []
    return list(zip([0, *ends[:-1]], ends)) if ends else []


def in_thirds(n, parameters):
    """Parameters whose segments are "thirds", with the lengths of three, of which the middle one is empty."""
    return {**parameters, "segments": [n // 3, 0, n - n // 3]} if "segments" in parameters else parameters


def levels_a_side(parameters):
    return parameters.get("side", 2 ** (parameters["bits"] - 1) - 1)


def decode_levels(wire, n, parameters, value_of):
    """The floats of l1, linf and qsgd: value_of(q, scale, s) in fp64, or the sums of levels on an unscaled wire."""
    s, width = levels_a_side(parameters), parameters.get("width", parameters["bits"])
    if parameters.get("unscaled"):
        return (unpack_fields(wire, n, width) - parameters.get("ranks", 1) * s).astype(np.float32)
    parts = scale_groups(n, parameters)
    scales = np.frombuffer(wire[: 4 * len(parts)].tobytes(), "<f4").astype(np.float64)
    q = np.minimum(unpack_fields(wire[4 * len(parts) :], n, width), 2 * s) - s
    values = np.zeros(n, np.float32)
    for (begin, end), scale in zip(parts, scales):
        values[begin:end] = value_of(q[begin:end].astype(np.float64), scale, s).astype(np.float32)
    return values


def total(values):
    """In the order of docs/wire-formats.md: 16 partial sums of each 64 Ki, folded in halves, then one after the other."""
    values = np.asarray(values, np.float64)
    whole = np.float64(0)
    for begin in range(0, len(values), 1 << 16):
        chunk = values[begin : begin + (1 << 16)]
        rows = np.concatenate([chunk, np.zeros(-len(chunk) % 16)]).reshape(-1, 16)
        partial = np.add.accumulate(rows, axis=0)[-1]
        while len(partial) > 1:
            partial = partial[: len(partial) // 2] + partial[len(partial) // 2 :]
        whole = whole + partial[0]
    return whole


def means_of_bins(values, bins, of_empty):
    """The mean of the values in each bin; of_empty[b] where bin b is empty."""
    counts = [np.sum(bins == b) for b in range(len(of_empty))]
    sums = [total(np.where(bins == b, values, 0)) for b in range(len(of_empty))]
    return [sums[b] / counts[b] if counts[b] else of_empty[b] for b in range(len(of_empty))]


def short_decimals(n, seed, zeros=0.2):
    """Normal numbers that are short in decimal and exact in fp32, some of them zeros of both signs."""
    rng = np.random.default_rng(seed)
    x = (np.round(rng.standard_normal(n) * 64) / 64).astype(np.float32)
    x[rng.random(n) < zeros] = 0.0
    x[rng.random(n) < zeros / 2] = -0.0
    return x


def philox_words(n, seed, step, index=0):
    """The random word of each element: Philox4x32-10 over uint64 arrays, as random/random.h says."""
    i = index + np.arange(n, dtype=np.uint64)
    c = i // np.uint64(64) * np.uint64(16) + i % np.uint64(16)
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    counter = [c & low, c >> half, np.full(n, step & 0xFFFFFFFF, np.uint64), np.full(n, step >> 32, np.uint64)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * counter[0], np.uint64(0xCD9E8D57) * counter[2]
        counter = [
            b >> half ^ counter[1] ^ np.uint64(key[0]),
            b & low,
            a >> half ^ counter[3] ^ np.uint64(key[1]),
            a & low,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return (
        np.choose((i % np.uint64(64) // np.uint64(16)).astype(np.int64), counter).astype(np.uint32)
        if n
        else np.zeros(0, np.uint32)
    )


def draw_below(p, seed, step, index=0):
    """For each element, true with probability p[i]."""
    return (philox_words(len(p), seed, step, index) >> np.uint32(1)).astype(np.float64) < np.asarray(
        p, np.float64
    ) * 2.0**31
