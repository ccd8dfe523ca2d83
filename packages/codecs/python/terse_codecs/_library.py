"""Finds, loads and checks libterse_codecs; the structs and statuses of native/include/terse/codecs.h."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys
from typing import Any, List

from ._errors import LibraryError

ABI = 5  # TERSE_CODECS_ABI

OK, UNKNOWN, UNAVAILABLE, BAD_ABI = 0, 1, 2, 4
BAD_LENGTH = 5
NOT_FINITE, DOES_NOT_FIT, BAD_WIRE = 8, 9, 10
NOT_TAKEN, BAD_BITS, BAD_WIDTH, TOO_MANY_RANKS, BAD_SCALE_GROUPS, BAD_K, BAD_CHOICE = 11, 13, 14, 15, 16, 17, 20
NOT_A_FRAME, OTHER_VERSION, CUT_SHORT, DAMAGED, BAD_HEADER, NO_ROOM = 21, 22, 23, 24, 25, 26

FRAME_VERSION = 1  # TERSE_FRAME_VERSION

ZERO = {"minus": 1, "plus": 2}
LEVELS = {"uniform": 0, "without-zero": 1, "logarithmic": 2}
INDICES = {"fixed": 0, "elias-fano": 1}
VALUES = {"f32": 0, "f16": 1, "2bit": 2, "sign": 3}

TAKES_ZERO, TAKES_HOLD, TAKES_RANDOM, TAKES_FIELDS, TAKES_UNSCALED = 1 << 0, 1 << 1, 1 << 2, 1 << 6, 1 << 7

MAX_RANKS = 1024  # TERSE_VOTE_MAX_RANKS


class Options(ctypes.Structure):
    """terse_codec_options."""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("bits", ctypes.c_uint32),
        ("width", ctypes.c_uint32),
        ("ranks", ctypes.c_uint32),
        ("unscaled", ctypes.c_uint32),
        ("levels", ctypes.c_int),
        ("dimensions", ctypes.c_uint32),
        ("side", ctypes.c_uint32),
        ("block", ctypes.c_size_t),
        ("segments", ctypes.POINTER(ctypes.c_size_t)),
        ("segment_count", ctypes.c_size_t),
        ("k", ctypes.c_size_t),
        ("clip", ctypes.c_float),
        ("indices", ctypes.c_int),
        ("values", ctypes.c_int),
        ("zero", ctypes.c_int),
        ("hold", ctypes.c_void_p),
        ("seed", ctypes.c_uint64),
        ("step", ctypes.c_uint64),
        ("index", ctypes.c_uint64),
        ("scale", ctypes.c_float),
        ("decay", ctypes.c_float),
        ("units", ctypes.c_void_p),
        ("unit_count", ctypes.c_size_t),
    ]


def new_options() -> Options:
    """TERSE_CODEC_OPTIONS."""
    return Options(size=ctypes.sizeof(Options), scale=1.0, decay=1.0)


class Table(ctypes.Structure):
    """The head of terse_codec: what a caller may read. terse_codec_encode and the others call its functions."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("implementation", ctypes.c_char_p),
        ("takes", ctypes.c_uint32),
        ("whole", ctypes.c_uint32),
    ]


class Frame(ctypes.Structure):
    """terse_frame."""

    _fields_ = [
        ("codec", ctypes.POINTER(Table)),
        ("options", Options),
        ("n", ctypes.c_size_t),
        ("wire", ctypes.c_void_p),
        ("wire_bytes", ctypes.c_size_t),
        ("bytes", ctypes.c_size_t),
    ]


Pointers = ctypes.POINTER(ctypes.c_void_p)


class Vote(ctypes.Structure):
    """terse_vote."""

    _fields_ = [
        ("implementation", ctypes.c_char_p),
        (
            "majority",
            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, Pointers, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int),
        ),
        (
            "majority_or_zero",
            ctypes.CFUNCTYPE(
                ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, Pointers, ctypes.c_size_t, ctypes.c_size_t
            ),
        ),
        ("tally", ctypes.CFUNCTYPE(ctypes.c_int, Pointers, Pointers, ctypes.c_size_t, ctypes.c_size_t)),
    ]


FILE = {"darwin": "libterse_codecs.dylib"}.get(sys.platform, "libterse_codecs.so")


def find() -> str:
    """TERSE_CODECS_LIBRARY, the library inside the wheel, or one that the system's loader knows."""
    named = os.environ.get("TERSE_CODECS_LIBRARY")
    if named:
        if os.path.exists(named):
            return named
        raise LibraryError(
            f"TERSE_CODECS_LIBRARY={named}: there is no such file; unset it, or name {FILE} with its whole path."
        )
    bundled = os.path.join(os.path.dirname(os.path.abspath(__file__)), FILE)
    if os.path.exists(bundled):
        return bundled
    known = ctypes.util.find_library("terse_codecs")
    if known:
        return known
    raise LibraryError(
        f"{FILE} is not beside terse_codecs, and the system's loader knows none: install the package "
        f"(`pip install ./packages/codecs/python` in a checkout of terse), or name the library in the environment variable TERSE_CODECS_LIBRARY."
    )


def load(path: str) -> Any:
    # A CDLL gives up the interpreter's lock while C runs: other Python threads go on meanwhile.
    try:
        library: Any = ctypes.CDLL(path)
        library.terse_codecs_abi.restype = ctypes.c_uint32
        abi = library.terse_codecs_abi()
        if abi != ABI:
            raise LibraryError(
                f"{path} has ABI {abi}, and this terse_codecs speaks ABI {ABI}: install the two from the same release."
            )
        declare(library)
    except (OSError, AttributeError) as error:
        raise LibraryError(f"{path} does not load as libterse_codecs: {error}.") from error
    # The struct's size is its version: the library looks at it before anything else.
    bytes_needed = ctypes.c_size_t()
    options = new_options()
    if (
        library.terse_codec_wire_bytes(library.terse_codec_at(0), 0, ctypes.byref(options), ctypes.byref(bytes_needed))
        == BAD_ABI
    ):
        raise LibraryError(
            f"terse_codec_options has {ctypes.sizeof(Options)} bytes in this terse_codecs and another size in {path}, "
            f"though both speak ABI {ABI}: install the two from the same release."
        )
    return library


def declare(library: Any) -> None:
    size, pointer, options = ctypes.c_size_t, ctypes.c_void_p, ctypes.POINTER(Options)
    table, sizes = ctypes.POINTER(Table), ctypes.POINTER(ctypes.c_size_t)
    signatures = {
        "terse_codec_sentence": (ctypes.c_char_p, [ctypes.c_int]),
        "terse_codec_find": (ctypes.c_int, [ctypes.POINTER(table), ctypes.c_char_p, ctypes.c_char_p]),
        "terse_codec_at": (table, [size]),
        "terse_implementation_at": (ctypes.c_char_p, [size]),
        "terse_codec_wire_bytes": (ctypes.c_int, [table, size, options, sizes]),
        "terse_codec_encode": (ctypes.c_int, [table, pointer, size, pointer, size, options, sizes]),
        "terse_codec_encode_with_feedback": (
            ctypes.c_int,
            [table, pointer, size, pointer, pointer, size, options, sizes],
        ),
        "terse_codec_decode_add": (ctypes.c_int, [table, pointer, size, pointer, size, options]),
        "terse_codec_scales": (ctypes.c_int, [table, pointer, size, pointer, size, options, sizes]),
        "terse_codecs_use_threads": (None, [ctypes.c_uint]),
        "terse_frame_bytes": (ctypes.c_int, [table, size, options, sizes, sizes]),
        "terse_frame_write": (ctypes.c_int, [table, pointer, size, pointer, size, size, options]),
        "terse_frame_read": (ctypes.c_int, [ctypes.POINTER(Frame), pointer, size, sizes, size]),
        "terse_vote_planes": (size, [size]),
        "terse_vote_find": (ctypes.c_int, [ctypes.POINTER(ctypes.POINTER(Vote)), ctypes.c_char_p]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments


PATH = find()
LIBRARY = load(PATH)


def sentence(status: int) -> str:
    text: bytes = LIBRARY.terse_codec_sentence(status)
    return text.decode()


def names() -> List[str]:
    """Every codec of the library, in its order."""
    found: List[str] = []
    i = 0
    while True:
        table = LIBRARY.terse_codec_at(i)
        if not table:
            return found
        name = table.contents.name.decode()
        if name not in found:
            found.append(name)
        i += 1


def implementations() -> List[str]:
    """The instruction levels that this machine can run, best first."""
    found: List[str] = []
    while True:
        name = LIBRARY.terse_implementation_at(len(found))
        if name is None:
            return found
        found.append(name.decode())
