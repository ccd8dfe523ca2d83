"""The golden bytes beside each codec, which numpy wrote, through this package."""

import glob
import json
import os
import unittest
from array import array

import terse_codecs
from families import as_bytes, float_families

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.environ.get("TERSE_CODECS_SOURCES", os.path.join(HERE, "../../src"))


def vectors():
    """By codec, and of the vote: the cases of its vectors.json."""
    found = {}
    for folder in [os.path.join(SOURCES, "vote"), *sorted(glob.glob(os.path.join(SOURCES, "codecs", "*")))]:
        with open(os.path.join(folder, "vectors.json"), encoding="utf-8") as file:
            found[os.path.basename(folder)] = json.load(file)["cases"]
    return found


class GoldenVectors(unittest.TestCase):
    maxDiff = None

    def test_are_there_for_every_codec_of_the_library(self):
        self.assertEqual(
            sorted(name for name, cases in vectors().items() if "wire" in cases[0]), sorted(terse_codecs.codec_names())
        )

    def test_are_what_every_codec_writes_and_reads(self):
        for name in terse_codecs.codec_names():
            for case in vectors()[name]:
                call, n = dict(case["call"]), len(case["x"])
                if "hold" in call:
                    call["hold"] = bytes.fromhex(call["hold"])
                mask = {"hold": call["hold"]} if "hold" in call else {}
                for family, make in float_families().items():
                    with self.subTest(
                        codec=name, case=case["name"], parameters=case["parameters"], call=case["call"], family=family
                    ):
                        codec = terse_codecs.codec(name, **case["parameters"])
                        self.assertEqual(codec.parameters, case["parameters"])
                        self.assertEqual(codec.wire_bytes(n), len(case["wire"]) // 2)
                        wire = codec.encode(make(case["x"]), **call)
                        self.assertEqual(as_bytes(wire).hex(), case["wire"])
                        if family not in ("memoryview", "dlpack"):
                            sums = codec.decode_add(make(case["x"]), wire, case["scale"], **mask)
                            self.assertEqual(as_bytes(sums).hex(), array("f", case["sum"]).tobytes().hex())

    def test_by_units_that_ranks_agreed_on_are_written_and_add_up(self):
        with open(os.path.join(SOURCES, "shared/levels/units.json"), encoding="utf-8") as file:
            cases = json.load(file)["cases"]
        self.assertGreater(len(cases), 100)
        for case in cases:
            for family, make in float_families().items():
                with self.subTest(codec=case["codec"], case=case["name"], parameters=case["parameters"], family=family):
                    codec, units = terse_codecs.codec(case["codec"], **case["parameters"]), make(case["units"])
                    self.assertEqual(
                        as_bytes(codec.encode(make(case["x"]), units=units, **case["call"])).hex(), case["wire"]
                    )
                    decoded = codec.decode(bytes.fromhex(case["summed"]), len(case["x"]), units=units)
                    self.assertEqual(
                        [value + 0.0 for value in decoded], [value + 0.0 for value in array("f", case["sum"])]
                    )

    def test_that_are_drawn_come_from_seed_and_step_alone(self):
        drawing = [
            (name, case) for name in terse_codecs.codec_names() for case in vectors()[name] if "seed" in case["call"]
        ]
        if not drawing:
            self.skipTest("no codec of this library draws")
        for name, case in drawing:
            codec, x = terse_codecs.codec(name, **case["parameters"]), array("f", case["x"])
            self.assertTrue(codec.takes_random)
            for missing in ["seed", "step"]:
                with self.assertRaisesRegex(ValueError, f"{missing} is None, and must be a whole number"):
                    codec.encode(x, **{**case["call"], missing: None})
            with self.assertRaisesRegex(ValueError, "index is 63, and must be a multiple of 64"):
                codec.encode(x, **{**case["call"], "index": 63})

    def test_are_what_the_vote_elects(self):
        for case in vectors()["vote"]:
            n = case["n"]
            votes = [None if vote is None else bytes.fromhex(vote) for vote in case["votes"]]
            with self.subTest(n=n, votes=len(votes)):
                self.assertEqual(terse_codecs.majority(votes, n, tie="plus").hex(), case["majorityPlus"])
                self.assertEqual(terse_codecs.majority(votes, n, tie="minus").hex(), case["majorityMinus"])
                plus, nonzero = terse_codecs.majority_or_zero(votes, n)
                self.assertEqual((plus.hex(), nonzero.hex()), (case["plus"], case["nonzero"]))
                self.assertEqual([plane.hex() for plane in terse_codecs.tally(votes, n)], case["planes"])


if __name__ == "__main__":
    unittest.main()
