import { existsSync, mkdirSync, readdirSync, renameSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { StepFailed } from "../remedy.ts";
import type { Progress } from "../steps.ts";
import { installFolder, requireComplete, toolchain } from "../toolchain.ts";
import { aptRelease, unpackFromApt } from "./apt.ts";

export interface Gloo {
  prefix: string; // include/gloo/*.h and libgloo.so are under it, or under its usr/
  library: string;
  source: "TERSE_GLOO" | "system" | "toolchain";
}

const multiarch = process.arch === "arm64" ? "aarch64-linux-gnu" : "x86_64-linux-gnu";
const command = "sudo apt-get install libgloo-dev";

/** Gloo from TERSE_GLOO, else the system, else the toolchain folder; undefined when there is none. */
export function findGloo(): Gloo | undefined {
  const named = process.env["TERSE_GLOO"];
  if (named) {
    const gloo = glooAt(named, "TERSE_GLOO");
    if (gloo === undefined)
      throw new StepFailed(
        `TERSE_GLOO=${named} holds no include/gloo/config.h with libgloo.so: unset it, or name the prefix that Gloo is installed under.`,
      );
    return gloo;
  }
  return glooAt("/usr", "system") ?? glooAt("/usr/local", "system") ?? glooAt(folder(), "toolchain");
}

export async function installGloo(progress: Progress): Promise<Gloo> {
  if (aptRelease() === undefined)
    throw new StepFailed(
      `Gloo is missing and apt, which could install it, is too: install its development package, or name its prefix in TERSE_GLOO.`,
    );
  const fill = async (partial: string) => {
    await unpackFromApt(progress, ["libgloo-dev"], partial);
    gatherLibraries(partial);
    if (glooAt(partial, "toolchain") === undefined)
      throw new StepFailed(`No libgloo.so was found in the distribution's libgloo-dev: \`${command}\`.`);
  };
  await installFolder(progress, folder(), fill, { hint: `With root, \`${command}\` installs Gloo too.` });
  return requireComplete(glooAt(folder(), "toolchain"), folder());
}

function folder(): string {
  return join(toolchain, `gloo-${aptRelease() ?? "none"}`);
}

function glooAt(prefix: string, source: Gloo["source"]): Gloo | undefined {
  for (const base of [prefix, join(prefix, "usr")]) {
    if (!existsSync(join(base, "include", "gloo", "config.h"))) continue;
    const library = [join("lib", multiarch), "lib", "lib64"]
      .map((part) => join(base, part, "libgloo.so"))
      .find((file) => existsSync(file));
    if (library !== undefined) return { prefix, library, source };
  }
  return undefined;
}

/** Moves all libraries into one folder: packages put them into /lib, /usr/lib and their multiarch folders. */
function gatherLibraries(prefix: string): void {
  const all = join(prefix, "usr", "lib", multiarch);
  mkdirSync(all, { recursive: true });
  for (const other of [join("usr", "lib"), "lib", join("lib", multiarch)]) {
    const from = join(prefix, other);
    if (!existsSync(from)) continue;
    for (const file of readdirSync(from)) {
      if (!file.includes(".so") || existsSync(join(all, file))) continue;
      renameSync(join(from, file), join(all, file));
      // A link stays in the old place, because the package's CMake files name it.
      if (other === join("usr", "lib")) symlinkSync(join(multiarch, file), join(from, file));
    }
  }
}
