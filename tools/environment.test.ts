import { execFileSync } from "node:child_process";
import { delimiter } from "node:path";
import { describe, expect, it } from "vitest";
import { asShell, variables } from "./environment.ts";

describe("environment", () => {
  it("quotes every path for a shell", () => {
    const values = { LIBTORCH: "/home/o'brien/my torch", TERSE_GLOO: '/a "b" $HOME `id` \\n' };
    const script = `${asShell(values)}\nprintf '%s|%s' "$LIBTORCH" "$TERSE_GLOO"`;
    expect(execFileSync("sh", ["-c", script], { encoding: "utf8" })).toBe(`${values.LIBTORCH}|${values.TERSE_GLOO}`);
  });

  it("puts our tools first on the PATH, and only once", () => {
    const path = variables({ pnpm: "/tools/pnpm/bin" })["PATH"]!.split(delimiter);
    expect(path[0] === "/tools/pnpm/bin" || path[1] === "/tools/pnpm/bin").toBe(true);
    expect(new Set(path).size).toBe(path.length);
  });

  it("names the tests' browser and ARM tools, or says why they are missing", () => {
    const here = variables({ browser: "/b/chromium", arm: { compiler: "/a/gcc", emulator: "/a/qemu" } });
    expect(here).toMatchObject({
      TERSE_BROWSER: "/b/chromium",
      TERSE_ARM_COMPILER: "/a/gcc",
      TERSE_ARM_EMULATOR: "/a/qemu",
    });
    const not = variables({ missing: { browser: "no network", arm: "no apt" } });
    expect(not).toMatchObject({ TERSE_BROWSER_MISSING: "no network", TERSE_ARM_MISSING: "no apt" });
  });

  it("names an MPI that has a prefix; the system's is left to its compiler wrapper", () => {
    const installed = variables({
      mpi: { prefix: "/t/openmpi", path: "/t/openmpi/lib/libmpi.so.40", source: "toolchain" },
    });
    expect(installed).toHaveProperty("TERSE_MPI", "/t/openmpi");
    const system = variables({ mpi: { prefix: undefined, path: "/usr/bin/mpicxx", source: "system" } });
    expect(Object.keys(system)).not.toContain("TERSE_MPI");
    expect(variables({ missing: { mpi: "no network" } })).toHaveProperty("TERSE_MPI_MISSING", "no network");
  });

  it("names an unpacked Slurm; an installed one needs no variable", () => {
    const installed = variables({ slurm: { prefix: "/t/slurm", controller: "/t/slurm/usr/sbin/slurmctld" } });
    expect(installed).toHaveProperty("TERSE_SLURM", "/t/slurm");
    const system = variables({ slurm: { prefix: undefined, controller: "/usr/sbin/slurmctld" } });
    expect(Object.keys(system)).not.toContain("TERSE_SLURM");
    expect(variables({ missing: { slurm: "no network" } })).toHaveProperty("TERSE_SLURM_MISSING", "no network");
  });

  it("says why Python and the CUDA compiler are missing, and names no library that was not found", () => {
    const values = variables({ missing: { python: "the disk is full", nvcc: "no network" } });
    expect(values).toHaveProperty("TERSE_PYTHON_MISSING", "the disk is full");
    expect(values).toHaveProperty("TERSE_NVCC_MISSING", "no network");
    expect(Object.keys(values)).not.toContain("LIBTORCH");
  });
});
