"""terse_codecs comes in the wheel of terse-torch; the distribution terse-codecs would be a second owner of its files."""

from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Optional

AGAIN = "install terse-torch again, with `pip install --force-reinstall --no-deps`"


def refuse_second_owner() -> None:
    """ImportError where terse-codecs has overwritten what came with terse-torch, or took it away when it went."""
    here = Path(__file__).resolve().parents[1]
    if folder_of("terse-torch") != here:
        return  # a checkout
    if folder_of("terse-codecs") == here:
        raise ImportError(
            "terse-torch has terse_codecs in it, and terse-codecs is installed too: one has overwritten files of the "
            f"other. `pip uninstall terse-codecs`, then {AGAIN}.")  # fmt: skip
    if find_spec("terse_codecs") is None:
        raise ImportError(
            f"terse_codecs, which came with terse-torch, is gone, as after `pip uninstall terse-codecs`: {AGAIN}."
        )


def folder_of(name: str) -> Optional[Path]:
    try:
        return Path(str(distribution(name).locate_file(""))).resolve()
    except PackageNotFoundError:
        return None
