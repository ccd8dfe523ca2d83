"""Arrays as addresses, without a copy: PyTorch tensors, whatever has Python's buffer (NumPy, array, bytes), and DLPack.

A `Lent` array keeps its owner alive and its memory in place until it is given back: use it in a `with`.
"""

from __future__ import annotations

import ctypes
import sys
from types import TracebackType
from typing import Any, Dict, Optional, Sequence, Tuple, Type

FLOATS, BYTES = "float32", "uint8"
ITEM_BYTES = {FLOATS: 4, BYTES: 1}
# As the struct module writes them; "=" and "@" mean this machine's order, and ">" is never taken.
FORMATS = {FLOATS: {"f", "=f", "@f"}, BYTES: {"B", "=B", "@B", "<B", ">B", "|B"}}
if sys.byteorder == "little":
    FORMATS[FLOATS].add("<f")
KINDS = {FLOATS: (2, 32, 1), BYTES: (1, 8, 1)}  # DLDataType: code, bits, lanes

TAKEN = "a NumPy array, a PyTorch tensor on the CPU, an array.array, bytes, or an object with __dlpack__"


NOTHING = ctypes.c_uint64()


class Lent:
    """`length` elements at `pointer`, contiguous."""

    __slots__ = ("pointer", "length", "bytes", "_owner", "_buffer", "_written")

    def __init__(
        self,
        pointer: int,
        length: int,
        item: int,
        owner: object,
        buffer: "Optional[Buffer]" = None,
        written: Any = None,
    ) -> None:
        # An empty array may have the address 0, which C would take for no array at all, or an odd one, as array.array
        # does.
        self.pointer, self.length, self.bytes = pointer if length else ctypes.addressof(NOTHING), length, length * item
        self._owner, self._buffer, self._written = owner, buffer, written

    def __enter__(self) -> "Lent":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        if self._buffer is not None:
            release(ctypes.byref(self._buffer))
            self._buffer = None
        if self._written is not None:
            # A backward that still needs what was here says so then, as after PyTorch's own in-place operations.
            sys.modules["torch"].autograd.graph.increment_version(self._written)
        self._owner = self._written = None

    def overlaps(self, other: "Lent") -> bool:
        return bool(
            self.bytes
            and other.bytes
            and self.pointer < other.pointer + other.bytes
            and other.pointer < self.pointer + self.bytes
        )


def lend(array: Any, what: str, dtype: str, writable: bool = False) -> Lent:
    """The elements of `array`, all dimensions as one. What cannot be lent is an error that begins with `what`."""
    lent = lend_any(array, what, dtype, writable)
    if lent.pointer % ITEM_BYTES[dtype]:
        raise ValueError(f"{what} begins at an address that is no multiple of {ITEM_BYTES[dtype]}: copy it.")
    return lent


def lend_any(array: Any, what: str, dtype: str, writable: bool) -> Lent:
    if is_tensor(array):
        return lend_tensor(array, what, dtype, writable)
    if is_numpy(array) and isinstance(array, sys.modules["numpy"].ma.MaskedArray):
        raise TypeError(f"{what} is a masked array, and what its mask says would be lost: call its filled().")
    try:
        view = memoryview(array)
    except TypeError:
        if hasattr(array, "__dlpack__"):
            return lend_dlpack(array, what, dtype, writable)
        raise TypeError(f"{what} is {kind_of(array)}, and must be {TAKEN}.") from None
    except (ValueError, BufferError) as error:  # NumPy's extension dtypes have no buffer
        raise TypeError(f"{what} is {kind_of(array)}, and must be {dtype}: {error}.") from None
    with view:
        return lend_buffer(array, view, what, dtype, writable)


def is_tensor(array: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def is_numpy(array: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(array, numpy.ndarray)


def refuse_overlap(where: str, what: str, written: Lent, others: Dict[str, Lent]) -> None:
    for name, other in others.items():
        if written.overlaps(other):
            raise ValueError(f"{where}: {what} overlaps {name}: give each its own memory.")


def kind_of(array: Any) -> str:
    dtype = getattr(array, "dtype", None)
    return f"a {type(array).__name__}" if dtype is None else f"a {type(array).__name__} of {dtype}"


def lend_tensor(tensor: Any, what: str, dtype: str, writable: bool) -> Lent:
    torch = sys.modules["torch"]
    if tensor.layout != torch.strided:
        raise ValueError(f"{what} is a {tensor.layout} tensor, and must be dense: call its to_dense().")
    if tensor.device.type != "cpu":
        raise ValueError(f"{what} is on {tensor.device}, and codecs run on the CPU: call its cpu().")
    if tensor.dtype != getattr(torch, dtype):
        raise TypeError(f"{what} is a tensor of {tensor.dtype}, and must be torch.{dtype}.")
    if not tensor.is_contiguous():
        raise ValueError(f"{what} is not contiguous: call its contiguous().")
    if tensor.is_neg():  # its memory holds other numbers than it stands for; of real numbers no view is conjugated
        raise ValueError(f"{what} is a negated view: call its resolve_neg().")
    if writable and tensor.requires_grad:
        raise ValueError(f"{what} requires grad, and autograd would not see it written: pass its detach().")
    pointer: int = tensor.data_ptr()
    if pointer == 0 and tensor.numel() > 0:
        raise ValueError(f"{what} is a {type(tensor).__name__} that holds no memory of its own.")
    counts = writable and hasattr(torch.autograd.graph, "increment_version") and not tensor.is_inference()
    return Lent(pointer, tensor.numel(), ITEM_BYTES[dtype], tensor, written=tensor if counts else None)


def lend_buffer(array: Any, view: memoryview, what: str, dtype: str, writable: bool) -> Lent:
    if view.format not in FORMATS[dtype]:
        kind = kind_of(array) if hasattr(array, "dtype") else f"{kind_of(array)} of format {view.format!r}"
        raise TypeError(f"{what} is {kind}, and must be {dtype}.")
    if not view.c_contiguous:
        raise ValueError(f"{what} is not contiguous: copy it, for NumPy with numpy.ascontiguousarray.")
    if writable and view.readonly:
        raise ValueError(f"{what} is read-only, and is written to.")
    buffer = Buffer()
    get_buffer(array, ctypes.byref(buffer), WRITABLE if writable else SIMPLE)
    return Lent(buffer.pointer or 0, view.nbytes // view.itemsize, view.itemsize, array, buffer)


class Buffer(ctypes.Structure):
    """Py_buffer. While it is held the memory neither moves nor goes: a bytearray refuses to be resized."""

    _fields_ = [
        ("pointer", ctypes.c_void_p), ("object", ctypes.c_void_p), ("length", ctypes.c_ssize_t), ("item", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int), ("dimensions", ctypes.c_int), ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p), ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p),
    ]  # fmt: skip


SIMPLE, WRITABLE = 0, 1  # PyBUF_SIMPLE, PyBUF_WRITABLE

get_buffer: Any = ctypes.pythonapi.PyObject_GetBuffer
get_buffer.argtypes, get_buffer.restype = [ctypes.py_object, ctypes.POINTER(Buffer), ctypes.c_int], ctypes.c_int
release: Any = ctypes.pythonapi.PyBuffer_Release
release.argtypes, release.restype = [ctypes.POINTER(Buffer)], None


class Tensor(ctypes.Structure):
    """DLTensor, of dlpack.h."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("dimensions", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64), ("tensor", Tensor),
    ]  # fmt: skip


ON_CPU = {1, 3, 11}  # kDLCPU, kDLCUDAHost, kDLROCMHost: memory that a processor reads
READ_ONLY, COPIED = 1, 2  # DLPACK_FLAG_BITMASK_…

capsule_name: Any = ctypes.pythonapi.PyCapsule_GetName
capsule_name.argtypes, capsule_name.restype = [ctypes.py_object], ctypes.c_char_p
capsule_pointer: Any = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.argtypes, capsule_pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p


def lend_dlpack(array: Any, what: str, dtype: str, writable: bool) -> Lent:
    device = array.__dlpack_device__()[0] if hasattr(array, "__dlpack_device__") else 1
    if device not in ON_CPU:
        raise ValueError(
            f"{what} is on another device (DLPack's {int(device)}), and codecs run on the CPU: copy it there."
        )
    try:
        capsule = array.__dlpack__(max_version=(1, 0))
    except TypeError:  # from before DLPack 1.0
        capsule = array.__dlpack__()
    # Not renamed, the capsule frees what it holds when it goes; the loan keeps it.
    name = capsule_name(capsule)
    if name not in (b"dltensor", b"dltensor_versioned"):
        raise TypeError(f"{what}: its __dlpack__ gives {name!r}, and no dltensor.")
    pointer = capsule_pointer(capsule, name)
    if name == b"dltensor":
        tensor, flags = ctypes.cast(pointer, ctypes.POINTER(Tensor)).contents, READ_ONLY
    else:
        versioned = ctypes.cast(pointer, ctypes.POINTER(Versioned)).contents
        if versioned.major != 1:
            raise TypeError(f"{what} speaks DLPack {versioned.major}, and 1 is known here.")
        tensor, flags = versioned.tensor, versioned.flags
    if (tensor.code, tensor.bits, tensor.lanes) != KINDS[dtype]:
        raise TypeError(f"{what} is {kind_of(array)}, and must be {dtype}.")
    shape = tensor.shape[: tensor.dimensions]
    if tensor.strides and not is_contiguous(shape, tensor.strides[: tensor.dimensions]):
        raise ValueError(f"{what} is not contiguous: copy it first.")
    if writable and flags & (READ_ONLY | COPIED):
        raise ValueError(
            f"{what} is written to, and its DLPack does not say that it may be: pass a NumPy array or a tensor."
        )
    length = 1
    for extent in shape:
        length *= extent
    return Lent((tensor.data or 0) + tensor.byte_offset, length, ITEM_BYTES[dtype], (array, capsule))


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    step = 1
    for extent, stride in reversed(list(zip(shape, strides))):
        if extent == 0:
            return True
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True


def part_of(array: Any, lent: Lent, begin: int, length: int) -> Any:
    """`length` bytes of a lent array of bytes: a view of its family, or a memoryview. It keeps the memory alive."""
    if is_tensor(array) or is_numpy(array):
        return array.reshape(-1)[begin : begin + length]
    try:
        return memoryview(array).cast("B")[begin : begin + length]
    except TypeError:  # what speaks DLPack alone
        part: Any = (ctypes.c_uint8 * length).from_address(lent.pointer + begin)
        part.owner = lent._owner
        return memoryview(part).cast("B")


def new_bytes(length: int, like: Any) -> Any:
    """Uninitialised where possible, of the family of `like`: a tensor, a NumPy array, or a bytearray."""
    if is_tensor(like):
        return sys.modules["torch"].empty(length, dtype=sys.modules["torch"].uint8, device="cpu")
    if is_numpy(like):
        return sys.modules["numpy"].empty(length, dtype="uint8")
    return bytearray(length)


def new_zeros(shape: Tuple[int, ...], like: Any) -> Any:
    """Floats that are 0, of the family of `like`: a tensor, a NumPy array, or an array.array."""
    if is_tensor(like):
        return sys.modules["torch"].zeros(shape, dtype=sys.modules["torch"].float32, device="cpu")
    if is_numpy(like):
        return sys.modules["numpy"].zeros(shape, dtype="float32")
    from array import array

    return array("f", bytes(4 * shape[0]))
