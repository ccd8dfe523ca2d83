"""Finds, loads and checks libterse_lion; the struct and functions of native/include/terse/optimizers.h."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from typing import Any, Optional

import torch
from terse_codecs import LibraryError

ABI = 7  # TERSE_OPTIMIZERS_ABI
FILE = "libterse_lion.dylib" if sys.platform == "darwin" else "libterse_lion.so"


class Options(ctypes.Structure):
    """terse_lion_options."""

    _fields_ = [
        ("lr", ctypes.c_double),
        ("beta1", ctypes.c_double),
        ("beta2", ctypes.c_double),
        ("weight_decay", ctypes.c_double),
        ("zero", ctypes.c_int),
        ("gradient_scale", ctypes.c_float),
    ]


class Kernels:
    """The functions, of the best implementation that this machine runs or of the one that TERSE_IMPLEMENTATION names."""

    def __init__(self, path: str) -> None:
        try:
            loaded: Any = ctypes.CDLL(path)
            loaded.terse_optimizers_abi.restype = ctypes.c_uint32
            abi = loaded.terse_optimizers_abi()
            if abi != ABI:
                raise LibraryError(
                    f"{path} has ABI {abi}, and this terse_torch speaks ABI {ABI}: install the two from the same release."
                )
            pointer, size, options, real = ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(Options), ctypes.c_float
            loaded.terse_optimizers_use_threads.restype, loaded.terse_optimizers_use_threads.argtypes = (
                None,
                [ctypes.c_uint],
            )
            loaded.terse_lion_at.restype, loaded.terse_lion_at.argtypes = pointer, [size]
            loaded.terse_lion_find.argtypes = [ctypes.POINTER(pointer), ctypes.c_char_p]
            for name, result, arguments in [
                ("vote", size, [pointer, pointer, pointer, size, options]),
                ("mix", None, [pointer, pointer, pointer, size, options]),
                ("apply_signs", None, [pointer, pointer, size, real, real]),
            ]:
                function = getattr(loaded, f"terse_lion_{name}")
                function.restype, function.argtypes = result, [pointer, *arguments]
        except (OSError, AttributeError) as error:
            raise LibraryError(f"{path} does not load as libterse_lion: {error}.") from error
        lion = pointer()
        if loaded.terse_lion_find(ctypes.byref(lion), None) != 0:  # a name that only codecs have
            lion = pointer(loaded.terse_lion_at(0))
        self.path = path
        self.use_threads = loaded.terse_optimizers_use_threads
        self.vote = functools.partial(loaded.terse_lion_vote, lion)
        self.mix = functools.partial(loaded.terse_lion_mix, lion)
        self.apply_signs = functools.partial(loaded.terse_lion_apply_signs, lion)


@functools.lru_cache(maxsize=None)
def loaded() -> Optional[Kernels]:
    """Of the library that TERSE_LION_LIBRARY names, or that lies in the wheel."""
    named = os.environ.get("TERSE_LION_LIBRARY")
    path = named or os.path.join(os.path.dirname(os.path.abspath(__file__)), FILE)
    return Kernels(path) if named or os.path.exists(path) else None


def library(*tensors: torch.Tensor) -> Optional[Kernels]:
    """The kernels, if there are any, and if they take these tensors."""
    kernels = loaded()
    for x in tensors:
        if x.dtype != torch.float32 or x.device.type != "cpu" or not x.is_contiguous():
            return None
    if kernels:
        kernels.use_threads(torch.get_num_threads())
    return kernels
