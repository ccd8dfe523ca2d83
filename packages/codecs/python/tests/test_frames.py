"""The golden frames, which frames.py wrote with struct, through this package; and bytes that are none."""

import gc
import importlib.util
import json
import os
import random
import struct
import unittest
from array import array
from pathlib import Path

import terse_codecs
from families import HAS_NUMPY, HAS_TORCH, NEEDS_NUMPY, Foreign, as_bytes, byte_families
from terse_codecs import BadFrameError, Frame, codec, read_frame, sign, write_frame

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.environ.get("TERSE_CODECS_SOURCES", os.path.join(HERE, "../../src"))

GOLDEN = [
    frame
    for path in sorted(Path(SOURCES).glob("codecs/*/frames.json"))
    for frame in json.loads(path.read_text("utf-8"))["frames"]
]
FRAMES = [bytes.fromhex(golden["frame"]) for golden in GOLDEN]
GOOD = next(frame for golden, frame in zip(GOLDEN, FRAMES) if golden["codec"] == "sign" and golden["n"] == 33)


def reference():
    """frames.py, whose CRC-32C is neither C's nor ours."""
    specification = importlib.util.spec_from_file_location("frames", os.path.join(SOURCES, "../frames.py"))
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


crc32c = reference().crc32c


def changed(frame, at, *values):
    return frame[:at] + bytes(values) + frame[at + len(values) :]


def sealed(frame):
    return frame[:-4] + struct.pack("<I", crc32c(frame[:-4]))


def reason(data):
    """Why it is no frame; "read" where it is one. Nothing else is ever raised."""
    try:
        read_frame(data)
        return "read"
    except BadFrameError as error:
        return error.reason


class GoldenFrames(unittest.TestCase):
    def test_are_there_for_every_codec_of_the_library(self):
        self.assertEqual(sorted({golden["codec"] for golden in GOLDEN}), sorted(terse_codecs.codec_names()))

    def test_are_written_and_say_what_went_in(self):
        for golden, frame in zip(GOLDEN, FRAMES):
            with self.subTest(codec=golden["codec"], n=golden["n"], parameters=golden["parameters"]):
                this = codec(golden["codec"], **golden["parameters"])
                for family, make in byte_families().items():
                    wire = make(bytes.fromhex(golden["wire"]))
                    self.assertEqual(as_bytes(write_frame(this, wire, golden["n"])).hex(), golden["frame"], family)
                    read = read_frame(make(frame))
                    self.assertEqual((read.codec, read.n, read.bytes), (this, golden["n"], len(frame)), family)
                    self.assertEqual(as_bytes(read.wire).hex(), golden["wire"], family)

    def test_are_what_one_rank_and_levels_that_need_no_word_are_written_as(self):
        count = codec("count", width=8, ranks=1)
        frame = write_frame(count, bytes(3), 3)
        self.assertEqual(bytes(frame[40:44]), bytes(4))
        self.assertEqual(read_frame(frame).codec, codec("count", width=8))
        uniform = codec("linf", bits=2, levels="uniform")
        self.assertEqual(read_frame(write_frame(uniform, bytes(uniform.wire_bytes(9)), 9)).codec, codec("linf", bits=2))


class AFrame(unittest.TestCase):
    def test_hands_out_the_wire_without_copying_it_and_it_decodes(self):
        x = array("f", [1, -1, -1] * 7)
        for family, make in byte_families().items():
            with self.subTest(family=family):
                data = make(bytes(write_frame(sign, sign.encode(x, zero="plus"), len(x))))
                read = read_frame(data)
                self.assertIsInstance(read, Frame)
                expected = memoryview if family in ("bytes", "bytearray") else type(data)
                self.assertIs(type(read.wire), expected)
                self.assertEqual(list(read.codec.decode(read.wire, read.n)), list(x))
                with (
                    terse_codecs._arrays.lend(data, "data", "uint8") as whole,
                    terse_codecs._arrays.lend(read.wire, "wire", "uint8") as part,
                ):
                    self.assertEqual(part.pointer - whole.pointer, 88)

    @unittest.skipUnless(HAS_NUMPY, NEEDS_NUMPY)
    def test_of_an_array_that_speaks_dlpack_alone_keeps_its_memory(self):
        import numpy

        data = Foreign(numpy.frombuffer(bytearray(GOOD), numpy.uint8))
        wire = read_frame(data).wire
        del data
        gc.collect()
        self.assertEqual(bytes(wire), GOOD[88:-4])

    @unittest.skipUnless(HAS_NUMPY, NEEDS_NUMPY)
    def test_is_of_the_family_of_its_wire(self):
        import numpy

        frame = write_frame(sign, sign.encode(numpy.array([1, -2, 3], numpy.float32), zero="plus"), 3)
        self.assertEqual((type(frame), frame.dtype), (numpy.ndarray, numpy.uint8))
        self.assertEqual(read_frame(frame.reshape(3, 31)).n, 3)  # of any shape
        with self.assertRaisesRegex(ValueError, "data is not contiguous"):
            read_frame(numpy.repeat(frame, 2)[::2])
        with self.assertRaisesRegex(TypeError, "data is a ndarray of float32, and must be uint8"):
            read_frame(frame.astype(numpy.float32))
        if HAS_TORCH:
            import torch

            self.assertIs(type(write_frame(sign, torch.zeros(1, dtype=torch.uint8), 3)), torch.Tensor)

    def test_may_follow_another(self):
        data, at = b"".join(FRAMES), 0
        for golden in GOLDEN:
            read = read_frame(memoryview(data)[at:])
            self.assertEqual((read.codec.name, read.n), (golden["codec"], golden["n"]))
            at += read.bytes
        self.assertEqual(at, len(data))

    def test_is_not_written_around_a_wire_of_another_length_or_without_a_codec(self):
        for wrong, kind, words in [
            (
                lambda: write_frame(sign, bytes(2), 17),
                ValueError,
                "wire has 2 bytes, and 17 floats of codec.'sign'. take 3",
            ),
            (lambda: write_frame(sign, bytes(2), -1), ValueError, "n is -1"),
            (lambda: write_frame(sign, bytes(2), 2**49), ValueError, "n is 562949953421312"),
            (lambda: write_frame("sign", bytes(2), 16), TypeError, "codec is 'sign', and must be a terse_codecs.Codec"),
            (
                lambda: write_frame(sign, array("f", [1]), 16),
                TypeError,
                "wire is a array of format 'f', and must be uint8",
            ),
            (lambda: write_frame(codec("scaled-sign", segments=[3]), bytes(5), 4), ValueError, "segments add up to 3"),
            (lambda: read_frame("TERS"), TypeError, "data is a str"),
        ]:
            with self.subTest(words=words), self.assertRaisesRegex(kind, words):
                wrong()


class WhatIsRefused(unittest.TestCase):
    def test_has_a_reason_and_a_sentence(self):
        for name, why, words, data in [
            ("nothing", "not a frame", 'do not begin with "TERS"', b""),
            ("another file", "not a frame", "not a frame", b"%PDF-1.7 and so on"),
            ("four bytes of one", "cut short", "than the 4 that are here", GOOD[:4]),
            ("another version", "another version", "of version 2, and this library reads 1", changed(GOOD, 4, 2)),
            ("all but a byte", "cut short", f"than the {len(GOOD) - 1} that are here", GOOD[:-1]),
            ("one wrong byte", "damaged", "checksum", changed(GOOD, 89, GOOD[89] ^ 1)),
            ("too many segments", "cut short", "cut short", changed(GOOD, 76, 255, 255, 255, 255)),
            ("a wire of 2^64 - 1", "cut short", "cut short", changed(GOOD, 80, *[255] * 8)),
            ("no name", "bad header", "no writer writes", sealed(changed(GOOD, 8, 0, 0, 0, 0))),
            ("more floats than 2^48", "bad header", "no writer writes", sealed(changed(GOOD, 30, 2))),
            (
                "a codec of tomorrow",
                "unknown codec",
                "there is no codec 'ight'; there are .*sign",
                sealed(changed(GOOD, 8, *b"ight\0")),
            ),
            ("a name in no ASCII", "unknown codec", r"no codec '\\\\xffign'", sealed(changed(GOOD, 8, 255))),
            (
                "parameters it does not take",
                "refused parameters",
                "sign refuses .* for 33 floats: An option is set",
                sealed(changed(GOOD, 64, 1)),
            ),
            (
                "fewer floats than its wire",
                "wrong length",
                "bytes that 8 floats of sign take",
                sealed(changed(GOOD, 24, 8)),
            ),
        ]:
            with self.subTest(name=name), self.assertRaisesRegex(ValueError, f"^read_frame: .*{words}") as caught:
                read_frame(data)
            self.assertEqual(caught.exception.reason, why, name)
        self.assertTrue(issubclass(BadFrameError, terse_codecs.CodecError))

    def test_is_a_frame_with_any_single_bit_flipped_or_cut_anywhere(self):
        for frame in FRAMES[::3]:
            for bit in range(8 * len(frame)):
                self.assertNotEqual(reason(changed(frame, bit // 8, frame[bit // 8] ^ (1 << bit % 8))), "read")
            for length in range(len(frame)):
                self.assertEqual(reason(frame[:length]), "not a frame" if length < 4 else "cut short")

    def test_is_never_refused_otherwise_and_what_is_read_is_written_the_same(self):
        draw, met = random.Random(7), {}
        awkward = [0, 1, 2, 8, 63, 255, 2**31, 2**32 - 1, 2**32, 2**48, 2**48 + 1, 2**61, 2**63, 2**64 - 1]
        for _ in range(10_000):
            data = bytearray(draw.choice(FRAMES))
            for _ in range(draw.randrange(1, 3)):
                kind = draw.randrange(4)
                if kind == 0:
                    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
                elif kind == 1:
                    field, width = draw.choice(
                        [
                            (24, 8),
                            (32, 4),
                            (36, 4),
                            (40, 4),
                            (44, 4),
                            (48, 4),
                            (52, 4),
                            (56, 8),
                            (64, 8),
                            (72, 4),
                            (80, 8),
                        ]
                    )
                    data[field : field + width] = (draw.choice(awkward) % 2 ** (8 * width)).to_bytes(width, "little")
                elif kind == 2:
                    data[:88] = draw.choice(FRAMES)[:88]
                else:
                    data = data[:-4][: 88 + draw.randrange(len(data) - 88)] + bytes(4)
            end = min(
                len(data) - 4, 88 + 8 * int.from_bytes(data[76:80], "little") + int.from_bytes(data[80:88], "little")
            )
            if draw.randrange(4) and end >= 88:
                data[end : end + 4] = struct.pack("<I", crc32c(data[:end]))
            what = reason(data)
            met[what] = met.get(what, 0) + 1
            if what == "read":
                read = read_frame(data)
                self.assertEqual(bytes(write_frame(read.codec, read.wire, read.n)), bytes(data[: read.bytes]))
        expected = {"bad header", "cut short", "damaged", "not a frame", "read", "refused parameters", "wrong length"}
        self.assertLessEqual(expected - {"not a frame"}, set(met), met)


if __name__ == "__main__":
    unittest.main()
