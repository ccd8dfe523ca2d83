"""Which library is loaded, and what is said where it does not fit."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import terse_codecs

COMPILER = os.environ.get("CC") or shutil.which("cc")


def load(path, program="import terse_codecs; print(terse_codecs.library_path())", **variables):
    """What a fresh Python says with this library."""
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(terse_codecs.__file__)), **variables}
    if path:
        environment["TERSE_CODECS_LIBRARY"] = path
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return done.stdout.strip().splitlines()[-1]


class TheLibrary(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def compile(self, source):
        path = os.path.join(self.folder, "library.so")
        subprocess.run([COMPILER, "-shared", "-fPIC", "-x", "c", "-", "-o", path], input=source, text=True, check=True)
        return path

    def test_is_the_one_that_is_named(self):
        path = os.path.join(self.folder, "copy.so")
        shutil.copyfile(terse_codecs.library_path(), path)
        self.assertEqual(load(path), path)
        self.assertRegex(load(path + ".not"), "LibraryError: TERSE_CODECS_LIBRARY=.*copy.so.not: there is no such file")

    def test_runs_the_implementation_that_is_named(self):
        program = "import terse_codecs; print(terse_codecs.sign.implementation, terse_codecs.vote_implementation())"
        self.assertEqual(load(None, program, TERSE_IMPLEMENTATION="scalar"), "scalar scalar")
        self.assertRegex(load(None, program, TERSE_IMPLEMENTATION="sse9"), "This machine runs .*scalar")

    def test_must_be_a_library(self):
        path = os.path.join(self.folder, "text.so")
        with open(path, "w") as file:
            file.write("no library")
        self.assertRegex(load(path), "LibraryError: .*text.so does not load as libterse_codecs")

    @unittest.skipUnless(COMPILER, "there is no C compiler")
    def test_says_which_version_differs(self):
        self.assertRegex(
            load(self.compile("int other(void) { return 1; }")), "does not load as libterse_codecs.*terse_codecs_abi"
        )
        self.assertRegex(
            load(self.compile("unsigned terse_codecs_abi(void) { return 999; }")),
            r"has ABI 999, and this terse_codecs speaks ABI \d+",
        )
        names = ["sentence", "find", "at", "encode", "encode_with_feedback", "decode_add", "scales"]
        functions = [f"void *terse_codec_{name}(void) {{ return 0; }}" for name in names] + [
            "unsigned terse_codecs_abi(void) { return %d; }" % terse_codecs._library.ABI,
            "int terse_codec_wire_bytes(void) { return 4; }",
            "void *terse_implementation_at(void) { return 0; }",
            "void terse_codecs_use_threads(void) {}",
            *(f"int terse_frame_{name}(void) {{ return 0; }}" for name in ["bytes", "write", "read"]),
            "void *terse_vote_planes(void) { return 0; }",
            "void *terse_vote_find(void) { return 0; }",
        ]
        self.assertRegex(
            load(self.compile("\n".join(functions[:-1]))), "does not load as libterse_codecs.*terse_vote_find"
        )
        self.assertRegex(
            load(self.compile("\n".join(functions))),
            r"terse_codec_options has \d+ bytes in this terse_codecs and another size in",
        )


if __name__ == "__main__":
    unittest.main()
