import unittest

from terse_codecs import majority, majority_or_zero, tally, tally_planes, vote_implementation, implementations

VOTES = [b"\x03", b"\x01"]


class Votes(unittest.TestCase):
    def test_say_of_ties_what_the_policy_says(self):
        self.assertEqual(majority(VOTES, 3, tie="plus"), b"\x03")
        self.assertEqual(majority(VOTES, 3, tie="minus"), b"\x01")
        self.assertEqual(majority_or_zero(VOTES, 3), (b"\x01", b"\x05"))
        self.assertEqual(tally(VOTES, 3), [b"\x02", b"\x01"])
        self.assertEqual([tally_planes(ranks) for ranks in [1, 2, 3, 4, 7, 8, 1024]], [1, 2, 2, 3, 3, 4, 11])
        self.assertIn(vote_implementation(), implementations())

    def test_leave_absent_ranks_out(self):
        self.assertEqual(majority([None, b"\x03", None], 3, tie="plus"), b"\x03")
        self.assertEqual(len(tally([None, b"\x03", None], 3)), 2)

    def test_are_elected_into_memory_that_is_given(self):
        votes = [bytearray(wire) for wire in VOTES]
        self.assertIs(majority(votes, 3, tie="plus", out=votes[1]), votes[1])
        self.assertEqual(votes, [b"\x03", b"\x03"])
        planes = [bytearray(1), bytearray(1)]
        self.assertEqual(tally(VOTES, 3, out=planes), [b"\x02", b"\x01"])
        self.assertEqual(planes, [b"\x02", b"\x01"])

    def test_are_refused_in_one_sentence_where_something_is_wrong(self):
        room = bytearray(40)
        part = lambda begin: memoryview(room)[begin : begin + 8]  # noqa: E731
        for wrong, kind, words in [
            (lambda: majority([], 3, tie="plus"), ValueError, "there are 0 votes, and 1 to 1024 are possible"),
            (lambda: majority([b"\0"] * 1025, 3, tie="plus"), ValueError, "there are 1025 votes"),
            (lambda: majority([None, None], 3, tie="plus"), ValueError, "all 2 ranks are absent"),
            (lambda: majority(VOTES, 9, tie="plus"), ValueError, r"votes\[0\] has 1 bytes, and 9 elements take 2"),
            (lambda: majority(VOTES, 2.5, tie="plus"), ValueError, "n is 2.5"),
            (lambda: majority(VOTES, 3, tie="zero"), ValueError, "majority_or_zero"),
            (lambda: majority(b"\x03", 3, tie="plus"), TypeError, "votes is one bytes, and must be a list"),
            (lambda: majority(set(VOTES), 3, tie="plus"), TypeError, "votes is a set, and must be a list"),
            (lambda: majority({0: VOTES[0]}, 3, tie="plus"), TypeError, "votes is a dict, and must be a list"),
            (lambda: majority(iter(VOTES), 3, tie="plus"), TypeError, "votes is a list_iterator, and must be a list"),
            (lambda: majority(VOTES, 3, tie="plus", out=bytearray(2)), ValueError, "out has 2 bytes"),
            (lambda: majority([part(0)], 64, tie="plus", out=part(1)), ValueError, r"out overlaps votes\[0\]"),
            (lambda: majority_or_zero([part(0)], 64, out=(part(8), part(9))), ValueError, "two results overlap"),
            (lambda: tally(VOTES, 3, out=[bytearray(1)]), ValueError, "a count of 2 votes takes 2 planes, not 1"),
            (lambda: tally_planes(-1), ValueError, "ranks is -1"),
        ]:
            with self.subTest(words=words), self.assertRaisesRegex(kind, words):
                wrong()
        self.assertEqual(bytes(room), bytes(40))


if __name__ == "__main__":
    unittest.main()
