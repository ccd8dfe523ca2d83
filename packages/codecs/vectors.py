#!/usr/bin/env python3
"""The golden bytes of the codecs, from an outside source: numpy.

    vectors.py [CODEC…]          writes src/codecs/<codec>/vectors.json, and src/vote/vectors.json
    vectors.py --check [CODEC…]  exits 1 if what is written differs from what it would write
    vectors.py --live            answers requests on standard input, one JSON object a line, for tests with fresh inputs

Each oracle.py, of a codec or of the vote, says in numpy what the codec is; for a codec it has
    encode(x, parameters, call) -> bytes          x: float32 array; call["hold"], if there, is a uint8 array
    decode(wire, n, parameters) -> float32 array  what the wire stands for, NaN where it says nothing; held elements are left out by this driver
    cases() -> (name, x, parameters, call, scale), …
and for anything else, like the vote, vectors() -> dict with "about" and "cases", and answer(request).
Floats are JSON numbers, exact in fp32; packed bytes are hexadecimal.
"""

import importlib.util
import json
import os
import sys

import numpy as np

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "src")
sys.path.insert(0, os.path.join(HERE, "shared"))  # oracles import packing.py


def folder(codec):
    return os.path.join(HERE, codec if codec == "vote" else os.path.join("codecs", codec))


def oracle(codec):
    path = os.path.join(folder(codec), "oracle.py")
    spec = importlib.util.spec_from_file_location(f"{codec.replace('-', '_')}_oracle", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def all_codecs():
    return sorted(
        name
        for name in [*os.listdir(os.path.join(HERE, "codecs")), "vote"]
        if os.path.exists(os.path.join(folder(name), "oracle.py"))
    )


def floats(x):
    return [float(v) for v in np.asarray(x, dtype=np.float32)]


def with_mask(call):
    return {**call, "hold": np.frombuffer(bytes.fromhex(call["hold"]), np.uint8)} if "hold" in call else dict(call)


def sum_of(x, decoded, scale, call):
    after = np.where(np.isnan(decoded), x, x + np.float32(scale) * decoded).astype(np.float32)
    if "hold" not in call:
        return after
    held = np.unpackbits(call["hold"], count=len(x), bitorder="little").astype(bool)
    return np.where(held, x, after)


def vectors_of(codec):
    module = oracle(codec)
    if hasattr(module, "vectors"):
        return module.vectors()
    cases = []
    for name, x, parameters, call, scale in module.cases():
        x = np.asarray(x, dtype=np.float32)
        wire = bytes(module.encode(x, parameters, call))
        decoded = module.decode(np.frombuffer(wire, np.uint8), len(x), parameters)
        assert decoded.dtype == np.float32
        written = {key: value.tobytes().hex() if key == "hold" else value for key, value in call.items()}
        cases.append(
            {
                "name": name,
                "parameters": parameters,
                "call": written,
                "x": floats(x),
                "wire": wire.hex(),
                "scale": float(np.float32(scale)),
                "sum": floats(sum_of(x, decoded, scale, call)),
            }
        )
    return {
        "about": "wire = encode(x), and sum = x + scale * decode(wire). Written by vectors.py from oracle.py, which is numpy.",
        "cases": cases,
    }


def text_of(vectors):
    head, cases = vectors["about"], ",\n".join("    " + json.dumps(case) for case in vectors["cases"])
    return f'{{\n  "about": {json.dumps(head)},\n  "cases": [\n{cases}\n  ]\n}}\n'


def answer(request):
    module = oracle(request["codec"])
    if hasattr(module, "answer"):
        return module.answer(request)
    x = np.asarray(request["x"], dtype=np.float32)
    return bytes(module.encode(x, request.get("parameters", {}), with_mask(request.get("call", {})))).hex()


def main():
    if "--live" in sys.argv:
        for line in sys.stdin:
            print(json.dumps(answer(json.loads(line))), flush=True)
        return 0
    status = 0
    for codec in [word for word in sys.argv[1:] if not word.startswith("--")] or all_codecs():
        path, text = os.path.join(folder(codec), "vectors.json"), text_of(vectors_of(codec))
        if "--check" in sys.argv:
            same = open(path, encoding="utf-8").read() == text
            print(f"{codec}/vectors.json {'is' if same else 'is not'} what numpy {np.__version__} says")
            status |= not same
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    return status


if __name__ == "__main__":
    with np.errstate(over="ignore", invalid="ignore"):
        sys.exit(main())
