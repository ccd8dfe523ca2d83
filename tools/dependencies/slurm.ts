import { existsSync } from "node:fs";
import { join } from "node:path";
import { StepFailed } from "../remedy.ts";
import type { Progress } from "../steps.ts";
import { installFolder, requireComplete, toolchain } from "../toolchain.ts";
import { aptRelease, unpackFromApt } from "./apt.ts";

/** Tests of srun start a Slurm of one node from it; nothing else needs it. */
export interface Slurm {
  /** The folder that its packages were unpacked into; undefined for an installed Slurm. */
  prefix: string | undefined;
  controller: string;
}

const packages = ["slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins"];
export const slurmRemedy = `sudo apt-get install ${packages.join(" ")}`;

/** Whether apt can install it here. */
export const canInstallSlurm = (): boolean => aptRelease() !== undefined;

/** Slurm from TERSE_SLURM, else the system, else the toolchain folder. */
export function findSlurm(): Slurm | undefined {
  const named = process.env["TERSE_SLURM"];
  if (named) {
    const slurm = slurmBelow(named);
    if (slurm === undefined)
      throw new StepFailed(
        `TERSE_SLURM=${named} holds no usr/sbin/slurmctld: unset it, or name the folder that Slurm's packages were unpacked in.`,
      );
    return slurm;
  }
  const system = slurmBelow("/");
  return system ? { ...system, prefix: undefined } : slurmBelow(folder());
}

export async function installSlurm(progress: Progress): Promise<Slurm> {
  if (!canInstallSlurm())
    throw new StepFailed(
      "Slurm can be installed here with apt only, which is missing: install Slurm, or name it in TERSE_SLURM.",
    );
  const fill = async (partial: string) => {
    await unpackFromApt(progress, packages, partial, { complete: true });
    await unpackFromApt(progress, ["libpmix-dev"], partial); // has the file name by which Slurm opens PMIx
  };
  await installFolder(progress, folder(), fill, {
    hint: `Without it the tests of srun are skipped; with root, \`${slurmRemedy}\`.`,
  });
  return requireComplete(slurmBelow(folder()), folder());
}

function slurmBelow(prefix: string): Slurm | undefined {
  // Debian adds -wlm to the daemons' names.
  const names = ["slurmctld", "slurmctld-wlm"].map((name) => join(prefix, "usr", "sbin", name));
  const controller = names.find((file) => existsSync(file));
  return controller === undefined ? undefined : { prefix, controller };
}

function folder(): string {
  return join(toolchain, `slurm-pmix-${aptRelease() ?? "none"}`);
}
