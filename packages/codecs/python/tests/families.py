"""The arrays that this Python can make: what a family is not installed for is left out, and said."""

import importlib.util
from array import array

HAS_NUMPY = importlib.util.find_spec("numpy") is not None
HAS_TORCH = importlib.util.find_spec("torch") is not None
NEEDS_NUMPY, NEEDS_TORCH = "NumPy is not installed", "PyTorch is not installed"


class Foreign:
    """An array of a library that speaks DLPack alone: no buffer, and no name that we know."""

    def __init__(self, array, new=True):
        self.array, self.new = array, new

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **said):
        if not self.new and said:
            raise TypeError("this is from before DLPack 1.0")
        return self.array.__dlpack__(**said)


def float_families():
    """By name: a function from a list of floats to such an array."""
    families = {
        "array": lambda x: array("f", x),
        "memoryview": lambda x: memoryview(array("f", x)),
    }
    if HAS_NUMPY:
        import numpy

        families["numpy"] = lambda x: numpy.array(x, numpy.float32)
        families["dlpack"] = lambda x: Foreign(numpy.array(x, numpy.float32))
    if HAS_TORCH:
        import torch

        families["torch"] = lambda x: torch.tensor(x, dtype=torch.float32)
    return families


def byte_families():
    families = {"bytes": bytes, "bytearray": bytearray, "memoryview": memoryview}
    if HAS_NUMPY:
        import numpy

        families["numpy"] = lambda wire: numpy.frombuffer(wire, numpy.uint8)
    if HAS_TORCH:
        import torch

        families["torch"] = lambda wire: torch.tensor(list(wire), dtype=torch.uint8)
    return families


def as_bytes(values):
    """The memory of an array, of whatever family."""
    if isinstance(values, Foreign):
        values = values.array
    return values.numpy().tobytes() if hasattr(values, "numpy") else bytes(memoryview(values).cast("B"))
