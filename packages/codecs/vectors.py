#!/usr/bin/env python3
"""The golden bytes of the codecs, from an outside source: numpy's packbits and plain counting.

    vectors.py          writes src/sign/vectors.json and src/vote/vectors.json
    vectors.py --check  exits 1 if what is written differs from what it would write
    vectors.py --live   answers requests on standard input, one JSON object a line, for tests with fresh inputs

Floats are JSON numbers, exact in fp32; packed bytes are hexadecimal.
"""
import json
import os
import sys

import numpy as np

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "src")


def pack(bits):
    return np.packbits(np.asarray(bits, dtype=bool), bitorder="little")


def unpack(packed, n):
    return np.unpackbits(np.asarray(packed, dtype=np.uint8), count=n, bitorder="little").astype(bool)


def hexadecimal(packed):
    return np.asarray(packed, dtype=np.uint8).tobytes().hex()


def from_hex(text):
    return np.frombuffer(bytes.fromhex(text), dtype=np.uint8)


def floats(x):
    return [float(v) for v in np.asarray(x, dtype=np.float32)]


def sign_wire(x, zero, hold=None):
    x = np.asarray(x, dtype=np.float32)
    plus = x >= 0 if zero == "plus" else x > 0
    if hold is not None:
        plus &= ~unpack(hold, len(x))
    return pack(plus)


def sign_sum(x, wire, scale, hold=None):
    x = np.asarray(x, dtype=np.float32)
    value = np.where(unpack(wire, len(x)), np.float32(scale), -np.float32(scale))
    after = x + value
    return after if hold is None else np.where(unpack(hold, len(x)), x, after)


def sign_vectors():
    rng = np.random.default_rng(20261)
    tiny, denormal, largest = np.float32(1.17549435e-38), np.float32(1.4e-45), np.finfo(np.float32).max
    named = {
        "one of each": [1, -1, -1, 1, 1, 1, -1, 1],
        "nothing": [],
        "mixed, with both zeros": [0.5, -1, 0, 2, -3, 4, -5, 6, -0.0],
        "zeros": [0.0, -0.0] * 5,
        "denormals and the ends of the range": [denormal, -denormal, tiny, -tiny, largest, -largest, 0, -0.0],
    }
    for n in [1, 7, 8, 9, 31, 33, 63, 64, 65, 70, 129]:
        x = (np.round(rng.standard_normal(n) * 64) / 64).astype(np.float32)  # short decimals
        x[rng.random(n) < 0.2] = 0.0
        x[rng.random(n) < 0.1] = -0.0
        named[f"normal, {n}"] = x
    cases = []
    for name, x in named.items():
        n = len(x)
        for zero in ["plus", "minus"]:
            for held in [False, True]:
                hold = pack(rng.random(n) < 0.3) if held else None
                wire = sign_wire(x, zero, hold)
                scale = float(np.float32(rng.choice([1.0, 0.25] if n > 9 else [0.3, 1e-4])))
                case = {"name": name, "x": floats(x), "zero": zero}
                if held:
                    case["hold"] = hexadecimal(hold)
                case |= {"wire": hexadecimal(wire), "scale": scale, "sum": floats(sign_sum(x, wire, scale, hold))}
                cases.append(case)
    return {"about": "x + scale * decode(wire) = sum, and wire = encode(x). Written by vectors.py from numpy.packbits.", "cases": cases}


def elections(votes, n):
    ranks = len(votes)
    count = sum((unpack(v, n).astype(np.int64) for v in votes), np.zeros(n, dtype=np.int64))
    return {
        "majorityPlus": hexadecimal(pack(2 * count >= ranks)),
        "majorityMinus": hexadecimal(pack(2 * count > ranks)),
        "plus": hexadecimal(pack(2 * count > ranks)),
        "nonzero": hexadecimal(pack(2 * count != ranks)),
        "planes": [hexadecimal(pack(count >> k & 1)) for k in range(ranks.bit_length())],
    }


def vote_vectors():
    rng = np.random.default_rng(20262)
    cases = []
    for ranks in [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33]:
        for n in [1, 8, 13, 64, 77]:
            # The pad bits of a vote may hold anything.
            votes = [rng.integers(0, 256, (n + 7) // 8, dtype=np.uint8) for _ in range(ranks)]
            cases.append({"n": n, "votes": [hexadecimal(v) for v in votes], **elections(votes, n)})
    return {"about": "What ranks' packed signs elect. Written by vectors.py from numpy.unpackbits and a sum.", "cases": cases}


def text_of(vectors):
    head, cases = vectors["about"], ",\n".join("    " + json.dumps(case) for case in vectors["cases"])
    return f'{{\n  "about": {json.dumps(head)},\n  "cases": [\n{cases}\n  ]\n}}\n'


def answer(request):
    if request["kind"] == "sign":
        hold = from_hex(request["hold"]) if "hold" in request else None
        return hexadecimal(sign_wire(request["x"], request["zero"], hold))
    return elections([from_hex(v) for v in request["votes"]], request["n"])


def main():
    if "--live" in sys.argv:
        for line in sys.stdin:
            print(json.dumps(answer(json.loads(line))), flush=True)
        return 0
    status = 0
    for codec, vectors in {"sign": sign_vectors(), "vote": vote_vectors()}.items():
        path, text = os.path.join(HERE, codec, "vectors.json"), text_of(vectors)
        if "--check" in sys.argv:
            same = open(path, encoding="utf-8").read() == text
            print(f"{codec}/vectors.json {'is' if same else 'is not'} what numpy {np.__version__} says")
            status |= not same
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    return status


if __name__ == "__main__":
    sys.exit(main())
