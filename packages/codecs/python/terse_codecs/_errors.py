"""What can go wrong, each with a sentence that says where and what to do."""

from __future__ import annotations

import copyreg
from typing import Optional


class LibraryError(ImportError):
    """libterse_codecs is missing, does not load, or is another version than this package."""


class CodecError(ValueError):
    """A call that the C library refused. `status` is its terse_codec_status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[object, ...]:
        # As it is, past `__init__`: an error of a worker process is pickled on its way.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class BadWireError(CodecError):
    """No encoder writes such a wire: it was damaged, or written with other parameters. Nothing was added."""


class BadFrameError(CodecError):
    """
    The bytes are no frame, or one that this library does not read. `reason` is "not a frame", "another version", "cut
    short", "damaged", "bad header", "unknown codec", "refused parameters" or "wrong length".
    """

    def __init__(self, message: str, status: int, reason: str) -> None:
        super().__init__(message, status)
        self.reason = reason


class DoesNotFitError(CodecError):
    """A finite number that the codec cannot write; `index` is the first one's, counted through the flattened array."""

    def __init__(self, message: str, status: int, index: int, value: Optional[float] = None) -> None:
        super().__init__(message, status)
        self.index = index
        self.value = value


class NotFiniteError(DoesNotFitError):
    """A NaN or an infinity where only finite numbers make sense; `index` is the first one's."""
