"""Builds libterse_codecs with CMake into the wheel: one wheel a platform, for every Python (py3-none-…)."""
import json
import os
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = os.path.dirname(os.path.abspath(__file__))
# A source distribution carries what it needs of the repository, in the same places.
CARRIED = os.path.join(HERE, "repository")
REPOSITORY = CARRIED if os.path.isdir(CARRIED) else os.path.normpath(os.path.join(HERE, "../../.."))
SOURCES = ["native/codecs", "native/include", "native/parallel", "native/cmake", "packages/codecs/src"]
FILE = "libterse_codecs.dylib" if sys.platform == "darwin" else "libterse_codecs.so"


def version():
    with open(os.path.join(REPOSITORY, "packages/codecs/package.json"), encoding="utf-8") as file:
        return json.load(file)["version"]


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        built = os.path.join(os.path.abspath(self.get_finalized_command("build").build_temp), "codecs")
        source = os.path.join(REPOSITORY, "native/codecs")
        try:
            subprocess.check_call(["cmake", "-S", source, "-B", built, "-DCMAKE_BUILD_TYPE=Release"])
            subprocess.check_call(["cmake", "--build", built, "--target", "terse_codecs", "--parallel"])
        except FileNotFoundError:
            sys.exit("terse-codecs is built with CMake, which is not on the PATH: `python3 -m pip install cmake`, and a C compiler.")
        # The name alone: a wheel has no links, and nobody else loads this copy.
        shutil.copyfile(os.path.realpath(os.path.join(built, FILE)), os.path.join(self.build_lib, "terse_codecs", FILE))

    def get_outputs(self, include_bytecode=True):
        return [*super().get_outputs(include_bytecode), os.path.join(self.build_lib, "terse_codecs", FILE)]


class PlatformWheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class SdistWithSources(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        wanted = (".c", ".h", ".cmake", ".in", "CMakeLists.txt")
        for folder in SOURCES:
            for path, folders, names in os.walk(os.path.join(REPOSITORY, folder)):
                folders[:] = [name for name in folders if name not in ("build", "node_modules", "dist")]
                for name in names:
                    if name.endswith(wanted):
                        file = os.path.relpath(os.path.join(path, name), REPOSITORY)
                        self.carry(file, base_dir)
        self.carry("packages/codecs/package.json", base_dir)

    def carry(self, file, base_dir):
        target = os.path.join(base_dir, "repository", file)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(os.path.join(REPOSITORY, file), target)


class WithLibrary(Distribution):
    def has_ext_modules(self):  # so that wheels are a platform's
        return True


setup(
    version=version(),
    cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel, "sdist": SdistWithSources},
    distclass=WithLibrary,
)
