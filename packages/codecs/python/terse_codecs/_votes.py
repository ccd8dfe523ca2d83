"""Majority votes over packed signs, per element. The signs stay packed."""

from __future__ import annotations

import contextlib
import ctypes
import operator
from collections.abc import Mapping
from typing import Any, List, Optional, Sequence, Tuple

from . import _library as c
from ._arrays import BYTES, Lent, lend, new_bytes
from ._codec import is_whole, is_word
from ._errors import CodecError

MAX_VOTES = c.MAX_RANKS


def sign_at(policy: str, step: int) -> str:
    """
    The sign that a policy gives at one step. "alternate" is plus in even steps and minus in odd ones, so that elements
    that always tie stay where they are in the long run (Lion Cub, section 3.2, which has plus in odd steps). It depends
    on the step alone, so every rank gets the same sign.
    """
    if is_word(policy, c.ZERO):
        return policy
    if policy != "alternate":
        raise ValueError(f'sign_at: policy is {policy!r}, and must be "plus", "minus" or "alternate".')
    if isinstance(step, bool) or not hasattr(step, "__index__"):
        raise ValueError(f"sign_at: step is {step!r}, and must be a whole number.")
    return "minus" if operator.index(step) % 2 else "plus"


def majority(votes: Sequence[Any], n: int, *, tie: str, out: Any = None) -> Any:
    """
    The sign that most votes have, per element, packed; a tie becomes `tie`, "plus" or "minus". `votes` are 1 to 1024
    wires of n signs, or the rows of a uint8 matrix. None is the vote of an absent rank, which does not count; not all
    may be absent. `out` may be one of the votes; without it the result is a new array of the votes' family.
    """
    if not is_word(tie, c.ZERO):
        raise ValueError(
            f'majority: tie is {tie!r}, and must be "plus" or "minus"; for "zero" use majority_or_zero, for "alternate" pass sign_at(policy, step).'
        )
    with contextlib.ExitStack() as loans:
        given = lend_votes(loans, "majority", votes, n)
        out = new_result(votes, n) if out is None else out
        result = lend_result(loans, "majority: out", out, n, given)
        accept("majority", vote().majority(result.pointer, pointers(given), len(given), n, c.ZERO[tie]))
    return out


def majority_or_zero(votes: Sequence[Any], n: int, *, out: Optional[Tuple[Any, Any]] = None) -> Tuple[Any, Any]:
    """As `majority`, but (plus, nonzero), packed: plus where plus has more votes, nonzero where there is no tie."""
    with contextlib.ExitStack() as loans:
        given = lend_votes(loans, "majority_or_zero", votes, n)
        plus, nonzero = (new_result(votes, n), new_result(votes, n)) if out is None else out
        results = [
            lend_result(loans, "majority_or_zero: plus", plus, n, given),
            lend_result(loans, "majority_or_zero: nonzero", nonzero, n, given),
        ]
        apart("majority_or_zero", results)
        accept(
            "majority_or_zero",
            vote().majority_or_zero(results[0].pointer, results[1].pointer, pointers(given), len(given), n),
        )
    return plus, nonzero


def tally(votes: Sequence[Any], n: int, *, out: Optional[Sequence[Any]] = None) -> List[Any]:
    """The number of plus votes per element, one bit of it per plane: planes[k] is bit k. There are
    `tally_planes(len(votes))` planes, absent ranks included. Otherwise as `majority`.
    """
    with contextlib.ExitStack() as loans:
        given = lend_votes(loans, "tally", votes, n)
        count = tally_planes(len(given))
        planes = [new_result(votes, n) for _ in range(count)] if out is None else list(out)
        if len(planes) != count:
            raise ValueError(f"tally: a count of {len(given)} votes takes {count} planes, not {len(planes)}.")
        results = [lend_result(loans, f"tally: out[{k}]", plane, n, given) for k, plane in enumerate(planes)]
        apart("tally", results)
        accept("tally", vote().tally(pointers(results), pointers(given), len(given), n))
    return planes


def tally_planes(ranks: int) -> int:
    """Bits of a count from 0 to ranks: ceil(log2(ranks + 1))."""
    if not is_whole(ranks, 2**48):
        raise ValueError(f"tally_planes: ranks is {ranks!r}, and must be a whole number, 0 or more.")
    return int(c.LIBRARY.terse_vote_planes(ranks))


def vote_implementation() -> str:
    """The implementation that runs: "avx2", "scalar", …"""
    text: bytes = vote().implementation
    return text.decode()


def vote() -> Any:
    found = ctypes.POINTER(c.Vote)()
    accept("vote", c.LIBRARY.terse_vote_find(ctypes.byref(found), None))
    return found.contents


def bytes_for(n: int) -> int:
    return (n + 7) // 8


def new_result(votes: Sequence[Any], n: int) -> Any:
    return new_bytes(bytes_for(n), next(wire for wire in votes if wire is not None))


def lend_votes(loans: "contextlib.ExitStack[Any]", where: str, votes: Sequence[Any], n: int) -> List[Optional[Lent]]:
    if not is_whole(n, 2**48 + 1):
        raise ValueError(f"{where}: n is {n!r}, and must be a whole number, 0 or more.")
    # Not a set, which has no order, and takes equal votes for one.
    one = isinstance(votes, (bytes, bytearray, memoryview, str))
    if one or isinstance(votes, Mapping) or not (hasattr(votes, "__len__") and hasattr(votes, "__getitem__")):
        raise TypeError(
            f"{where}: votes is {'one' if one else 'a'} {type(votes).__name__}, and must be a list of wires, one per rank."
        )
    if not 1 <= len(votes) <= MAX_VOTES:
        raise ValueError(f"{where}: there are {len(votes)} votes, and 1 to {MAX_VOTES} are possible.")
    given = [
        None if wire is None else loans.enter_context(lend(wire, f"{where}: votes[{rank}]", BYTES))
        for rank, wire in enumerate(votes)
    ]
    for rank, lent in enumerate(given):
        if lent is not None:
            check_length(f"{where}: votes[{rank}]", lent, n)
    if not any(given):
        raise ValueError(f"{where}: all {len(given)} ranks are absent, and at least one must vote.")
    return given


def lend_result(
    loans: "contextlib.ExitStack[Any]", what: str, out: Any, n: int, votes: Sequence[Optional[Lent]]
) -> Lent:
    result = loans.enter_context(lend(out, what, BYTES, writable=True))
    check_length(what, result, n)
    for rank, wire in enumerate(votes):
        if wire is not None and result.overlaps(wire) and result.pointer != wire.pointer:
            raise ValueError(f"{what} overlaps votes[{rank}]: it may be a vote as a whole, or lie apart from it.")
    return result


def apart(where: str, results: Sequence[Lent]) -> None:
    for i, result in enumerate(results):
        if any(result.overlaps(other) for other in results[:i]):
            raise ValueError(f"{where}: two results overlap: give each its own memory.")


def check_length(what: str, wire: Lent, n: int) -> None:
    if wire.length != bytes_for(n):
        raise ValueError(f"{what} has {wire.length} bytes, and {n} elements take {bytes_for(n)}.")


def pointers(wires: Sequence[Optional[Lent]]) -> Any:
    return (ctypes.c_void_p * len(wires))(*(None if wire is None else wire.pointer for wire in wires))


def accept(where: str, status: int) -> None:
    if status != c.OK:
        raise CodecError(f"{where}: {c.sentence(status)}", status)
