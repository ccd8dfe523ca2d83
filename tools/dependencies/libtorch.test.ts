import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { scratchFolder } from "../testing/scratch-folder.ts";
import { inspect } from "./libtorch.ts";

const libraries = { "lib/libtorch_cpu.so": "", "lib/libc10.so": "", "include/ATen/ATen.h": "" };

function torch(files: Record<string, string>): string {
  const root = join(scratchFolder(), "torch");
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  }
  return root;
}

describe("libtorch", () => {
  it("reads the version of a wheel, of an archive and of headers alone", () => {
    const wheel = torch({ ...libraries, "version.py": "__version__ = '2.13.0+cu130'\n" });
    const archive = torch({ ...libraries, "build-version": "2.9.1+cpu\n" });
    const headers = torch({ ...libraries, "include/torch/headeronly/version.h": '#define TORCH_VERSION "2.14.0"\n' });
    expect([wheel, archive, headers].map(inspect)).toEqual([
      { root: wheel, version: "2.13.0+cu130" },
      { root: archive, version: "2.9.1+cpu" },
      { root: headers, version: "2.14.0" },
    ]);
  });

  it("says why a folder is unusable", () => {
    expect(inspect(torch({ "version.py": "" }))).toEqual({ wrong: "has no lib/libtorch_cpu.so" });
    expect(inspect(torch(libraries))).toEqual({ wrong: "does not say its version" });
    expect(inspect(torch({ ...libraries, "version.py": "__version__ = '2.5.1'" }))).toEqual({
      wrong: "is 2.5.1, not 2.6 to 2.14",
    });
  });

  it("refuses a build with the old std::string", () => {
    const old = { "share/cmake/Torch/TorchConfig.cmake": 'set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=0")' };
    expect(inspect(torch({ ...libraries, ...old, "version.py": "__version__ = '2.6.0+cu124'" }))).toEqual({
      wrong: "2.6.0+cu124 is built for the C++ ABI before 2011",
    });
  });
});
