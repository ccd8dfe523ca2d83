"""All golden vectors as lines, as ../check/vectors.h describes them, where there is no Node: golden.py | codecs_cuda_check golden"""

import json
import struct
from itertools import accumulate
from pathlib import Path

source = Path(__file__).resolve().parents[3] / "packages/codecs/src"


# Parameters that are words in Python, and numbers in C.
words = {
    "levels": ["uniform", "without-zero", "logarithmic"],
    "indices": ["fixed", "elias-fano"],
    "values": ["f32", "f16", "2bit", "sign"],
}


def fp32(values):
    return struct.pack(f"<{len(values)}f", *values).hex()


def written(name, value):
    if name == "segments":
        return " ".join(map(str, [len(value), *accumulate(value)]))
    if name in words:
        return words[name].index(value)
    if name == "clip":
        return struct.unpack("<I", struct.pack("<f", value))[0]
    return int(value) if isinstance(value, bool) else value


def codec_lines(case, scale):
    for name, value in {**case["parameters"], **case["call"]}.items():
        yield f"{name} {written(name, value)}"
    yield from (f"x {fp32(case['x'])}", f"wire {case['wire']}", f"scale {fp32([scale])}", f"sum {fp32(case['sum'])}")


def vote_lines(case):
    yield f"n {case['n']}"
    yield from ("absent -" if vote is None else f"vote {vote}" for vote in case["votes"])
    yield from (f"plane {plane}" for plane in case["planes"])
    for line, key in {
        "majority-plus": "majorityPlus",
        "majority-minus": "majorityMinus",
        "plus": "plus",
        "nonzero": "nonzero",
    }.items():
        yield f"{line} {case[key]}"


def units_lines(case):
    yield from codec_lines({**case, "sum": [value + 0.0 for value in case["sum"]]}, 1)
    yield from (f"units {fp32(case['units'])}", f"summed {case['summed']}", f"before {fp32([0] * len(case['x']))}")


def say(codec, lines):
    print(f"codec {codec}", *lines, "done", sep="\n")


for file in sorted([*source.glob("codecs/*/vectors.json"), source / "vote/vectors.json"]):
    for case in json.loads(file.read_text())["cases"]:
        say(file.parent.name, vote_lines(case) if "votes" in case else codec_lines(case, case["scale"]))
for case in json.loads((source / "shared/levels/units.json").read_text())["cases"]:
    say(case["codec"], units_lines(case))
