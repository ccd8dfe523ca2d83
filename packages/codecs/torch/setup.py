import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# A source distribution carries what it needs of the repository.
CARRIED = os.path.join(HERE, "repository")
REPOSITORY = CARRIED if os.path.isdir(CARRIED) else os.path.join(HERE, "../../..")
sys.path.insert(0, os.path.join(REPOSITORY, "packages/codecs/python"))

from native_wheel import CODECS, LION, setup_with_libraries  # noqa: E402

# terse_codecs too, so that one wheel is enough.
PACKAGES = {"terse_codecs": "packages/codecs/python/terse_codecs", "terse_torch": "packages/codecs/torch/terse_torch"}
setup_with_libraries(HERE, PACKAGES, [CODECS, LION])
