import { chmodSync, existsSync, globSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { requireSpace, StepFailed } from "../remedy.ts";
import { CommandFailed } from "../run.ts";
import type { Progress } from "../steps.ts";
import { installFolder, requireComplete, toolchain } from "../toolchain.ts";
import { which } from "../which.ts";
import { aptRelease, unpackFromApt } from "./apt.ts";

/** Compiles and runs programs for 64-bit ARM on another processor; an ARM machine needs neither. */
export interface Arm {
  compiler: string;
  emulator: string;
}

const packages = ["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user"];
export const armRemedy = `sudo apt-get install ${packages.join(" ")}`;
const [compiler, emulator] = ["aarch64-linux-gnu-gcc", "qemu-aarch64"];
const multiarch = "x86_64-linux-gnu";

export const armIsHere = process.arch === "arm64";
/** Whether apt can install them here. */
export const canInstallArm = (): boolean => process.arch === "x64" && aptRelease() !== undefined;

/** From TERSE_ARM_COMPILER and TERSE_ARM_EMULATOR, else the PATH, else the toolchain folder; undefined unless both are found. */
export function findArm(): Arm | undefined {
  const own = (name: string) => {
    const path = join(folder(), "bin", name);
    return existsSync(path) ? path : undefined;
  };
  const found = {
    compiler: named("TERSE_ARM_COMPILER") ?? which(compiler) ?? own(compiler),
    emulator: named("TERSE_ARM_EMULATOR") ?? which(emulator) ?? which(`${emulator}-static`) ?? own(emulator),
  };
  return found.compiler && found.emulator ? (found as Arm) : undefined;
}

export async function installArm(progress: Progress): Promise<Arm> {
  if (!canInstallArm())
    throw new StepFailed(
      "An ARM compiler and QEMU can be installed with apt only, which is missing: name yours in TERSE_ARM_COMPILER and TERSE_ARM_EMULATOR.",
    );
  mkdirSync(toolchain, { recursive: true });
  requireSpace(toolchain, 1e9);
  const fill = async (partial: string) => {
    await unpackFromApt(progress, packages, partial, { complete: true });
    // Only one of QEMU's thirty emulators is needed, and no documentation.
    const others = globSync("usr/bin/qemu-*", { cwd: partial }).filter((file) => basename(file) !== emulator);
    for (const file of [...others, "usr/share"]) rmSync(join(partial, file), { recursive: true, force: true });
    mkdirSync(join(partial, "bin"));
    // CMake looks for the archiver beside the compiler.
    const programs = [compiler, compiler.replace("gcc", "ar"), compiler.replace("gcc", "ranlib"), emulator];
    for (const name of programs.filter((name) => which(name) === undefined)) {
      const path = join(partial, "bin", name);
      writeFileSync(path, startScript(name));
      chmodSync(path, 0o755);
      await progress.run(path, ["--version"]);
    }
  };
  try {
    await installFolder(folder(), fill, () => progress.say("another process is installing it"));
  } catch (error) {
    if (error instanceof CommandFailed)
      error.hint = `Without them the tests on ARM are skipped; with root, \`${armRemedy}\`.`;
    throw error;
  }
  return requireComplete(findArm(), folder());
}

function folder(): string {
  return join(toolchain, `arm-${aptRelease() ?? "none"}`);
}

function named(variable: string): string | undefined {
  const path = process.env[variable];
  if (path && !existsSync(path))
    throw new StepFailed(`${variable}=${path} does not exist: unset it, or name a program.`);
  return path || undefined;
}

/** A script that starts an unpacked program with its unpacked libraries. */
const startScript = (name: string): string => `#!/bin/sh
here=$(dirname "$(dirname "$(readlink -f "$0")")")
LD_LIBRARY_PATH=$here/usr/lib/${multiarch}:$here/lib/${multiarch} exec "$here/usr/bin/${name}" "$@"
`;
