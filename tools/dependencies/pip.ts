import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { StepFailed } from "../remedy.ts";
import { ask } from "../run.ts";
import type { Progress } from "../steps.ts";
import { installFolder, toolchain } from "../toolchain.ts";
import { aptRelease, unpackFromApt } from "./apt.ts";

/** How to call pip. */
export interface Pip {
  python: string;
  env: Record<string, string>;
}

/**
 * Undoes what somebody has set for other packages: the containers of NVIDIA hold torch to their version, for example.
 * Where packages come from stays as it is set.
 */
const env = {
  PIP_CONSTRAINT: "/dev/null",
  PIP_PYTHON: "",
  PIP_REQUIRE_HASHES: "0",
  PIP_REQUIRE_VIRTUALENV: "0",
};

/** python3's own pip, or else the distribution's, unpacked into the toolchain folder. */
export async function findOrInstallPip(progress: Progress): Promise<Pip> {
  const python = "python3";
  if ((await ask(python, ["--version"])) === undefined)
    throw new StepFailed("python3 is not on the PATH: `sudo apt-get install python3`.");
  if ((await ask(python, ["-m", "pip", "--version"])) !== undefined) return { python, env };
  const release = aptRelease();
  const missing = "This Python has no pip: `sudo apt-get install python3-pip`, then run the same command again.";
  if (release === undefined) throw new StepFailed(missing);
  const folder = join(toolchain, `pip-${release}`);
  const modules = join(folder, "usr", "lib", "python3", "dist-packages");
  try {
    const fill = (partial: string) => unpackFromApt(progress, ["python3-pip"], partial);
    await installFolder(progress, folder, fill);
  } catch (error) {
    throw new StepFailed(missing, { cause: error });
  }
  if (!existsSync(join(modules, "pip"))) throw new StepFailed(missing);
  return { python, env: { ...env, PYTHONPATH: modules } };
}

/**
 * Installs packages into the folder `target`, which is allowed where the system's Python is externally managed. Unpacks
 * in a folder there, because /tmp may be small and in memory.
 */
export async function pipInstall(progress: Progress, target: string, what: readonly string[]): Promise<void> {
  const pip = await findOrInstallPip(progress);
  const scratch = join(target, ".scratch");
  mkdirSync(scratch, { recursive: true });
  const options = [
    "--disable-pip-version-check",
    "--no-input",
    "--no-compile",
    "--only-binary=:all:",
    "--progress-bar=off",
    // Settings of these would lead away from --target.
    "--prefix=",
    "--root=/",
  ];
  await progress.run(pip.python, ["-m", "pip", "install", ...options, "--target", target, ...what], {
    env: { ...pip.env, TMPDIR: scratch, PIP_DRY_RUN: "0", PIP_USER: "0", PYTHONUNBUFFERED: "1" },
  });
  rmSync(scratch, { recursive: true });
}
