import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# A source distribution carries what it needs of the repository.
CARRIED = os.path.join(HERE, "repository")
REPOSITORY = CARRIED if os.path.isdir(CARRIED) else os.path.join(HERE, "../../..")
sys.path.insert(0, os.path.join(REPOSITORY, "packages/codecs/python"))

from native_wheel import CODECS, setup_with_libraries  # noqa: E402

setup_with_libraries(HERE, {"terse_codecs": "packages/codecs/python/terse_codecs"}, [CODECS])
