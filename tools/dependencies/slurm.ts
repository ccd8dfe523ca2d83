import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { StepFailed } from "../remedy.ts";
import { CommandFailed } from "../run.ts";
import type { Progress } from "../steps.ts";
import { bring, toolchain, whole } from "../toolchain.ts";
import { aptRelease, unpackFromApt } from "./apt.ts";

/** What the tests of srun start a Slurm of one node from; nothing else needs one. */
export interface Slurm {
  /** Where its packages were unpacked; undefined where they are installed. */
  prefix: string | undefined;
  controller: string;
}

const packages = ["slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins"];
export const slurmRemedy = `sudo apt-get install ${packages.join(" ")}`;

/** Whether apt can bring it. */
export const slurmComes = (): boolean => aptRelease() !== undefined;

/** Slurm where TERSE_SLURM says, else the system's, else the toolchain folder's. */
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

export async function bringSlurm(progress: Progress): Promise<Slurm> {
  if (!slurmComes()) throw new StepFailed("There is no apt to bring Slurm: install it, or name it in TERSE_SLURM.");
  mkdirSync(toolchain, { recursive: true });
  const fill = async (partial: string) => {
    await unpackFromApt(progress, packages, partial, { complete: true });
    await unpackFromApt(progress, ["libpmix-dev"], partial); // Slurm opens PMIx by the name that this one has
  };
  try {
    await bring(folder(), fill, () => progress.say("another set-up is bringing it"));
  } catch (error) {
    if (error instanceof CommandFailed)
      error.hint = `Without it the tests of srun are skipped; with root, \`${slurmRemedy}\`.`;
    throw error;
  }
  return whole(slurmBelow(folder()), folder());
}

function slurmBelow(prefix: string): Slurm | undefined {
  // Debian's daemons have a surname.
  const names = ["slurmctld", "slurmctld-wlm"].map((name) => join(prefix, "usr", "sbin", name));
  const controller = names.find((file) => existsSync(file));
  return controller === undefined ? undefined : { prefix, controller };
}

function folder(): string {
  return join(toolchain, `slurm-pmix-${aptRelease() ?? "none"}`);
}
