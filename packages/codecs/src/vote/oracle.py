import numpy as np
from packing import pack, unpack


def elections(votes, n):
    """A vote of None is an absent rank."""
    present = [v for v in votes if v is not None]
    ranks = len(present)
    count = np.sum([unpack(v, n).astype(np.int64) for v in present], axis=0)
    return {
        "majorityPlus": pack(2 * count >= ranks).tobytes().hex(),
        "majorityMinus": pack(2 * count > ranks).tobytes().hex(),
        "plus": pack(2 * count > ranks).tobytes().hex(),
        "nonzero": pack(2 * count != ranks).tobytes().hex(),
        "planes": [pack(count >> k & 1).tobytes().hex() for k in range(len(votes).bit_length())],
    }


def written(votes):
    return [None if v is None else v.tobytes().hex() for v in votes]


def vectors():
    rng = np.random.default_rng(20262)
    cases = []
    for ranks in [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33]:
        for n in [1, 8, 13, 64, 77]:
            # The pad bits of a vote may hold anything.
            votes = [rng.integers(0, 256, (n + 7) // 8, dtype=np.uint8) for _ in range(ranks)]
            cases.append({"n": n, "votes": written(votes), **elections(votes, n)})
            if ranks > 1 and n in (8, 77):
                absent = set(rng.choice(ranks, rng.integers(1, ranks), replace=False).tolist())
                some = [None if r in absent else v for r, v in enumerate(votes)]
                cases.append({"n": n, "votes": written(some), **elections(some, n)})
    return {
        "about": "What ranks' packed signs elect; null is an absent rank. Written by vectors.py from numpy.unpackbits and a sum.",
        "cases": cases,
    }


def answer(request):
    return elections(
        [None if v is None else np.frombuffer(bytes.fromhex(v), np.uint8) for v in request["votes"]], request["n"]
    )
