import { chmodSync, existsSync, globSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { requireSpace, StepFailed } from "../remedy.ts";
import { CommandFailed } from "../run.ts";
import type { Progress } from "../steps.ts";
import { bring, toolchain, whole } from "../toolchain.ts";
import { which } from "../which.ts";
import { aptRelease, unpackFromApt } from "./apt.ts";

/** What makes and runs programs for 64-bit ARM on another machine; an ARM machine needs neither. */
export interface Arm {
  compiler: string;
  emulator: string;
}

const packages = ["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user"];
export const armRemedy = `sudo apt-get install ${packages.join(" ")}`;
const [compiler, emulator] = ["aarch64-linux-gnu-gcc", "qemu-aarch64"];
const multiarch = "x86_64-linux-gnu";

export const armIsHere = process.arch === "arm64";
/** Whether apt can bring them. */
export const armComes = (): boolean => process.arch === "x64" && aptRelease() !== undefined;

/** What TERSE_ARM_COMPILER and TERSE_ARM_EMULATOR name, else what is on the PATH, else in the toolchain folder; both or nothing. */
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

export async function bringArm(progress: Progress): Promise<Arm> {
  if (!armComes())
    throw new StepFailed(
      "There is no apt to bring an ARM compiler and QEMU: name yours in TERSE_ARM_COMPILER and TERSE_ARM_EMULATOR.",
    );
  mkdirSync(toolchain, { recursive: true });
  requireSpace(toolchain, 1e9);
  const fill = async (partial: string) => {
    await unpackFromApt(progress, packages, partial, { complete: true });
    // Of QEMU's thirty machines one is asked for, and nobody reads documentation here.
    const others = globSync("usr/bin/qemu-*", { cwd: partial }).filter((file) => basename(file) !== emulator);
    for (const file of [...others, "usr/share"]) rmSync(join(partial, file), { recursive: true, force: true });
    mkdirSync(join(partial, "bin"));
    // CMake looks for the archiver beside the compiler.
    const programs = [compiler, compiler.replace("gcc", "ar"), compiler.replace("gcc", "ranlib"), emulator];
    for (const name of programs.filter((name) => which(name) === undefined)) {
      const path = join(partial, "bin", name);
      writeFileSync(path, start(name));
      chmodSync(path, 0o755);
      await progress.run(path, ["--version"]);
    }
  };
  try {
    await bring(folder(), fill, () => progress.say("another set-up is bringing it"));
  } catch (error) {
    if (error instanceof CommandFailed)
      error.hint = `Without them the tests on ARM are skipped; with root, \`${armRemedy}\`.`;
    throw error;
  }
  return whole(findArm(), folder());
}

function folder(): string {
  return join(toolchain, `arm-${aptRelease() ?? "none"}`);
}

function named(variable: string): string | undefined {
  const path = process.env[variable];
  if (path && !existsSync(path)) throw new StepFailed(`${variable}=${path} is no file: unset it, or name a program.`);
  return path || undefined;
}

/** A program that lies here without its package being installed: its libraries lie here too. */
const start = (name: string): string => `#!/bin/sh
here=$(dirname "$(dirname "$(readlink -f "$0")")")
LD_LIBRARY_PATH=$here/usr/lib/${multiarch}:$here/lib/${multiarch} exec "$here/usr/bin/${name}" "$@"
`;
