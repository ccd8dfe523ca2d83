#!/usr/bin/env python3
"""Frames by Python's struct alone, from their picture in docs/wire-formats.md: the outside source of frames.json.

frames.py           writes src/codecs/<codec>/frames.json: each codec's golden wires, some for each way of using it, in frames
frames.py --check   exits 1 if one of these frames is not what it would write, or does not read back
frames.py --read    prints the contents of the frames on standard input as JSON; one frame in hexadecimal per line
"""

import json
import struct
import sys
from pathlib import Path

CODECS = Path(__file__).resolve().parent / "src/codecs"
HEADER = struct.Struct("<4s I 16s Q HHII HBBII QQ f I Q")
DEFAULTS = [("ranks", 1), ("levels", "uniform"), ("indices", "fixed"), ("values", "f32")]  # written like absent ones
LEVELS = ["uniform", "without-zero", "logarithmic"]
INDICES = ["fixed", "elias-fano"]
VALUES = ["f32", "f16", "2bit", "sign"]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def written(frame):
    p, wire = frame["parameters"], bytes.fromhex(frame["wire"])
    segments = p.get("segments", [])
    ends = [sum(segments[: s + 1]) for s in range(len(segments))]
    header = HEADER.pack(
        b"TERS",
        1,
        frame["codec"].encode("ascii"),
        frame["n"],
        p.get("bits", 0),
        p.get("side", 0),
        p.get("width", 0),
        p.get("ranks", 0),
        int(p.get("unscaled", False)),
        INDICES.index(p.get("indices", "fixed")),
        VALUES.index(p.get("values", "f32")),
        LEVELS.index(p.get("levels", "uniform")),
        p.get("dimensions", 0),
        p.get("block", 0),
        p.get("k", 0),
        p.get("clip", 0),
        len(segments),
        len(wire),
    )
    body = header + struct.pack(f"<{len(ends)}Q", *ends) + wire
    return (body + struct.pack("<I", crc32c(body))).hex()


def read(text):
    data = bytes.fromhex(text)
    (
        magic,
        version,
        name,
        n,
        bits,
        side,
        width,
        ranks,
        unscaled,
        indices,
        values,
        levels,
        dimensions,
        block,
        k,
        clip,
        count,
        length,
    ) = HEADER.unpack_from(data)
    ends = struct.unpack_from(f"<{count}Q", data, HEADER.size)
    at = HEADER.size + 8 * count
    (crc,) = struct.unpack_from("<I", data, at + length)
    assert magic == b"TERS" and version == 1 and crc == crc32c(data[: at + length]) and len(data) == at + length + 4
    said = {
        "bits": bits,
        "side": side,
        "width": width,
        "ranks": ranks,
        "unscaled": bool(unscaled),
        "levels": levels and LEVELS[levels],
        "dimensions": dimensions,
        "block": block,
        "segments": [end - begin for begin, end in zip((0, *ends), ends)],
        "k": k,
        "clip": clip,
        "indices": indices and INDICES[indices],
        "values": values and VALUES[values],
    }
    parameters = {key: value for key, value in said.items() if value}
    return {
        "codec": name.rstrip(b"\0").decode("ascii"),
        "n": n,
        "parameters": parameters,
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
