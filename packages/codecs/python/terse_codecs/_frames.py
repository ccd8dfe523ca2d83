"""Frames: a wire with a header that names its codec and parameters, and a checksum: see docs/wire-formats.md."""

from __future__ import annotations

import contextlib
import ctypes
from typing import Any, Dict, NamedTuple

from . import _library as c
from ._arrays import BYTES, lend, new_bytes, part_of
from ._codec import WORDS, Codec
from ._errors import BadFrameError, CodecError

# Why bytes are refused, in the order of the checks; any other status is about the parameters.
REASONS = {
    c.NOT_A_FRAME: "not a frame", c.OTHER_VERSION: "another version", c.CUT_SHORT: "cut short", c.DAMAGED: "damaged",
    c.BAD_HEADER: "bad header", c.UNKNOWN: "unknown codec", c.BAD_LENGTH: "wrong length",
}  # fmt: skip


class Frame(NamedTuple):
    """The contents of a frame."""

    codec: Codec  # with its parameters
    n: int  # floats; a frame of a sparse codec may describe many floats in few bytes: check n before allocating
    wire: Any  # a view of the frame's bytes; `codec.decode(wire, n)` gives the floats
    bytes: int  # of the whole frame; later bytes were not read


def write_frame(codec: Codec, wire: Any, n: int) -> Any:
    """
    A frame around `wire`, which `codec` wrote from n floats: a new uint8 array of the wire's family. It contains
    neither the mask of held elements nor a seed, because decoding needs none.

    ValueError for a wire of another length, and for parameters that do not fit into a frame.
    """
    where = "write_frame"
    if not isinstance(codec, Codec):
        raise TypeError(f"{where}: codec is {codec!r}, and must be a terse_codecs.Codec.")
    expected = codec.wire_bytes(n)
    with contextlib.ExitStack() as loans:
        given = loans.enter_context(lend(wire, f"{where}: wire", BYTES))
        if given.length != expected:
            raise ValueError(f"{where}: wire has {given.length} bytes, and {n} floats of {codec!r} take {expected}.")
        options, size = ctypes.byref(codec._options), ctypes.c_size_t()
        accept(where, codec, c.LIBRARY.terse_frame_bytes(codec._table, n, options, ctypes.byref(size), None))
        frame = new_bytes(size.value, wire)
        room = loans.enter_context(lend(frame, f"{where}: frame", BYTES, writable=True))
        status = c.LIBRARY.terse_frame_write(
            codec._table, room.pointer, room.length, given.pointer, given.length, n, options
        )
        accept(where, codec, status)
    return frame


def read_frame(data: Any) -> Frame:
    """
    The frame at the beginning of `data`, a uint8 array of any family with any bytes. The wire is not copied: it is a
    part of `data`, of the same family, or a memoryview.

    BadFrameError, a ValueError with a `reason`, if the bytes are refused.
    """
    with lend(data, "read_frame: data", BYTES) as lent:
        read, segments = c.Frame(), None
        status = c.LIBRARY.terse_frame_read(ctypes.byref(read), lent.pointer, lent.length, None, 0)
        if status == c.NO_ROOM:  # never more than the bytes hold
            segments = (ctypes.c_size_t * read.options.segment_count)()
            status = c.LIBRARY.terse_frame_read(ctypes.byref(read), lent.pointer, lent.length, segments, len(segments))
        if status != c.OK:
            raise BadFrameError(
                f"read_frame: {why(status, lent.pointer, lent.length)}",
                status,
                REASONS.get(status, "refused parameters"),
            )
        codec = Codec(read.codec.contents.name.decode("ascii"), parameters_of(read.options))
        return Frame(
            codec,
            read.n,
            part_of(data, lent, read.wire - lent.pointer if read.wire_bytes else 0, read.wire_bytes),
            read.bytes,
        )


def accept(where: str, codec: Codec, status: int) -> None:
    if status != c.OK:
        raise CodecError(f"{where}: {codec!r}: {c.sentence(status)}", status)


def why(status: int, pointer: int, length: int) -> str:
    """The library's sentence, or one with what the bytes say."""
    if status in (c.NOT_A_FRAME, c.DAMAGED, c.BAD_HEADER):
        return c.sentence(status)
    if status == c.CUT_SHORT:
        return f"the frame is cut short: it has more bytes than the {length} that are here."
    head = ctypes.string_at(pointer, 8 if status == c.OTHER_VERSION else 32)
    if status == c.OTHER_VERSION:
        return (
            f"the frame is of version {int.from_bytes(head[4:8], 'little')}, and this library reads {c.FRAME_VERSION}."
        )
    name, n = head[8:24].rstrip(b"\0").decode("ascii", "backslashreplace"), int.from_bytes(head[24:32], "little")
    if status == c.UNKNOWN:
        return f"there is no codec {name!r}; there are {', '.join(c.names())}."
    if status == c.BAD_LENGTH:
        return f"the wire does not have the bytes that {n} floats of {name} take with the frame's parameters."
    return f"{name} refuses the frame's parameters for {n} floats: {c.sentence(status)}"


def parameters_of(options: c.Options) -> Dict[str, Any]:
    """The parameters of a header: those that are not 0."""
    given: Dict[str, Any] = {
        key: getattr(options, key) for key in ("bits", "side", "width", "ranks", "dimensions", "block", "k", "clip")
    }
    given["unscaled"] = bool(options.unscaled)
    for key, words in WORDS.items():
        given[key] = getattr(options, key) and list(words)[getattr(options, key)]
    ends = options.segments[: options.segment_count]
    given["segments"] = [end - begin for begin, end in zip([0, *ends], ends)]
    return {key: value for key, value in given.items() if value}
