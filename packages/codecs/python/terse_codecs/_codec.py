"""A codec: a wire format for vectors of floats."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import difflib
import itertools
import math
import numbers
import operator
from typing import Any, Dict, List, Optional, Tuple

from . import _library as c
from ._arrays import BYTES, FLOATS, Lent, lend, new_bytes, new_zeros, refuse_overlap
from ._errors import BadWireError, CodecError, DoesNotFitError, NotFiniteError

MOST = 2**48  # floats of a vector
MOST_LENGTHS = 1024  # that a codec remembers
COUNTS = {
    "bits": 2**32,
    "side": 2**32,
    "width": 2**32,
    "ranks": 2**32,
    "dimensions": 2**32,
    "block": MOST + 1,
    "k": MOST + 1,
}
# Wrong whatever the number of floats; the other statuses depend on it.
WRONG_FOR_EVERY_LENGTH = {
    c.NOT_TAKEN,
    c.BAD_BITS,
    c.BAD_WIDTH,
    c.TOO_MANY_RANKS,
    c.BAD_SCALE_GROUPS,
    c.BAD_K,
    c.BAD_CHOICE,
}
WORDS = {"levels": c.LEVELS, "indices": c.INDICES, "values": c.VALUES}
PARAMETERS = (*COUNTS, *WORDS, "unscaled", "segments", "clip")


class Codec:
    """
    One codec with its parameters, made by `terse_codecs.codec`. It keeps no state between calls, and any number of
    threads may use it. Arrays are read and written where they lie: float32 (wires: uint8), contiguous, on the CPU, of
    any shape.
    """

    __slots__ = ("_table", "_options", "_segments", "_parameters", "_name", "_takes", "_lengths")

    def __init__(self, name: str, parameters: Dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"codec: name is {name!r}, and must be one of {', '.join(c.names())}.")
        table = ctypes.POINTER(c.Table)()
        status = c.LIBRARY.terse_codec_find(ctypes.byref(table), name.encode(), None)
        if status == c.UNKNOWN:
            raise ValueError(f"there is no codec {name!r}{nearest(name, c.names())}; there are {', '.join(c.names())}.")
        if status != c.OK:
            raise CodecError(
                f"{name}: {c.sentence(status)} This machine runs {', '.join(c.implementations())}.", status
            )
        self._table: Any = table
        # Each call needs them.
        self._name: str = table.contents.name.decode()
        self._takes = int(table.contents.takes)
        self._lengths: Dict[int, int] = {}  # of wires, by their floats
        self._parameters = {key: value for key, value in parameters.items() if value is not None}
        if self._parameters.get("segments") is not None:
            self._parameters["segments"] = lengths_of(name, self._parameters["segments"])
        self._options, self._segments = options_of(name, self._parameters)
        for key, value in self._parameters.items():  # plain numbers: a tensor, say, may be changed later
            if key in COUNTS or key == "clip":
                self._parameters[key] = float(value) if key == "clip" else operator.index(value)
        if self._takes & c.TAKES_FIELDS and not self._options.width:
            self._choose_width()
        # Parameters that are wrong for every n are refused here, and not only at the first use.
        status = self._status()
        if status in WRONG_FOR_EVERY_LENGTH:
            raise CodecError(f"{self!r}: {c.sentence(status)}", status)

    def _status(self) -> int:
        """The library's status of the parameters, for the floats of the segments, or the most that fit whole chunks."""
        square = max(1, self._options.block**2) if self._options.dimensions == 2 else 1
        length = self._segmented() if self._segments else MOST // square * square
        return int(
            c.LIBRARY.terse_codec_wire_bytes(
                self._table, length, ctypes.byref(self._options), ctypes.byref(ctypes.c_size_t())
            )
        )

    def _choose_width(self) -> None:
        """The narrowest fields that have room for the sum of all ranks."""
        bits = self._options.bits or 1
        for width in sorted({bits, 2, 4, 8, 16} - set(range(bits))):
            self._options.width = width
            if self._status() not in (c.BAD_WIDTH, c.TOO_MANY_RANKS):
                break
        if self._options.width == bits:
            self._options.width = 0  # as it is where nobody says it
        else:
            self._parameters["width"] = self._options.width

    @property
    def name(self) -> str:
        return self._name

    @property
    def parameters(self) -> Dict[str, Any]:
        """The parameters that determine the wire format, the same on every rank."""
        return copy.deepcopy(self._parameters)

    @property
    def implementation(self) -> str:
        """The running implementation: "avx2", "scalar", … All write the same bytes; TERSE_IMPLEMENTATION forces one."""
        text: bytes = self._table.contents.implementation
        return text.decode()

    @property
    def takes_zero(self) -> bool:
        """Whether `encode` needs the sign of an exact zero."""
        return bool(self._takes & c.TAKES_ZERO)

    @property
    def takes_hold(self) -> bool:
        """Whether `encode` and `decode_add` take a mask."""
        return bool(self._takes & c.TAKES_HOLD)

    @property
    def takes_random(self) -> bool:
        """Whether `encode` needs a seed and a step."""
        return bool(self._takes & c.TAKES_RANDOM)

    def __repr__(self) -> str:
        return (
            f"codec({', '.join([repr(self.name), *(f'{key}={value!r}' for key, value in self._parameters.items())])})"
        )

    def _format(self) -> Tuple[Any, ...]:
        """What a frame has of a codec: the same, however the parameters were given."""
        options = self._options
        numbers = [getattr(options, key) for key in (*COUNTS, *WORDS, "unscaled", "clip") if key != "ranks"]
        ends = None if self._segments is None else tuple(options.segments[: options.segment_count])
        return self._name, max(1, options.ranks), *numbers, ends

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Codec) and self._format() == other._format()

    def __hash__(self) -> int:
        return hash(self._format())

    def __reduce__(self) -> Tuple[Any, ...]:
        return Codec, (self.name, self._parameters)

    def wire_bytes(self, n: int) -> int:
        """Bytes for n floats."""
        known = self._lengths.get(n) if type(n) is int else None
        if known is not None:
            return known
        if not is_whole(n, 2**48 + 1):
            raise ValueError(f"{self.name}.wire_bytes: n is {n!r}, and must be a whole number, 0 or more.")
        found = ctypes.c_size_t()
        status = c.LIBRARY.terse_codec_wire_bytes(self._table, n, ctypes.byref(self._options), ctypes.byref(found))
        if status == c.BAD_SCALE_GROUPS:
            raise CodecError(f"{self!r}: the segments add up to {self._segmented()}, and there are {n} floats.", status)
        if status != c.OK:
            raise CodecError(f"{self!r}, {n} floats: {c.sentence(status)}", status)
        if len(self._lengths) == MOST_LENGTHS:
            self._lengths.clear()
        self._lengths[operator.index(n)] = found.value
        return found.value

    def encode(
        self, x: Any, *, zero: Optional[str] = None, hold: Any = None, seed: Optional[int] = None, step: Optional[int] = None,
        index: int = 0, units: Any = None, out: Any = None,
    ) -> Any:  # fmt: skip
        """
        Writes x to a wire and returns it: `out` (exactly wire_bytes(n) bytes), or else a new uint8 array of x's family:
        a tensor for a tensor, a NumPy array for a NumPy array, a bytearray for anything else.

        zero: "plus" or "minus", what an exact zero becomes, where the code has none for it (`takes_zero`).
        hold: ceil(n/8) bytes, bit 1 = this element is masked; the same on every rank (`takes_hold`).
        seed, step, index: randomness is a function of these alone (`takes_random`); index is the place of x[0] in a
        longer array.
        units: for unscaled l1 and linf: the value of a level, one float32 per scale group; the same on every rank.

        NotFiniteError, DoesNotFitError: with the index; the wire is undefined then.
        """
        where = f"{self.name}.encode"
        with lend(x, f"{where}: x", FLOATS) as floats, contextlib.ExitStack() as loans:
            read = {"x": floats}
            options = self._call(loans, where, zero, hold, seed, step, index, units, floats.length, read)
            wire, out = self._wire(loans, where, x, out, floats.length)
            refuse_overlap(where, "out", wire, read)
            bad = ctypes.c_size_t()
            status = c.LIBRARY.terse_codec_encode(
                self._table,
                wire.pointer,
                wire.length,
                floats.pointer,
                floats.length,
                ctypes.byref(options),
                ctypes.byref(bad),
            )
            self._accept(where, status, bad.value, floats)
        return out

    def encode_with_feedback(
        self, x: Any, error: Any, *, zero: Optional[str] = None, hold: Any = None, seed: Optional[int] = None,
        step: Optional[int] = None, index: int = 0, units: Any = None, decay: float = 1.0, out: Any = None,
    ) -> Any:  # fmt: skip
        """
        Error feedback: error = decay * error + x, wire = encode(error), error -= decode(wire). What was not sent stays
        in `error` (as many floats as x, 0 at first); decay is more than 0 and at most 1. Other arguments, result and
        errors as in `encode`; after an exception `error` has its old values, except for rounding.

        Seide et al. 2014, "1-Bit Stochastic Gradient Descent"; Karimireddy et al. 2019, "Error Feedback Fixes SignSGD".
        """
        where = f"{self.name}.encode_with_feedback"
        loans = contextlib.ExitStack()
        with lend(x, f"{where}: x", FLOATS) as floats, lend(error, f"{where}: error", FLOATS, True) as errors, loans:
            if errors.length != floats.length:
                raise ValueError(
                    f"{where}: error has {errors.length} floats, and x has {floats.length}; give it as many, zeros at first."
                )
            read = {"x": floats}
            options = self._call(loans, where, zero, hold, seed, step, index, units, floats.length, read)
            options.decay = decay_of(where, decay)
            wire, out = self._wire(loans, where, x, out, floats.length)
            refuse_overlap(where, "out", wire, read)
            refuse_overlap(where, "error", errors, {**read, "out": wire})
            bad = ctypes.c_size_t()
            status = c.LIBRARY.terse_codec_encode_with_feedback(
                self._table, wire.pointer, wire.length, floats.pointer, errors.pointer, floats.length, ctypes.byref(options), ctypes.byref(bad)
            )  # fmt: skip
            self._accept(where, status, bad.value, floats, errors, options.decay)
        return out

    def decode_add(self, sum: Any, wire: Any, scale: float = 1.0, *, hold: Any = None, units: Any = None) -> Any:
        """
        sum += scale * decode(wire), the product rounded to fp32; held elements keep their value. Returns `sum`. `units`
        as in `encode`.

        A wire that no encoder writes, and that would lead out of `sum` or add NaN: BadWireError, and nothing is added.
        """
        where = f"{self.name}.decode_add"
        loans = contextlib.ExitStack()
        with lend(sum, f"{where}: sum", FLOATS, True) as sums, lend(wire, f"{where}: wire", BYTES) as given, loans:
            read = {"wire": given}
            options = self._call(loans, where, None, hold, None, None, 0, units, sums.length, read, encoding=False)
            try:
                options.scale = scale
            except TypeError:
                raise TypeError(f"{where}: scale is {scale!r}, and must be a number.") from None
            if not math.isfinite(options.scale):
                raise ValueError(f"{where}: scale is {scale!r}, and must be finite in fp32.")
            self._check_length(where, "wire", given, sums.length)
            refuse_overlap(where, "sum", sums, read)
            status = c.LIBRARY.terse_codec_decode_add(
                self._table, sums.pointer, sums.length, given.pointer, given.length, ctypes.byref(options)
            )
            self._accept(where, status, 0, sums)
        return sum

    def decode(self, wire: Any, n: int, scale: float = 1.0, *, hold: Any = None, units: Any = None) -> Any:
        """
        scale * decode(wire), n new floats of the wire's family: a tensor for a tensor, a NumPy array for a NumPy array,
        an array.array for anything else. Held elements are 0.
        """
        self.wire_bytes(n)  # n is checked before so many floats are made
        return self.decode_add(new_zeros((n,), wire), wire, scale, hold=hold, units=units)

    def scales(self, x: Any) -> Any:
        """
        The scale that `encode` would write for each scale group of x: new floats of x's family. Ranks that agree on
        `units` begin with it. NotFiniteError and DoesNotFitError as in `encode`; CodecError if the codec computes no
        scales apart from encoding.
        """
        where = f"{self.name}.scales"
        with contextlib.ExitStack() as loans:
            floats = loans.enter_context(lend(x, f"{where}: x", FLOATS))
            self.wire_bytes(floats.length)
            scales = new_zeros((self._scale_groups(floats.length),), x)
            room = loans.enter_context(lend(scales, f"{where}: scales", FLOATS, writable=True))
            bad = ctypes.c_size_t()
            status = c.LIBRARY.terse_codec_scales(
                self._table,
                room.pointer,
                room.length,
                floats.pointer,
                floats.length,
                ctypes.byref(self._options),
                ctypes.byref(bad),
            )
            if status == c.NOT_TAKEN:
                raise CodecError(f"{where}: this codec computes no scales apart from encoding; call encode.", status)
            self._accept(where, status, bad.value, floats)
        return scales

    def _scale_groups(self, n: int) -> int:
        """How many scale groups n floats are."""
        if self._options.segments:
            return int(self._options.segment_count)
        return -(-n // self._options.block) if self._options.block else int(n > 0)

    def _segmented(self) -> int:
        """The floats that the segments are."""
        return int(self._options.segments[self._options.segment_count - 1]) if self._options.segment_count else 0

    def _call(
        self, loans: "contextlib.ExitStack[Any]", where: str, zero: Optional[str], hold: Any, seed: Optional[int], step: Optional[int],
        index: int, units: Any, n: int, read: Dict[str, Lent], encoding: bool = True,
    ) -> c.Options:  # fmt: skip
        """The options of one call; the memory that they point to is added to `read`."""
        options = c.Options.from_buffer_copy(self._options)
        if encoding and self.takes_zero:
            if not is_word(zero, c.ZERO):
                raise ValueError(
                    f'{where}: zero is {zero!r}, and must be "plus" or "minus"; for "alternate" use sign_at(policy, step), for "hold" a mask.'
                )
            options.zero = c.ZERO[zero]  # type: ignore[index]
        elif zero is not None:
            raise TypeError(f"{where}: {self.name} has a code for zero; leave `zero` out.")
        if encoding and self.takes_random:
            given: Dict[str, Any] = {"seed": seed, "step": step, "index": index}
            for what, value in given.items():
                if not is_whole(value, 2**64):
                    raise ValueError(
                        f"{where}: {what} is {value!r}, and must be a whole number, 0 or more: the same draws come from the same seed and step."
                    )
                setattr(options, what, operator.index(value))
            if index % 64:
                raise ValueError(f"{where}: index is {index}, and must be a multiple of 64.")
        elif seed is not None or step is not None or index:
            raise TypeError(f"{where}: {self.name} draws nothing; leave seed, step and index out.")
        if units is not None:
            if not (self._takes & c.TAKES_UNSCALED and self._options.unscaled):
                raise TypeError(
                    f"{where}: only codecs with unscaled wires (l1, linf) take units, in place of the scales."
                )
            given_units = loans.enter_context(lend(units, f"{where}: units", FLOATS))
            if given_units.length != self._scale_groups(n):
                raise ValueError(
                    f"{where}: there are {given_units.length} units, and {n} floats have {self._scale_groups(n)} scale groups: one each."
                )
            options.units, options.unit_count = given_units.pointer, given_units.length
            read["units"] = given_units
        if hold is not None:
            if not self.takes_hold:
                raise TypeError(f"{where}: {self.name} takes no mask; leave `hold` out.")
            mask = loans.enter_context(lend(hold, f"{where}: hold", BYTES))
            if mask.length != (n + 7) // 8:
                raise ValueError(f"{where}: hold has {mask.length} bytes, and {n} elements take {(n + 7) // 8}.")
            # NULL means no mask at all; a mask of no elements is as good as none.
            options.hold = mask.pointer if n else None
            read["hold"] = mask
        return options

    def _wire(self, loans: "contextlib.ExitStack[Any]", where: str, x: Any, out: Any, n: int) -> Tuple[Lent, Any]:
        if out is None:
            out = new_bytes(self.wire_bytes(n), x)
        wire = loans.enter_context(lend(out, f"{where}: out", BYTES, writable=True))
        self._check_length(where, "out", wire, n)
        return wire, out

    def _check_length(self, where: str, what: str, wire: Lent, n: int) -> None:
        expected = self.wire_bytes(n)
        if wire.length != expected:
            raise ValueError(f"{where}: {what} has {wire.length} bytes, and {n} floats take {expected}.")

    def _accept(
        self, where: str, status: int, bad: int, x: Lent, error: Optional[Lent] = None, decay: float = 1.0
    ) -> None:
        if status == c.OK:
            return
        if status == c.BAD_WIRE:
            raise BadWireError(
                f"{where}: no encoder writes such a wire: it was damaged, or written with other parameters than those of {self!r}.",
                status,
            )
        if status in (c.NOT_FINITE, c.DOES_NOT_FIT):
            what, value = f"x[{bad}]", float_at(x, bad)
            if error is not None and math.isfinite(value):  # each alone may well be a number that can be written
                times = "" if decay == 1 else f"{decay:g} * "
                added = ctypes.c_float(decay * float_at(error, bad)).value
                what, value = f"{times}error[{bad}] + x[{bad}]", ctypes.c_float(added + value).value
            if status == c.NOT_FINITE:
                raise NotFiniteError(
                    f"{where}: {what} is {value}: look for the step at which the loss or a gradient stopped being finite.",
                    status,
                    bad,
                    value,
                )
            raise DoesNotFitError(
                f"{where}: {what} is {value}, which {self!r} cannot write; scale or clamp x, or take another codec.",
                status,
                bad,
                value,
            )
        raise CodecError(f"{where}: {c.sentence(status)}", status)


def decay_of(where: str, decay: Any) -> float:
    """What an error is multiplied by before x is added, in float32."""
    value = ctypes.c_float(float(decay)).value if isinstance(decay, numbers.Real) else math.nan
    if not 0 < value <= 1:
        raise ValueError(f"{where}: decay is {decay!r}, and must be a number, more than 0 and at most 1.")
    return value


def codec(name: str, **parameters: Any) -> Codec:
    """
    A codec by name, with the parameters of its wire: bits, width, ranks, unscaled, levels, dimensions, block, segments
    (lengths), k, clip, indices, values. Each codec takes some of these and refuses the others; its README says which.
    """
    return Codec(name, parameters)


def options_of(name: str, parameters: Dict[str, Any]) -> Tuple[c.Options, Any]:
    options = c.new_options()
    for key, value in parameters.items():
        if key in COUNTS:
            if not is_whole(value, COUNTS[key]):
                raise ValueError(f"{name}: {key} is {value!r}, and must be a whole number from 0 to {COUNTS[key] - 1}.")
            setattr(options, key, operator.index(value))
        elif key not in PARAMETERS:
            raise TypeError(
                f"{name}: there is no parameter {key!r}{nearest(key, PARAMETERS)}; there are {', '.join(PARAMETERS)}."
            )
    unscaled = parameters.get("unscaled", False)
    if not isinstance(unscaled, (bool, int)) or unscaled not in (0, 1):
        raise TypeError(f"{name}: unscaled is {unscaled!r}, and must be True or False.")
    options.unscaled = int(unscaled)
    for key, words in WORDS.items():
        word = parameters.get(key, next(iter(words)))
        if not is_word(word, words):
            raise ValueError(f"{name}: {key} is {word!r}, and must be {', '.join(map(repr, words))}.")
        setattr(options, key, words[word])
    clip = parameters.get("clip", 0.0)
    if not isinstance(clip, numbers.Real) or not 0 <= float(clip) < math.inf:
        raise ValueError(f"{name}: clip is {clip!r}, and must be a number, 0 or more.")
    options.clip = float(clip)
    if not math.isfinite(options.clip) or (clip and not options.clip):
        raise ValueError(f"{name}: clip is {clip!r}, which fp32 does not hold.")
    segments = parameters.get("segments")
    if segments is None:
        return options, None
    ends = list(itertools.accumulate(segments))
    # One more, so that no segments at all are an array too, and not NULL.
    array = (ctypes.c_size_t * (len(ends) + 1))(*ends)
    options.segments, options.segment_count = ctypes.cast(array, ctypes.POINTER(ctypes.c_size_t)), len(ends)
    return options, array


def lengths_of(name: str, segments: Any) -> List[int]:
    """As a tuple of ints, which the caller cannot change."""
    try:
        lengths = list(segments)
    except TypeError:
        raise TypeError(f"{name}: segments is {segments!r}, and must be a list of lengths.") from None
    for i, length in enumerate(lengths):
        if not is_whole(length, MOST + 1):
            raise ValueError(f"{name}: segments[{i}] is {length!r}, and must be a whole number of floats, 0 or more.")
    whole = [operator.index(length) for length in lengths]
    if sum(whole) > MOST:
        raise ValueError(f"{name}: the segments add up to {sum(whole)} floats, and no vector has more than 2^48.")
    return whole


def float_at(floats: Lent, i: int) -> float:
    return ctypes.c_float.from_address(floats.pointer + 4 * i).value


def is_word(value: Any, words: Dict[str, int]) -> bool:
    """Whether it is one of the words; a list, say, cannot be looked up."""
    return isinstance(value, str) and value in words


def is_whole(value: Any, limit: int) -> bool:
    """An int, or what stands for one, like NumPy's; but True is no number here."""
    return not isinstance(value, bool) and hasattr(value, "__index__") and 0 <= operator.index(value) < limit


def nearest(word: str, words: "List[str] | Tuple[str, ...]") -> str:
    close = difflib.get_close_matches(word, words, 1)
    return f" (did you mean {close[0]!r}?)" if close else ""
