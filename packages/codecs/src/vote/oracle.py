import numpy as np
from packing import pack, unpack


def elections(votes, n):
    ranks = len(votes)
    count = sum((unpack(v, n).astype(np.int64) for v in votes), np.zeros(n, dtype=np.int64))
    return {
        "majorityPlus": pack(2 * count >= ranks).tobytes().hex(),
        "majorityMinus": pack(2 * count > ranks).tobytes().hex(),
        "plus": pack(2 * count > ranks).tobytes().hex(),
        "nonzero": pack(2 * count != ranks).tobytes().hex(),
        "planes": [pack(count >> k & 1).tobytes().hex() for k in range(ranks.bit_length())],
    }


def vectors():
    rng = np.random.default_rng(20262)
    cases = []
    for ranks in [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33]:
        for n in [1, 8, 13, 64, 77]:
            # The pad bits of a vote may hold anything.
            votes = [rng.integers(0, 256, (n + 7) // 8, dtype=np.uint8) for _ in range(ranks)]
            cases.append({"n": n, "votes": [v.tobytes().hex() for v in votes], **elections(votes, n)})
    return {"about": "What ranks' packed signs elect. Written by vectors.py from numpy.unpackbits and a sum.", "cases": cases}


def answer(request):
    return elections([np.frombuffer(bytes.fromhex(v), np.uint8) for v in request["votes"]], request["n"])
