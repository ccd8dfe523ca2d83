#!/usr/bin/env python3
"""Levels of l1 and linf by units that ranks agreed on, from an outside source: numpy.

units.py           writes src/shared/levels/units.json
units.py --check   exits 1 if what is written differs from what it would write
units.py --live    answers requests on standard input, one JSON object a line, for tests with fresh inputs

l1    q = clamp(rint(x / unit), −s, s)                                  s = 2^(bits − 1) − 1
linf  q = ± (⌊v⌋ + draw(v − ⌊v⌋)), v = min(|x| / unit, s)              0 where the unit is 0
wires of P ranks are added field by field; they stand for fp32((Σ q) unit)
"""

import json
import os
import sys

import numpy as np

SRC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "src")
PATH = os.path.join(SRC, "shared/levels/units.json")
sys.path.insert(0, os.path.join(SRC, "shared"))
from packing import draw_below, in_thirds, levels_a_side, pack_fields, scale_groups, short_decimals  # noqa: E402


def of_elements(n, parameters, units):
    each = np.zeros(n)
    for (begin, end), unit in zip(scale_groups(n, parameters), np.asarray(units, np.float32)):
        each[begin:end] = unit
    return each


def levels(codec, x, parameters, call, units):
    s, unit = levels_a_side(parameters), of_elements(len(x), parameters, units)
    if codec == "l1":
        return np.clip(np.rint(np.divide(x, unit, out=np.zeros(len(x)), where=unit > 0)), -s, s).astype(np.int64)
    v = np.minimum(np.abs(x.astype(np.float64) * np.divide(1.0, unit, out=np.zeros(len(x)), where=unit > 0)), s)
    magnitude = np.floor(v) + draw_below(v - np.floor(v), call["seed"], call["step"], call.get("index", 0))
    if parameters.get("levels") == "without-zero":
        magnitude = np.where((magnitude == 0) & (x != 0) & (unit > 0), 1, magnitude)
    return np.where(x < 0, -magnitude, magnitude).astype(np.int64)


def answer(request):
    """The wire of one rank, and what the sum of the wires of `ranks` ranks with the same x stands for."""
    parameters, x, units = request["parameters"], np.asarray(request["x"], np.float32), request["units"]
    s, ranks = levels_a_side(parameters), parameters.get("ranks", 1)
    q = levels(request["codec"], x, parameters, request["call"], units)
    width = parameters.get("width", parameters["bits"])
    sums = (ranks * q * of_elements(len(x), parameters, units)).astype(np.float32)
    return {
        "wire": pack_fields(q + s, width).tobytes().hex(),
        "summed": pack_fields(ranks * (q + s), width).tobytes().hex(),
        "sum": [float(v) for v in sums],
    }


def cases():
    inputs = {
        "nothing": [],
        "one": [-0.375],
        "zeros of both signs": [0.0, -0.0] * 5,
        "denormals": [1e-45, -3e-45, 0, 1e-44],
    }
    inputs |= {f"normal, {n}": short_decimals(n, n) for n in [7, 63, 64, 65, 129]}
    inputs |= {"halfway between levels": [0.25, -0.25, 0.75, -0.75, 1.25, -1.75, 30, -30]}
    ways = [
        {"bits": 2},
        {"bits": 5},
        {"bits": 8},
        {"bits": 4, "width": 8, "ranks": 17},
        {"bits": 3, "width": 16, "ranks": 9362},
        {"bits": 5, "block": 16},
        {"bits": 6, "width": 8, "ranks": 4, "block": 5},
        {"bits": 7, "segments": "thirds"},
    ]
    for name, x in inputs.items():
        for way in ways:
            for codec in ["l1", "linf"]:
                n = len(x)
                parameters = {**in_thirds(n, way), "unscaled": True}
                units = [[0.5, 0.01, 0.0, 2.0][r % 4] for r in range(len(scale_groups(n, parameters)))]
                call = {"seed": 11, "step": 3, "index": 64} if codec == "linf" else {}
                yield {
                    "name": name,
                    "codec": codec,
                    "parameters": parameters,
                    "call": call,
                    "units": [float(np.float32(u)) for u in units],
                    "x": [float(np.float32(v)) for v in x],
                }
    x, parameters = short_decimals(65, 9), {"bits": 3, "levels": "without-zero", "unscaled": True}
    yield {
        "name": "without zero",
        "codec": "linf",
        "parameters": parameters,
        "call": {"seed": 5, "step": 2},
        "units": [1.5],
        "x": [float(v) for v in x],
    }


def main():
    if "--live" in sys.argv:
        for line in sys.stdin:
            print(json.dumps(answer(json.loads(line))), flush=True)
        return 0
    lines = ",\n".join("    " + json.dumps({**case, **answer(case)}) for case in cases())
    text = f'{{\n  "about": "Written by units.py, which is numpy: one rank\'s wire, the fields of all ranks added, and what they stand for.",\n  "cases": [\n{lines}\n  ]\n}}\n'
    if "--check" in sys.argv:
        return 0 if open(PATH, encoding="utf-8").read() == text else 1
    with open(PATH, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
