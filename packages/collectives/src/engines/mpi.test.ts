import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { collectives } from "@terse/native-collectives";
import { afterAll, describe, expect, it } from "vitest";
import { joinWorld } from "../join-world.ts";
import { engineContract } from "../testing/engine-contract/engine-contract.ts";
import { InProcessWorlds } from "../testing/in-process-worlds.ts";

// Ranks in one process, which MPI counts as a job of one: it sends messages to itself. test-e2e has ranks in processes
// of their own.
const worlds = new InProcessWorlds();

function temporaryFolder(): Disposable & { path: string } {
  const path = mkdtempSync(join(tmpdir(), "terse-mpi-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

describe.skipIf(!collectives().hasMpi)("mpi (skipped where the build found none; TERSE_MPI names one)", () => {
  afterAll(() => worlds[Symbol.asyncDispose]());
  engineContract("mpi", (size) => worlds.open("mpi", size));

  // Each call of MPI_Testsome takes 20 ms, so a group posts receives, cancels them and ends within one call. Freed
  // memory becomes addresses that no process has, so a use after the end crashes.
  it("ends groups whose receives were posted and cancelled while its thread was in MPI", () => {
    using folder = temporaryFolder();
    const library = join(folder.path, "slow.so");
    const source = `
      #define _GNU_SOURCE
      #include <dlfcn.h>
      #include <malloc.h>
      #include <stdint.h>
      #include <unistd.h>
      void __libc_free(void *memory);
      int MPI_Testsome(int count, void *requests, int *ended, int *indices, void *statuses) {
        int (*next)(int, void *, int *, int *, void *);
        *(void **)&next = dlsym(RTLD_DEFAULT, "PMPI_Testsome");
        usleep(20000);
        return next(count, requests, ended, indices, statuses);
      }
      void free(void *memory) {
        uint64_t *words = memory;
        for (size_t i = 0; words && i < malloc_usable_size(memory) / 8; i++) words[i] = i % 12 ? 0x4100000000000000u + 8 * i : 0;
        __libc_free(memory);
      }`;
    const shared = ["-shared", "-fPIC", "-fno-builtin", "-x", "c", "-", "-o", library, "-ldl"];
    execFileSync(process.env["CC"] || "cc", shared, { input: source });
    const program = `
      import { collectives, kinds } from "@terse/native-collectives";
      await collectives().startMpi(60);
      for (let k = 0; k < 4; k++) {
        const ends = [0, 1, 2, 3].map((rank) => collectives().mpi(rank, 4, 300, undefined));
        await Promise.all(ends.map(([group], rank) => group.connect(ends.map(([, addresses]) => addresses[rank]))));
        await Promise.all(ends.map(([group]) => group.operate(kinds.barrier, 0, -1, [], [], 0)));
        await Promise.all(ends.map(([group]) => group.close()));
      }
      console.log("ended");`;
    const node = ["--conditions=@terse/source", "--input-type=module", "-e", program];
    const env = { ...process.env, LD_PRELOAD: library };
    const { status, signal, stdout } = spawnSync(process.execPath, node, {
      cwd: import.meta.dirname,
      env,
      encoding: "utf8",
    });
    expect({ status, signal, stdout }).toEqual({ status: 0, signal: null, stdout: "ended\n" });
  });

  it("refuses a module of an older build beside the addon", () => {
    using folder = temporaryFolder();
    const addon = fileURLToPath(
      new URL("../../../../native/collectives/build/Release/collectives.node", import.meta.url),
    );
    copyFileSync(addon, join(folder.path, "collectives.node"));
    const other = (body: string) => {
      const shared = ["-shared", "-fPIC", "-x", "c", "-", "-o", join(folder.path, "collectives_mpi.so")];
      execFileSync(process.env["CC"] || "cc", shared, { input: body });
      const start = `try { require("${folder.path}/collectives.node").startMpi(5) } catch ({ message }) { console.log(message) }`;
      return execFileSync(process.execPath, ["-e", start], { encoding: "utf8" }).trim();
    };
    const sentence =
      "MPI does not open: its module is not from the same build as the addon; build both again with `./terse setup`";
    expect(other("void *terse_mpi(void) { return 0; }")).toBe(sentence);
    const entry = 'const char *terse_mpi_interface(void) { return "another"; } void *terse_mpi(void) { return 0; }';
    expect(other(entry)).toBe(sentence);
  });
});

describe.skipIf(collectives().hasMpi)("a build without MPI (skipped where the build found one)", () => {
  it("has an error that says how to get it", async () => {
    await expect(joinWorld({ engine: "mpi", env: { RANK: "0", WORLD_SIZE: "2" } })).rejects.toThrow(
      "this build has no MPI: put its compiler wrapper (mpicc) on the PATH, or name its prefix in TERSE_MPI",
    );
  });
});
