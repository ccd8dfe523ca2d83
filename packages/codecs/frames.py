#!/usr/bin/env python3
"""Frames by Python's struct alone, from their picture in docs/wire-formats.md: the outside source of frames.json.

frames.py           writes src/codecs/<codec>/frames.json: each codec's golden wires, some for each way of using it, in frames
frames.py --check   exits 1 if one of these frames is not what it would write, or does not read back
frames.py --read    prints the contents of the frames on standard input as JSON; one frame in hexadecimal per line
"""

import json
import struct
import sys
from itertools import accumulate
from pathlib import Path

CODECS = Path(__file__).resolve().parent / "src/codecs"
HEADER = struct.Struct("<4s I 16s Q HHII HBBII QQ f I Q")
DEFAULTS = [("ranks", 1), ("levels", "uniform"), ("indices", "fixed"), ("values", "f32")]  # written like absent ones
WORDS = {
    "levels": ["uniform", "without-zero", "logarithmic"],
    "indices": ["fixed", "elias-fano"],
    "values": ["f32", "f16", "2bit", "sign"],
}
# The parameters of the header between n and the number of segments.
NUMBERS = "bits side width ranks unscaled indices values levels dimensions block k clip".split()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def written(frame):
    p, wire = frame["parameters"], bytes.fromhex(frame["wire"])
    ends = list(accumulate(p.get("segments", [])))
    numbers = [WORDS[key].index(p[key]) if key in WORDS and key in p else p.get(key, 0) for key in NUMBERS]
    header = HEADER.pack(b"TERS", 1, frame["codec"].encode("ascii"), frame["n"], *numbers, len(ends), len(wire))
    body = header + struct.pack(f"<{len(ends)}Q", *ends) + wire
    return (body + struct.pack("<I", crc32c(body))).hex()


def read(text):
    data = bytes.fromhex(text)
    magic, version, name, n, *numbers, count, length = HEADER.unpack_from(data)
    ends = struct.unpack_from(f"<{count}Q", data, HEADER.size)
    at = HEADER.size + 8 * count
    (crc,) = struct.unpack_from("<I", data, at + length)
    assert magic == b"TERS" and version == 1 and crc == crc32c(data[: at + length]) and len(data) == at + length + 4
    said = {key: WORDS[key][value] if key in WORDS else value for key, value in zip(NUMBERS, numbers) if value}
    if "unscaled" in said:
        said["unscaled"] = bool(said["unscaled"])
    if count:
        said["segments"] = [end - begin for begin, end in zip((0, *ends), ends)]
    return {
        "codec": name.rstrip(b"\0").decode("ascii"),
        "n": n,
        "parameters": said,
        "wire": data[at : at + length].hex(),
    }


def as_written(key, value):
    return struct.unpack("<f", struct.pack("<f", value))[0] if key == "clip" else value


def golden(codec):
    """The smallest and the largest golden wire of every way in which a codec's vectors use it."""
    ways = {}
    for case in json.loads((CODECS / codec / "vectors.json").read_text("utf-8"))["cases"]:
        parameters = {
            key: as_written(key, value)
            for key, value in case["parameters"].items()
            if value and (key, value) not in DEFAULTS
        }
        shape = {
            key: value if key not in ("segments", "block", "k", "ranks") else "some"
            for key, value in parameters.items()
        }
        frame = {"codec": codec, "n": len(case["x"]), "parameters": parameters, "wire": case["wire"]}
        if len(case["x"]) <= 40:
            ways.setdefault(json.dumps(shape, sort_keys=True), []).append(frame)
    for frames in list(ways.values())[:12]:
        sizes = sorted(frames, key=lambda frame: len(frame["wire"]))
        yield from (sizes[:1] if sizes[0] == sizes[-1] else [sizes[0], sizes[-1]])


def main():
    if "--read" in sys.argv:
        for line in sys.stdin:
            print(json.dumps(read(line.strip())))
        return 0
    if "--check" in sys.argv:
        frames = [
            frame for path in CODECS.glob("*/frames.json") for frame in json.loads(path.read_text("utf-8"))["frames"]
        ]
        bad = [
            f
            for f in frames
            if written(f) != f["frame"]
            or read(f["frame"]) != {key: f[key] for key in ("codec", "n", "parameters", "wire")}
        ]
        print(f"{len(frames)} frames, {len(bad)} bad")
        return 1 if bad or not frames else 0
    for folder in CODECS.iterdir():
        lines = ",\n".join("    " + json.dumps({**frame, "frame": written(frame)}) for frame in golden(folder.name))
        about = "Written by frames.py, which is struct, from the golden wires of vectors.json."
        (folder / "frames.json").write_text(f'{{\n  "about": "{about}",\n  "frames": [\n{lines}\n  ]\n}}\n', "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
