import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { StepFailed } from "../remedy.ts";
import { scratchFolder } from "../testing/scratch-folder.ts";
import { findMpi } from "./mpi.ts";

describe("MPI", () => {
  afterEach(() => vi.unstubAllEnvs());

  it("comes from TERSE_MPI: headers and a numbered library of any implementation", () => {
    for (const [folder, library] of [
      ["lib", "libmpi.so.40"], // Open MPI
      ["lib64", "libmpi.so.12"], // MPICH
    ] as const) {
      const prefix = scratchFolder();
      vi.stubEnv("TERSE_MPI", prefix);
      expect(findMpi).toThrow(StepFailed);
      mkdirSync(join(prefix, "include"));
      writeFileSync(join(prefix, "include", "mpi.h"), "");
      expect(findMpi).toThrow(/TERSE_MPI=.* holds no include\/mpi\.h with lib\/libmpi\.so: unset it/);
      mkdirSync(join(prefix, folder));
      writeFileSync(join(prefix, folder, library), "");
      expect(findMpi()).toEqual({ prefix, path: join(prefix, folder, library), source: "TERSE_MPI" });
    }
  });

  it("else comes from the compiler wrapper on the PATH, which the build asks for its folders", () => {
    const folder = scratchFolder();
    writeFileSync(join(folder, "mpicc"), "#!/bin/sh\n", { mode: 0o755 });
    vi.stubEnv("TERSE_MPI", "");
    vi.stubEnv("PATH", folder);
    expect(findMpi()).toEqual({ prefix: undefined, path: join(folder, "mpicc"), source: "system" });
  });
});
