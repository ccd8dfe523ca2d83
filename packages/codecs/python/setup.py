"""
Builds libterse_codecs with CMake into the wheel: one wheel a platform, for every Python (py3-none-…). On Linux with
glibc its tag says from which glibc on the library loads (PEP 600), read out of the library itself.
"""
import atexit
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build import build
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = os.path.dirname(os.path.abspath(__file__))
# A source distribution carries what it needs of the repository, in the same places.
CARRIED = os.path.join(HERE, "repository")
REPOSITORY = CARRIED if os.path.isdir(CARRIED) else os.path.normpath(os.path.join(HERE, "../../.."))
SOURCES = ["native/codecs", "native/include", "native/loops", "native/cmake", "packages/codecs/src"]
FILE = "libterse_codecs.dylib" if sys.platform == "darwin" else "libterse_codecs.so"


def version():
    with open(os.path.join(REPOSITORY, "packages/codecs/package.json"), encoding="utf-8") as file:
        return json.load(file)["version"]


# What every manylinux system has of a library's needs: glibc's own.
GLIBC = re.compile(r"(lib(c|m|pthread|dl|rt)|ld-linux(-x86-64|-aarch64)?)\.so\.\d+$")
OLDEST_GLIBC = (2, 17)  # manylinux2014, the oldest that packages are still built for, and on aarch64 the first


def needs_of(path):
    """(libraries, versions of their symbols) that a 64-bit little-endian ELF file needs; else (None, None)."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:6] != b"\x7fELF\x02\x01":
        return None, None

    def text(begin):
        return data[begin : data.index(b"\0", begin)].decode()

    sections_at, size, count = struct.unpack_from("<Q", data, 40) + struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, sections_at + i * size) for i in range(count)]
    libraries, versions = set(), set()
    for _, kind, _, _, at, length, link, entries, _, _ in sections:
        texts = sections[link][4]
        if kind == 6:  # SHT_DYNAMIC: (tag, value); DT_NEEDED is 1
            libraries |= {text(texts + value) for tag, value in struct.iter_unpack("<qQ", data[at : at + length]) if tag == 1}
        elif kind == 0x6FFFFFFE:  # SHT_GNU_verneed: a library each, and a chain of its versions
            for _ in range(entries):
                _, auxiliaries, _, first, following = struct.unpack_from("<HHIII", data, at)
                version_at = at + first
                for _ in range(auxiliaries):
                    _, _, _, name, next_version = struct.unpack_from("<IHHII", data, version_at)
                    versions.add(text(texts + name))
                    version_at += next_version
                at += following
    return libraries, versions


def manylinux(path, machine):
    """The tags of a library for this machine; None where it needs more than glibc, or is none of glibc's."""
    libraries, versions = needs_of(path)
    found = [re.match(r"GLIBC_(\d+)\.(\d+)", version) for version in versions or ()]
    if not found or not all(found) or not all(GLIBC.match(library) for library in libraries):
        return None
    needed = max([OLDEST_GLIBC, *((int(version[1]), int(version[2])) for version in found)])
    tag = f"manylinux_{needed[0]}_{needed[1]}_{machine}"
    # By its old name too, for the first pip that comes with Python 3.9.
    return f"manylinux2014_{machine}.{tag}" if needed == (2, 17) else tag


class BuildElsewhere(build):
    """Builds in a temporary folder, because CMake's files would be taken for sources of the repository."""

    def initialize_options(self):
        super().initialize_options()
        self.build_base = tempfile.mkdtemp(prefix="terse-codecs-")
        atexit.register(shutil.rmtree, self.build_base, ignore_errors=True)


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        built = os.path.join(os.path.abspath(self.get_finalized_command("build").build_temp), "codecs")
        source = os.path.join(REPOSITORY, "native/codecs")
        try:
            subprocess.check_call(["cmake", "-S", source, "-B", built, "-DCMAKE_BUILD_TYPE=Release", "-DTERSE_OLD_GLIBC=ON"])
            subprocess.check_call(["cmake", "--build", built, "--target", "terse_codecs", "--parallel"])
        except FileNotFoundError:
            sys.exit("terse-codecs is built with CMake, which is not on the PATH: `python3 -m pip install cmake`, and a C compiler.")
        # The name alone: a wheel has no links, and nobody else loads this copy.
        shutil.copyfile(os.path.realpath(os.path.join(built, FILE)), os.path.join(self.build_lib, "terse_codecs", FILE))

    def get_outputs(self, include_bytecode=True):
        return [*super().get_outputs(include_bytecode), os.path.join(self.build_lib, "terse_codecs", FILE)]


class PlatformWheel(bdist_wheel):
    def get_tag(self):
        platform = super().get_tag()[2]
        library = os.path.join(os.path.abspath(self.get_finalized_command("build").build_lib), "terse_codecs", FILE)
        if platform.startswith("linux_") and not self.plat_name_supplied:
            platform = manylinux(library, platform[len("linux_") :]) or platform
        return "py3", "none", platform


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
    cmdclass={"build": BuildElsewhere, "build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel, "sdist": SdistWithSources},
    distclass=WithLibrary,
)
