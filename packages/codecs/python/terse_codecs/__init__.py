"""
Floats to wire bytes and back, and votes among packed signs.

    import numpy, terse_codecs

    qsgd = terse_codecs.codec("qsgd", bits=4, block=512)
    wire = qsgd.encode(gradient, seed=1, step=step)
    qsgd.decode_add(sum, wire, scale=1 / ranks)

Arrays are NumPy's, PyTorch's on the CPU, or anything's with Python's buffer or DLPack; they are never copied. A codec
without parameters is an attribute: `terse_codecs.sign`. Every wire has the bytes that @terse/codecs and the C library
write.
"""

from __future__ import annotations

from typing import List

from . import _library
from ._codec import Codec, codec, is_whole
from ._errors import BadFrameError, BadWireError, CodecError, DoesNotFitError, LibraryError, NotFiniteError
from ._frames import Frame, read_frame, write_frame
from ._votes import MAX_VOTES, majority, majority_or_zero, sign_at, tally, tally_planes, vote_implementation

__all__ = [
    "BadFrameError", "BadWireError", "Codec", "CodecError", "DoesNotFitError", "Frame", "LibraryError", "MAX_VOTES", "NotFiniteError", "codec",
    "codec_names", "implementations", "library_path", "majority", "majority_or_zero", "read_frame", "sign_at", "tally", "tally_planes",
    "use_threads", "vote_implementation", "write_frame",
]  # fmt: skip


def codec_names() -> List[str]:
    """Every codec that there is."""
    return _library.names()


def implementations() -> List[str]:
    """The instruction levels that this machine can run, best first. TERSE_IMPLEMENTATION forces one."""
    return _library.implementations()


def use_threads(threads: int) -> None:
    """
    How many threads share a long encode or decode from now on, the caller's included; 1 at first. The bytes do not
    depend on it. For the whole process. An array shorter than half a million floats is not worth several.
    """
    if not is_whole(threads, 2**32) or threads == 0:
        raise ValueError(f"use_threads: threads is {threads!r}, and must be a whole number, 1 or more.")
    _library.LIBRARY.terse_codecs_use_threads(threads)


def library_path() -> str:
    """The file of the C library that is in use."""
    return _library.PATH


def __getattr__(name: str) -> Codec:
    known = name.replace("_", "-")
    if known not in _library.names():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return codec(known)
    except CodecError as error:  # hasattr and the like expect no other kind
        raise AttributeError(f"{known} takes parameters: terse_codecs.codec({known!r}, …). {error}") from error


def __dir__() -> List[str]:
    return sorted([*globals(), *(name.replace("-", "_") for name in _library.names())])
