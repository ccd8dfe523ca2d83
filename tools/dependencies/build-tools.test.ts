import { chmodSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { scratchFolder } from "../testing/scratch-folder.ts";
import { requireForBuilding } from "./build-tools.ts";

/** A PATH with these commands first; `alone`: with no other. */
function withCommands(commands: Readonly<Record<string, string>>, alone = false): void {
  const folder = scratchFolder();
  for (const [name, script] of Object.entries(commands)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(folder, name), 0o755);
  }
  vi.stubEnv("CXX", "");
  vi.stubEnv("PATH", alone ? folder : `${folder}${delimiter}${process.env["PATH"]}`);
}

const compiler = (name: string, version: string) => ({
  "c++": `case $1 in --version) echo "${name} ${version}" ;; *) echo ${version} ;; esac`,
});
const python = (version: string) => ({
  python3: `echo '{"executable":"/usr/bin/python3","version":"${version}","torch":null}'`,
});
const others = { cmake: "", make: "" };

afterEach(() => {
  vi.unstubAllEnvs();
});

describe("what the machine must have", () => {
  it("is named at once, with one command, and Python only where libtorch is to be fetched", async () => {
    withCommands({ make: "" }, true);
    await expect(requireForBuilding(true)).rejects.toThrow(
      "missing: a C++ compiler, cmake, Python 3: `sudo apt-get install g++ cmake python3`.",
    );
    await expect(requireForBuilding(false)).rejects.toThrow("`sudo apt-get install g++ cmake`.");
  });

  it("must be new enough for C++20 and for PyTorch's wheels", async () => {
    withCommands({ ...compiler("c++ (Ubuntu) ", "9.4.0"), ...python("3.11.2"), ...others });
    await expect(requireForBuilding(true)).rejects.toThrow(
      /\/c\+\+ is g\+\+ 9\.4\.0, and C\+\+20 needs g\+\+ 10 or clang 12/,
    );
    withCommands({ ...compiler("Ubuntu clang version", "11.0.1"), ...python("3.11.2"), ...others });
    await expect(requireForBuilding(true)).rejects.toThrow(/is clang 11\.0\.1, and C\+\+20 needs/);
    withCommands({ ...compiler("c++ (Debian)", "10.2.1"), ...python("3.9.2"), ...others });
    await expect(requireForBuilding(true)).rejects.toThrow(/python3 is 3\.9\.2, and PyTorch has wheels for 3\.10 to/);
    await expect(requireForBuilding(false)).resolves.toBeUndefined();
  });
});
