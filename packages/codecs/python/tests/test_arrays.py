import gc
import sys
import unittest
import weakref
from array import array

from families import HAS_NUMPY, HAS_TORCH, NEEDS_NUMPY, NEEDS_TORCH, Foreign, as_bytes, byte_families, float_families
from terse_codecs import majority, sign

if HAS_NUMPY:
    import numpy
if HAS_TORCH:
    import torch

X = [1, -1, -1, 1, 1, 1, -1, 1, -0.5]


class Arrays(unittest.TestCase):
    def test_of_every_family_are_read_and_answered_in_kind(self):
        kinds = {"array": bytearray, "memoryview": bytearray, "dlpack": bytearray}
        kinds.update({"numpy": numpy.ndarray} if HAS_NUMPY else {}, **({"torch": torch.Tensor} if HAS_TORCH else {}))
        for family, make in float_families().items():
            with self.subTest(family=family):
                wire = sign.encode(make(X), zero="plus")
                self.assertIs(type(wire), kinds[family])
                self.assertEqual(as_bytes(wire).hex(), "b900")

    def test_of_every_family_are_wires(self):
        for family, make in byte_families().items():
            with self.subTest(family=family):
                decoded = sign.decode(make(b"\xb9\x00"), 9, scale=0.5)
                self.assertEqual(decoded.tolist(), [0.5, -0.5, -0.5, 0.5, 0.5, 0.5, -0.5, 0.5, -0.5])
                self.assertEqual(as_bytes(majority([make(b"\xb9\x00")], 9, tie="plus")).hex(), "b900")

    def test_without_elements_are_arrays_too(self):
        for family, make in float_families().items():
            with self.subTest(family=family):
                wire = sign.encode(make([]), zero="plus", hold=b"")
                self.assertEqual(len(wire), 0)
                self.assertEqual(len(sign.decode(wire, 0)), 0)
                self.assertEqual(len(majority([wire, wire], 0, tie="plus")), 0)

    def test_are_given_back(self):
        x, wire = array("f", X), bytearray(2)
        sign.encode(x, zero="plus", out=wire)
        with self.assertRaises(ValueError):
            sign.encode(x, zero="plus", out=bytearray(7))
        # A buffer that is still lent could not be resized.
        x.append(1)
        wire.append(1)

    def test_are_not_kept_alive_and_lose_no_reference(self):
        x, wire = array("f", X), sign.encode(array("f", X), zero="plus")
        before = [sys.getrefcount(x), sys.getrefcount(wire)]
        for _ in range(100):
            sign.encode(x, zero="plus", out=wire)
            sign.decode_add(x, wire)
        self.assertEqual([sys.getrefcount(x), sys.getrefcount(wire)], before)
        gone = weakref.ref(x)
        del x
        gc.collect()
        self.assertIsNone(gone())

    def test_of_other_kinds_are_refused_by_name(self):
        for x, kind, words in [
            ([1.0, 2.0], TypeError, "x is a list, and must be a NumPy array"),
            ("text", TypeError, "x is a str"),
            (None, TypeError, "x is a NoneType"),
            (array("d", X), TypeError, "x is a array of format 'd', and must be float32"),
            (b"abcd", TypeError, "x is a bytes of format 'B', and must be float32"),
            (memoryview(array("f", X))[::2], ValueError, "x is not contiguous"),
        ]:
            with self.subTest(words=words), self.assertRaisesRegex(kind, words):
                sign.encode(x, zero="plus")
        with self.assertRaisesRegex(ValueError, "out is read-only"):
            sign.encode(array("f", X), zero="plus", out=bytes(2))
        with self.assertRaisesRegex(ValueError, "sum is read-only"):
            sign.decode_add(memoryview(array("f", X)).toreadonly(), bytes(2))
        with self.assertRaisesRegex(TypeError, "wire is a array of format 'f', and must be uint8"):
            sign.decode(array("f", X), 9)

    @unittest.skipUnless(HAS_NUMPY, NEEDS_NUMPY)
    def test_of_numpy_are_float32_contiguous_and_in_this_machines_order(self):
        x = numpy.array(X, numpy.float32)
        for wrong, kind, words in [
            (x.astype(numpy.float64), TypeError, "ndarray of float64, and must be float32"),
            (x.astype(numpy.float16), TypeError, "float16"),
            (x.astype(x.dtype.newbyteorder("S")), TypeError, "must be float32"),
            (x[::2], ValueError, "not contiguous"),
            (x[::-1], ValueError, "not contiguous"),
            (numpy.asfortranarray(x[:8].reshape(2, 4)), ValueError, "not contiguous"),
            (x.astype("datetime64[s]"), TypeError, "datetime64"),
            (
                numpy.frombuffer(bytes(41), numpy.uint8)[1:37].view(numpy.float32),
                ValueError,
                "x begins at an address that is no multiple of 4",
            ),
            (numpy.ma.masked_array(x, mask=[True] + 8 * [False]), TypeError, "x is a masked array"),
        ]:
            with self.subTest(words=words), self.assertRaisesRegex(kind, words):
                sign.encode(wrong, zero="plus")
        x.flags.writeable = False
        self.assertEqual(sign.encode(x, zero="plus").tolist(), [0xB9, 0])
        with self.assertRaisesRegex(ValueError, "sum is read-only"):
            sign.decode_add(x, bytes(2))

    @unittest.skipUnless(HAS_NUMPY, NEEDS_NUMPY)
    def test_of_any_shape_are_read_in_order_and_written_where_they_lie(self):
        x = numpy.array(X[:8], numpy.float32).reshape(2, 2, 2)
        room = numpy.full(12, 7, numpy.float32)
        self.assertEqual(sign.encode(x, zero="plus").tolist(), [0xB9])
        inside = room[2:10].reshape(4, 2)
        self.assertIs(sign.decode_add(inside, b"\xb9", scale=2), inside)
        self.assertEqual(room.tolist(), [7, 7, 9, 5, 5, 9, 9, 9, 5, 9, 7, 7])
        votes = numpy.array([[0b0110], [0b0011], [0b0101]], numpy.uint8)
        self.assertEqual(majority(votes, 4, tie="plus").tolist(), [0b0111])

    @unittest.skipUnless(HAS_TORCH, NEEDS_TORCH)
    def test_of_torch_are_dense_on_the_cpu_and_not_watched_by_autograd(self):
        x = torch.tensor(X)
        for wrong, kind, words in [
            (x.double(), TypeError, "torch.float64, and must be torch.float32"),
            (x.bfloat16(), TypeError, "torch.bfloat16"),
            (x[::2], ValueError, "call its contiguous"),
            (x.to_sparse(), ValueError, "call its to_dense"),
            (x.to("meta"), ValueError, "x is on meta"),
            (torch.complex(x, x).conj().imag, ValueError, "not contiguous|negated"),
        ]:
            with self.subTest(words=words), self.assertRaisesRegex(kind, words):
                sign.encode(wrong, zero="plus")
        self.assertTrue(torch.complex(x[:1], x[:1]).conj().imag.is_contiguous())
        with self.assertRaisesRegex(ValueError, "negated"):
            sign.encode(torch.complex(x[:1], x[:1]).conj().imag, zero="plus")
        parameter = torch.nn.Parameter(x)
        self.assertEqual(sign.encode(parameter, zero="plus").tolist(), [0xB9, 0])
        with self.assertRaisesRegex(ValueError, "sum requires grad.*detach"):
            sign.decode_add(parameter, bytes(2))
        sign.decode_add(parameter.detach(), b"\xb9\x00")
        self.assertEqual(parameter.tolist(), [2, -2, -2, 2, 2, 2, -2, 2, -1.5])

    @unittest.skipUnless(HAS_TORCH, NEEDS_TORCH)
    def test_of_torch_that_a_backward_still_needs_are_not_written_unnoticed(self):
        for write in [
            lambda saved: sign.decode_add(saved, b"\xff\x01"),
            lambda saved: sign.encode_with_feedback(torch.tensor(X), saved, zero="plus"),
        ]:
            weight, saved = torch.ones(9, requires_grad=True), torch.ones(9)
            loss = (weight * saved).sum()
            write(saved)
            with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                loss.backward()
        read = torch.ones(9)
        loss = (weight * read).sum()
        sign.encode(read, zero="plus")
        loss.backward()
        with torch.inference_mode():
            self.assertEqual(sign.decode_add(torch.zeros(2), b"\x01").tolist(), [1, -1])

    @unittest.skipUnless(HAS_NUMPY, NEEDS_NUMPY)
    def test_of_unknown_libraries_come_by_dlpack(self):
        x = numpy.array(X, numpy.float32)
        for new in [True, False]:
            with self.subTest(new=new):
                self.assertEqual(sign.encode(Foreign(x, new), zero="plus").hex(), "b900")
        for wrong, kind, words in [
            (Foreign(x.astype(numpy.float64)), TypeError, "must be float32"),
            (Foreign(x[::2]), ValueError, "not contiguous"),
        ]:
            with self.subTest(words=words), self.assertRaisesRegex(kind, words):
                sign.encode(wrong, zero="plus")
        before = sys.getrefcount(x)
        for _ in range(100):
            sign.encode(Foreign(x), zero="plus")
        self.assertEqual(sys.getrefcount(x), before)

    @unittest.skipUnless(HAS_NUMPY, NEEDS_NUMPY)
    def test_by_dlpack_are_written_only_where_that_is_said(self):
        x = numpy.array(X, numpy.float32)
        # Before DLPack 1.0 nobody could say so; NumPy's older versions know no other.
        with self.assertRaisesRegex(ValueError, "does not say that it may be"):
            sign.decode_add(Foreign(x, new=False), b"\xb9\x00")
        self.assertEqual(x.tolist(), X)
        if tuple(map(int, numpy.__version__.split(".")[:2])) >= (2, 1):
            sign.decode_add(Foreign(x), b"\xb9\x00")
            self.assertEqual(x.tolist(), [2, -2, -2, 2, 2, 2, -2, 2, -1.5])
            x.flags.writeable = False
            with self.assertRaisesRegex(ValueError, "does not say that it may be"):
                sign.decode_add(Foreign(x), b"\xb9\x00")

    def test_on_another_device_are_refused_before_they_are_asked_for(self):
        class OnDevice:
            def __dlpack_device__(self):
                return 2, 0

            def __dlpack__(self, **said):
                raise AssertionError("nobody may ask")

        with self.assertRaisesRegex(ValueError, "x is on another device .DLPack's 2."):
            sign.encode(OnDevice(), zero="plus")


if __name__ == "__main__":
    unittest.main()
