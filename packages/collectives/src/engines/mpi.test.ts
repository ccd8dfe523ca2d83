import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { collectives } from "@terse/native-collectives";
import { afterAll, describe, expect, it } from "vitest";
import { engineContract } from "../engine-contract/engine-contract.ts";
import { joinWorld } from "../join-world.ts";
import { InProcessWorlds } from "../test-helpers/in-process-worlds.ts";

// Ranks in one process, which MPI counts as a job of one: it sends messages to itself. test-e2e has ranks in processes of their own.
const worlds = new InProcessWorlds();

describe.skipIf(!collectives().hasMpi)("mpi (skipped where the build found none; TERSE_MPI names one)", () => {
  afterAll(() => worlds[Symbol.asyncDispose]());
  engineContract("mpi", (size) => worlds.open("mpi", size));

  it("refuses a module of an older build beside the addon", () => {
    const folder = mkdtempSync(join(tmpdir(), "terse-mpi-module-"));
    const addon = fileURLToPath(
      new URL("../../../../native/collectives/build/Release/collectives.node", import.meta.url),
    );
    copyFileSync(addon, join(folder, "collectives.node"));
    const other = (body: string) => {
      const shared = ["-shared", "-fPIC", "-x", "c", "-", "-o", join(folder, "collectives_mpi.so")];
      execFileSync(process.env["CC"] || "cc", shared, { input: body });
      const start = `try { require("${folder}/collectives.node").startMpi(5) } catch ({ message }) { console.log(message) }`;
      return execFileSync(process.execPath, ["-e", start], { encoding: "utf8" }).trim();
    };
    const sentence =
      "MPI does not open: its module is not from the same build as the addon; build both again with `./terse setup`";
    expect(other("void *terse_mpi(void) { return 0; }")).toBe(sentence);
    const entry = 'const char *terse_mpi_interface(void) { return "another"; } void *terse_mpi(void) { return 0; }';
    expect(other(entry)).toBe(sentence);
    rmSync(folder, { recursive: true });
  });
});

describe.skipIf(collectives().hasMpi)("a build without MPI (skipped where the build found one)", () => {
  it("has an error that says how to get it", async () => {
    await expect(joinWorld({ engine: "mpi", env: { RANK: "0", WORLD_SIZE: "2" } })).rejects.toThrow(
      "this build has no MPI: put its compiler wrapper (mpicc) on the PATH, or name its prefix in TERSE_MPI",
    );
  });
});
