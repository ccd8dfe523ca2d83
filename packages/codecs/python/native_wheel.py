"""
The wheels of terse_codecs and terse_torch: CMake builds libraries into them, one wheel a platform, for every Python
(py3-none-…). On Linux with glibc its tag says from which glibc on the libraries load (PEP 600), read out of them.
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

# Where this file is: a checkout, or what a source distribution carries of it, in the same places.
REPOSITORY = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
FOR_ALL = ["native/include", "native/loops", "native/cmake"]
CODECS = {
    "package": "terse_codecs",
    "target": "terse_codecs",
    "cmake": "native/codecs",
    "also": ["packages/codecs/src"],
}
LION = {"package": "terse_torch", "target": "terse_lion", "cmake": "native/optimizers", "also": []}


def setup_with_libraries(here, packages, libraries):
    """`here`: the folder of setup.py. `packages`: the folder of each in the repository, where it is not here."""

    def folder_of(name):
        own = os.path.join(here, name)
        return os.path.relpath(own if os.path.isdir(own) else os.path.join(REPOSITORY, packages[name]), here)

    WithLibraries.libraries_of_wheel = libraries
    setup(
        version=version(),
        packages=list(packages),
        package_dir={name: folder_of(name) for name in packages},
        package_data={name: ["py.typed"] for name in packages},
        cmdclass={
            "build": BuildElsewhere,
            "build_py": BuildWithLibraries,
            "bdist_wheel": PlatformWheel,
            "sdist": SdistWithSources,
        },
        distclass=WithLibraries,
    )


def version():
    with open(os.path.join(REPOSITORY, "packages/codecs/package.json"), encoding="utf-8") as file:
        return json.load(file)["version"]


def file_of(library):
    return f"lib{library['target']}.{'dylib' if sys.platform == 'darwin' else 'so'}"


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
            libraries |= {
                text(texts + value) for tag, value in struct.iter_unpack("<qQ", data[at : at + length]) if tag == 1
            }
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


def manylinux(paths, machine):
    """The tags of libraries for this machine; None where one needs more than glibc, or is none of glibc's."""
    needed = OLDEST_GLIBC
    for path in paths:
        libraries, versions = needs_of(path)
        found = [re.match(r"GLIBC_(\d+)\.(\d+)", version) for version in versions or ()]
        if not found or not all(found) or not all(GLIBC.match(library) for library in libraries):
            return None
        needed = max([needed, *((int(version[1]), int(version[2])) for version in found)])
    tag = f"manylinux_{needed[0]}_{needed[1]}_{machine}"
    # By its old name too, for the first pip that comes with Python 3.9.
    return f"manylinux2014_{machine}.{tag}" if needed == (2, 17) else tag


class WithLibraries(Distribution):
    def has_ext_modules(self):  # so that wheels are a platform's
        return True


class BuildElsewhere(build):
    """Builds in a temporary folder, because CMake's files would be taken for sources of the repository."""

    def initialize_options(self):
        super().initialize_options()
        self.build_base = tempfile.mkdtemp(prefix="terse-")
        atexit.register(shutil.rmtree, self.build_base, ignore_errors=True)


class BuildWithLibraries(build_py):
    def run(self):
        super().run()
        name = self.distribution.get_name()
        temporary = os.path.abspath(self.get_finalized_command("build").build_temp)
        for library, target in zip(self.distribution.libraries_of_wheel, self.libraries()):
            built = os.path.join(temporary, library["target"])
            source = os.path.join(REPOSITORY, library["cmake"])
            try:
                subprocess.check_call(
                    ["cmake", "-S", source, "-B", built, "-DCMAKE_BUILD_TYPE=Release", "-DTERSE_OLD_GLIBC=ON"]
                )
                subprocess.check_call(["cmake", "--build", built, "--target", library["target"], "--parallel"])
            except FileNotFoundError:
                sys.exit(
                    f"{name} is built with CMake, which is not on the PATH: `python3 -m pip install cmake`, and a C compiler."
                )
            except subprocess.CalledProcessError:
                sys.exit(
                    f"{name}: CMake has not built {file_of(library)}, and says above why. It needs a C compiler, such as "
                    "gcc, and make or ninja."
                )
            # The name alone: a wheel has no links, and nobody else loads this copy.
            shutil.copyfile(os.path.realpath(os.path.join(built, file_of(library))), target)

    def libraries(self):
        """For `pip install --editable`, which uses the sources where they are, they are beside these."""

        def folder(package):
            return self.get_package_dir(package) if self.editable_mode else os.path.join(self.build_lib, package)

        return [os.path.join(folder(each["package"]), file_of(each)) for each in self.distribution.libraries_of_wheel]

    def get_outputs(self, include_bytecode=True):
        return [*super().get_outputs(include_bytecode), *self.libraries()]


class PlatformWheel(bdist_wheel):
    def get_tag(self):
        platform = super().get_tag()[2]
        libraries = self.get_finalized_command("build_py").libraries()
        built = all(map(os.path.exists, libraries))  # an editable install, which never leaves its machine, asks before
        if built and platform.startswith("linux_") and not self.plat_name_supplied:
            platform = manylinux(libraries, platform[len("linux_") :]) or platform
        return "py3", "none", platform


class SdistWithSources(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, [file for file in files if not file.startswith(os.pardir)])
        of_libraries = [
            folder for each in self.distribution.libraries_of_wheel for folder in (each["cmake"], *each["also"])
        ]
        carried = ["packages/codecs/package.json", "packages/codecs/python/native_wheel.py"]
        for folder in [*FOR_ALL, *of_libraries]:
            carried += files_in(folder, (".c", ".h", ".cmake", ".in", "CMakeLists.txt"))
        for folder in self.distribution.package_dir.values():
            if folder.startswith(os.pardir):
                carried += files_in(os.path.relpath(folder, REPOSITORY), (".py", "py.typed"))
        for file in carried:
            target = os.path.join(base_dir, "repository", file)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(os.path.join(REPOSITORY, file), target)


def files_in(folder, ends):
    """The files of a folder of the repository whose names end so."""
    for path, folders, names in os.walk(os.path.join(REPOSITORY, folder)):
        folders[:] = [name for name in folders if name not in ("build", "node_modules", "dist")]
        yield from (os.path.relpath(os.path.join(path, name), REPOSITORY) for name in names if name.endswith(ends))
