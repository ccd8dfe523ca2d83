import copy
import math
import pickle
import random
import threading
import unittest
from array import array

import terse_codecs
from terse_codecs import BadWireError, CodecError, DoesNotFitError, NotFiniteError, codec, sign


def floats(*values):
    return array("f", values)


class ACodec(unittest.TestCase):
    def test_is_found_by_name_and_as_an_attribute(self):
        self.assertEqual(sign, codec("sign"))
        self.assertEqual((sign.name, sign.parameters, repr(sign)), ("sign", {}, "codec('sign')"))
        self.assertIn(sign.implementation, terse_codecs.implementations())
        self.assertIn("sign", dir(terse_codecs))
        with self.assertRaisesRegex(AttributeError, "no attribute 'sing'"):
            terse_codecs.sing
        self.assertEqual(terse_codecs.scaled_sign, codec("scaled-sign"))
        with self.assertRaisesRegex(AttributeError, "qsgd takes parameters: terse_codecs.codec.'qsgd', …"):
            terse_codecs.qsgd
        with self.assertRaisesRegex(AttributeError, "top-k takes parameters"):
            terse_codecs.top_k

    def test_travels_to_other_processes(self):
        self.assertEqual(pickle.loads(pickle.dumps(sign)), sign)
        self.assertEqual(hash(codec("sign")), hash(sign))
        halves = codec("scaled-sign", segments=(length for length in [2, 1]))
        self.assertEqual(pickle.loads(pickle.dumps(halves)), codec("scaled-sign", segments=[2, 1]))

    def test_keeps_the_parameters_that_it_was_made_with(self):
        lengths = [2, 1]
        halves = codec("scaled-sign", segments=lengths)
        lengths[0] = 7
        halves.parameters["segments"][0] = 8
        self.assertEqual((halves.parameters, halves.wire_bytes(3)), ({"segments": [2, 1]}, 9))

    def test_keeps_plain_numbers_of_whatever_stood_for_them(self):
        class Number:
            value = 4

            def __index__(self):
                return self.value

        bits = Number()
        l1 = codec("l1", bits=bits)
        bits.value = 5
        self.assertEqual((repr(l1), pickle.loads(pickle.dumps(l1)).wire_bytes(8)), ("codec('l1', bits=4)", 8))

    def test_equals_a_codec_whose_frames_are_the_same(self):
        l1 = codec("l1", bits=4, block=8)
        for same in [codec("l1", block=8, bits=4), codec("l1", bits=4, block=8, ranks=1, unscaled=False)]:
            self.assertEqual((same, hash(same)), (l1, hash(l1)))
        linf = codec("linf", bits=4, levels="uniform", ranks=1)
        wire = linf.encode(floats(1, 2, 3), seed=1, step=0)
        self.assertEqual(terse_codecs.read_frame(terse_codecs.write_frame(linf, wire, 3)).codec, linf)
        for other in [codec("l1", bits=4), codec("l1", bits=4, block=9), codec("qsgd", bits=4, block=8)]:
            self.assertNotEqual(other, l1)

    def test_takes_the_narrowest_fields_with_room_for_all_ranks(self):
        # ranks (2^bits - 1) <= 2^width - 1, and count has no fields of one bit.
        for ranks, width in [(1, 2), (3, 2), (4, 4), (15, 4), (16, 8), (255, 8), (256, 16), (65535, 16)]:
            self.assertEqual(codec("count", ranks=ranks).parameters, {"ranks": ranks, "width": width})
        with self.assertRaisesRegex(CodecError, "So many ranks"):
            codec("count", ranks=65536)
        self.assertEqual(codec("l1", bits=5, unscaled=True, ranks=8).parameters["width"], 8)  # 8 * 31 = 248
        self.assertEqual(codec("l1", bits=5, unscaled=True, ranks=9).parameters["width"], 16)
        self.assertEqual(codec("l1", bits=5).parameters, {"bits": 5})
        self.assertEqual(codec("l1", bits=7, side=42, width=8, unscaled=True, ranks=3).wire_bytes(10), 10)

    def test_says_which_name_or_parameter_is_wrong(self):
        for wrong, kind, words in [
            (lambda: codec("sing"), ValueError, "no codec 'sing' .did you mean 'sign'."),
            (lambda: codec("sign", bit=3), TypeError, "no parameter 'bit' .did you mean 'bits'."),
            (lambda: codec("sign", bits=3), CodecError, "does not take"),
            (lambda: codec(None), TypeError, "name is None, and must be one of .*sign"),
            (lambda: codec("top-k"), CodecError, "k must be at least 1"),
            (lambda: codec("dct-top-k", block=8), CodecError, "k must be at least 1"),
            (lambda: codec("dct-top-k", block=8, k=9), CodecError, "k must be at least 1"),
            (lambda: codec("l1", bits=4, segments=3), TypeError, "segments is 3, and must be a list of lengths"),
            (lambda: codec("l1", bits=4, segments=[2**48, 1]), ValueError, "add up to 281474976710657 floats"),
            (lambda: codec("terngrad", clip=1e-50), ValueError, "clip is 1e-50, which fp32 does not hold"),
            (lambda: codec("terngrad", clip=1e39), ValueError, r"clip is 1e\+39, which fp32 does not hold"),
            (
                lambda: codec("count", width=4, ranks=16),
                CodecError,
                r"codec.'count', width=4, ranks=16.: So many ranks .* do not fit the field",
            ),
            # 18 * 15 > 255
            (lambda: codec("l1", bits=4, width=8, unscaled=True, ranks=18), CodecError, "So many ranks"),
            (lambda: codec("count", width=5), CodecError, "fields of that width"),
            (lambda: codec("sign", bits=-1), ValueError, "bits is -1"),
            (lambda: codec("sign", bits=True), ValueError, "bits is True"),
            (lambda: codec("sign", block=1.5), ValueError, "block is 1.5"),
            (lambda: codec("sign", segments=[3, -1]), ValueError, r"segments\[1\] is -1"),
            (lambda: codec("sign", levels="many"), ValueError, "levels is 'many'"),
            (lambda: codec("sign", levels=["uniform"]), ValueError, r"levels is .'uniform'., and must be 'uniform', "),
            (lambda: codec("sign", clip=math.nan), ValueError, "clip is nan"),
            (lambda: codec("sign", unscaled="yes"), TypeError, "unscaled is 'yes'"),
            (lambda: sign.wire_bytes(-1), ValueError, "n is -1"),
            (lambda: sign.wire_bytes(2.0), ValueError, "n is 2.0"),
        ]:
            with self.subTest(words=words), self.assertRaisesRegex(kind, words):
                wrong()

    def test_says_which_argument_of_a_call_is_wrong_and_writes_nothing(self):
        x, wire = floats(1, -1, 1), bytearray(b"\xa5")
        for wrong, kind, words in [
            (lambda: sign.encode(x, out=wire), ValueError, "zero is None"),
            (lambda: sign.encode(x, out=wire, zero="alternate"), ValueError, "sign_at"),
            (lambda: sign.encode(x, out=wire, zero=["plus"]), ValueError, r"zero is .'plus'., and must be"),
            (lambda: terse_codecs.majority([wire], 3, tie=["plus"]), ValueError, r"tie is .'plus'., and must be"),
            (lambda: terse_codecs.sign_at(["plus"], 0), ValueError, r"policy is .'plus'., and must be"),
            (lambda: sign.encode(x, out=bytearray(2), zero="plus"), ValueError, "out has 2 bytes, and 3 floats take 1"),
            (lambda: sign.encode(x, out=wire, zero="plus", seed=1), TypeError, "draws nothing"),
            (
                lambda: sign.encode(x, out=wire, zero="plus", hold=bytes(2)),
                ValueError,
                "hold has 2 bytes, and 3 elements take 1",
            ),
            (
                lambda: sign.encode(x, out=memoryview(x).cast("B")[:1], zero="plus"),
                ValueError,
                "sign.encode: out overlaps x",
            ),
            (lambda: sign.encode(x, out=wire, zero="plus", hold=wire), ValueError, "out overlaps hold"),
            (lambda: sign.encode_with_feedback(x, x, out=wire, zero="plus"), ValueError, "error overlaps x"),
            (
                lambda: sign.encode_with_feedback(floats(1, 1, 1), x, out=memoryview(x).cast("B")[:1], zero="plus"),
                ValueError,
                "error overlaps out",
            ),
            (lambda: sign.decode_add(x, memoryview(x).cast("B")[11:]), ValueError, "sum overlaps wire"),
            (lambda: sign.decode_add(x, wire, hold=memoryview(x).cast("B")[:1]), ValueError, "sum overlaps hold"),
            (
                lambda: sign.encode_with_feedback(x, floats(0, 0), out=wire, zero="plus"),
                ValueError,
                "error has 2 floats, and x has 3",
            ),
            (lambda: sign.decode_add(x, bytes(2)), ValueError, "wire has 2 bytes, and 3 floats take 1"),
            (lambda: sign.decode_add(x, bytes(1), math.inf), ValueError, "scale is inf"),
            (lambda: sign.decode_add(x, bytes(1), 1e39), ValueError, r"scale is 1e\+39, and must be finite in fp32"),
            (lambda: sign.decode_add(x, bytes(1), "2"), TypeError, "decode_add: scale is '2', and must be a number"),
            (lambda: sign.decode(bytes(1), -3), ValueError, "n is -3"),
        ]:
            with self.subTest(words=words), self.assertRaisesRegex(kind, words):
                wrong()
        self.assertEqual((list(x), bytes(wire)), ([1, -1, 1], b"\xa5"))

    def test_names_the_first_number_that_is_not_finite(self):
        for bad in [math.nan, math.inf, -math.inf]:
            with self.assertRaises(NotFiniteError) as caught:
                sign.encode(floats(1, 2, bad, math.nan), zero="plus")
            self.assertEqual(caught.exception.index, 2)
            self.assertEqual(str(caught.exception.value), str(bad))
            self.assertIn(f"sign.encode: x[2] is {bad}", str(caught.exception))
        self.assertTrue(issubclass(NotFiniteError, DoesNotFitError) and issubclass(BadWireError, ValueError))

    def test_names_the_first_number_that_does_not_fit(self):
        with self.assertRaises(DoesNotFitError) as caught:
            codec("f16").encode(floats(1, 65504, -65520, 1e6))  # 65504 is the largest half
        self.assertEqual((caught.exception.index, caught.exception.value), (2, -65520))
        self.assertNotIsInstance(caught.exception, NotFiniteError)
        self.assertIn("x[2] is -65520.0, which codec('f16') cannot write", str(caught.exception))

    def test_hands_its_errors_on_from_worker_processes(self):
        errors = []
        for wrong in [
            lambda: sign.encode(floats(1, math.nan), zero="plus"),
            lambda: codec("f16").encode(floats(1e6)),
            lambda: codec("f16").decode_add(floats(1), bytes.fromhex("007c")),
            lambda: terse_codecs.read_frame(b"TRSE"),
        ]:
            with self.assertRaises(CodecError) as caught:
                wrong()
            errors.append(caught.exception)
        for error in errors:
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                for copied in [pickle.loads(pickle.dumps(error, protocol)), copy.deepcopy(error)]:
                    self.assertIs(type(copied), type(error))
                    self.assertEqual((str(copied), copied.args), (str(error), error.args))
                    self.assertEqual(str(vars(copied)), str(vars(error)))  # a NaN is no NaN

    def test_adds_nothing_of_a_wire_that_no_encoder_writes(self):
        sums = floats(1, 2)
        with self.assertRaisesRegex(BadWireError, "f16.decode_add: no encoder writes such a wire"):
            codec("f16").decode_add(sums, bytes.fromhex("003c007c"))  # 1, and an infinity
        self.assertEqual(list(sums), [1, 2])

    def test_has_segments_that_add_up(self):
        halves = codec("scaled-sign", segments=[2, 1])
        self.assertEqual(halves.wire_bytes(3), 2 * 4 + 1)
        with self.assertRaisesRegex(CodecError, "the segments add up to 3, and there are 4 floats"):
            halves.encode(floats(1, 2, 3, 4), zero="plus")
        with self.assertRaisesRegex(CodecError, "Scales go by block, or by segments"):
            codec("scaled-sign", segments=[2, 1], block=2)
        self.assertEqual(codec("scaled-sign", segments=[]).wire_bytes(0), 0)

    def test_computes_scales_that_it_would_write(self):
        linf = codec("linf", bits=4, block=2, unscaled=True)
        self.assertEqual(list(linf.scales(floats(0.5, -2, 1, 0, -0.25))), [2, 1, 0.25])
        self.assertEqual(
            list(codec("linf", bits=4, segments=[3, 0, 2]).scales(floats(0.5, -2, 1, 0, -0.25))), [2, 0, 0.25]
        )
        self.assertEqual(list(codec("linf", bits=4).scales(floats())), [])
        with self.assertRaises(NotFiniteError) as caught:
            linf.scales(floats(1, 2, 3, math.nan))
        self.assertEqual(caught.exception.index, 3)
        x, wire = floats(1, 2, 3), bytearray(linf.wire_bytes(3))
        for wrong, kind, words in [
            (lambda: sign.scales(x), CodecError, "this codec computes no scales"),
            (
                lambda: sign.encode(x, zero="plus", units=floats(1)),
                TypeError,
                r"only codecs with unscaled wires \(l1, linf\) take units",
            ),
            (lambda: codec("l1", bits=4).encode(x, units=floats(1)), TypeError, "only codecs with unscaled"),
            (
                lambda: linf.decode_add(x, wire, units=floats(1)),
                ValueError,
                "there are 1 units, and 3 floats have 2 scale groups",
            ),
            (lambda: linf.decode_add(x, wire, units=floats(1, -1)), CodecError, "units not negative"),
            (lambda: linf.decode_add(x, wire, units=memoryview(x)[1:]), ValueError, "sum overlaps units"),
        ]:
            with self.subTest(words=words), self.assertRaisesRegex(kind, words):
                wrong()
        self.assertEqual(list(x), [1, 2, 3])

    def test_keeps_in_error_what_it_could_not_send(self):
        error = floats(0, 0, 0)
        wires = [sign.encode_with_feedback(floats(0.25, -3, 1), error, zero="plus").hex() for _ in range(3)]
        # The first element goes 0.25 - 1, 0.25 - 0.75 + 1, 0.25 + 0.5 - 1: all of it exact.
        self.assertEqual(wires, ["05", "04", "05"])
        self.assertEqual(list(error), [-0.25, -6, 0])
        before = list(error)
        with self.assertRaises(NotFiniteError) as caught:
            sign.encode_with_feedback(floats(1, math.inf, 1), error, zero="plus")
        self.assertEqual((caught.exception.index, list(error)), (1, before))

    def test_multiplies_the_error_by_its_decay(self):
        error = floats(8, -4, 2)
        wire = sign.encode_with_feedback(floats(1, 1, -3), error, zero="plus", decay=0.5)
        # 0.5 * 8 + 1, 0.5 * -4 + 1, 0.5 * 2 - 3, less the signs: all of it exact.
        self.assertEqual((wire.hex(), list(error)), ("01", [4, 0, -1]))
        for decay in [0, -1, 1.5, math.nan, "1"]:
            with self.assertRaisesRegex(ValueError, "decay is .*, and must be a number, more than 0 and at most 1"):
                sign.encode_with_feedback(floats(1, 1, 1), error, zero="plus", decay=decay)
        self.assertEqual(list(error), [4, 0, -1])

    def test_says_that_a_sum_with_error_is_what_left_the_range(self):
        largest = 3.4028234663852886e38
        error = floats(0, largest)
        with self.assertRaisesRegex(NotFiniteError, r"error\[1\] \+ x\[1\] is inf") as caught:
            sign.encode_with_feedback(floats(1, largest), error, zero="plus")
        self.assertEqual(caught.exception.index, 1)

    def test_gives_every_thread_its_own_bytes(self):
        draw = random.Random(4)
        n = 200_003
        inputs = [floats(*(draw.uniform(-1, 1) for _ in range(n))) for _ in range(4)]
        mask = bytes(draw.randrange(256) for _ in range((n + 7) // 8))
        calls = [{"zero": "plus"}, {"zero": "minus"}, {"zero": "plus", "hold": mask}, {"zero": "minus", "hold": mask}]
        alone = [bytes(sign.encode(x, **call)) for x, call in zip(inputs, calls)]
        results = [[] for _ in inputs]
        start = threading.Barrier(len(inputs))

        def work(i):
            start.wait()
            for _ in range(20):
                results[i].append(bytes(sign.encode(inputs[i], **calls[i])))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(inputs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(
            [[wire == expected for wire in wires] for wires, expected in zip(results, alone)], [[True] * 20] * 4
        )

    def test_writes_the_same_bytes_with_several_threads(self):
        draw = random.Random(5)
        x = floats(*(draw.uniform(-1, 1) for _ in range(9973))) * 200
        alone = sign.encode(x, zero="plus")
        self.addCleanup(terse_codecs.use_threads, 1)
        terse_codecs.use_threads(3)
        self.assertEqual(sign.encode(x, zero="plus"), alone)
        self.assertEqual(sign.decode(alone, len(x))[-3:].tolist(), [math.copysign(1, value) for value in x[-3:]])
        for wrong in [0, -1, 1.5, True]:
            with self.assertRaisesRegex(ValueError, f"threads is {wrong}"):
                terse_codecs.use_threads(wrong)


class Policies(unittest.TestCase):
    def test_alternate_from_plus(self):
        self.assertEqual(
            [terse_codecs.sign_at("alternate", step) for step in range(4)], ["plus", "minus", "plus", "minus"]
        )
        self.assertEqual([terse_codecs.sign_at(policy, 7) for policy in ["plus", "minus"]], ["plus", "minus"])
        with self.assertRaisesRegex(ValueError, "policy is 'hold'"):
            terse_codecs.sign_at("hold", 0)
        for step in [0.5, None, "1", True]:
            with self.assertRaisesRegex(ValueError, f"step is {step!r}, and must be a whole number"):
                terse_codecs.sign_at("alternate", step)


if __name__ == "__main__":
    unittest.main()
