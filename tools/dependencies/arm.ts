import { chmodSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { StepFailed } from "../remedy.ts";
import type { Progress } from "../steps.ts";
import { installFolder, requireComplete, toolchain } from "../toolchain.ts";
import { which } from "../which.ts";
import { aptRelease, unpackFromApt } from "./apt.ts";

/** Compiles and runs programs for 64-bit ARM on another processor; an ARM machine needs neither. */
export interface Arm {
  compiler: string;
  emulator: string;
}

/** Also compiles C++, and programs with shared libraries. Only releases need it. */
export interface ArmCpp extends Arm {
  cppCompiler: string;
  libraries: string; // a folder with ARM's lib/
}

const packages = ["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user"];
const cppPackages = ["g++-aarch64-linux-gnu", ...packages];
export const armRemedy = `sudo apt-get install ${packages.join(" ")}`;
const [compiler, cppCompiler, emulator] = ["aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++", "qemu-aarch64"];
const multiarch = "x86_64-linux-gnu";

export const armIsHere = process.arch === "arm64";
/** Whether apt can install them here. */
export const canInstallArm = (): boolean => process.arch === "x64" && aptRelease() !== undefined;

/**
 * From TERSE_ARM_COMPILER and TERSE_ARM_EMULATOR, else the PATH, else the toolchain folder; undefined unless both
 * exist.
 */
export function findArm(): Arm | undefined {
  const found = {
    compiler: named("TERSE_ARM_COMPILER") ?? which(compiler) ?? own("arm", compiler),
    emulator: named("TERSE_ARM_EMULATOR") ?? which(emulator) ?? which(`${emulator}-static`) ?? own("arm", emulator),
  };
  return found.compiler && found.emulator ? (found as Arm) : undefined;
}

/** From the toolchain folder, else the PATH; undefined unless all are found. */
export function findArmCpp(): ArmCpp | undefined {
  const at = (name: string) => own("arm-cpp", name) ?? which(name);
  const found = {
    compiler: at(compiler),
    cppCompiler: at(cppCompiler),
    emulator: at(emulator) ?? which(`${emulator}-static`),
    libraries: [folder("arm-cpp"), ""]
      .map((prefix) => `${prefix}/usr/aarch64-linux-gnu`)
      .find((path) => existsSync(join(path, "lib", "libstdc++.so.6"))),
  };
  return Object.values(found).every(Boolean) ? (found as ArmCpp) : undefined;
}

export async function installArm(progress: Progress): Promise<Arm> {
  await unpackArm(progress, "arm", packages, [compiler]);
  return requireComplete(findArm(), folder("arm"));
}

export async function installArmCpp(progress: Progress): Promise<ArmCpp> {
  await unpackArm(progress, "arm-cpp", cppPackages, [compiler, cppCompiler]);
  return requireComplete(findArmCpp(), folder("arm-cpp"));
}

async function unpackArm(
  progress: Progress,
  kind: string,
  packages: readonly string[],
  compilers: readonly string[],
): Promise<void> {
  if (!canInstallArm())
    throw new StepFailed(
      "An ARM compiler and QEMU can be installed with apt only, which is missing: name yours in TERSE_ARM_COMPILER and TERSE_ARM_EMULATOR.",
    );
  const fill = async (partial: string) => {
    await unpackFromApt(progress, packages, partial, { complete: true });
    // Only one of QEMU's thirty emulators is needed, and no documentation.
    const others = globSync("usr/bin/qemu-*", { cwd: partial }).filter((file) => basename(file) !== emulator);
    for (const file of [...others, "usr/share"]) rmSync(join(partial, file), { recursive: true, force: true });
    // ARM's libc.so is a linker script with the paths that an installation would have; bare names are found beside it.
    for (const file of globSync("usr/aarch64-linux-gnu/lib/lib{c,m}.so", { cwd: partial })) {
      const path = join(partial, file);
      const script = readFileSync(path, "latin1");
      if (script.startsWith("/* GNU ld script"))
        writeFileSync(path, script.replaceAll("/usr/aarch64-linux-gnu/lib/", ""));
    }
    mkdirSync(join(partial, "bin"));
    // CMake looks for the archiver beside the compiler.
    const programs = [...compilers, compiler.replace("gcc", "ar"), compiler.replace("gcc", "ranlib"), emulator];
    for (const name of programs.filter((name) => existsSync(join(partial, "usr", "bin", name)))) {
      const path = join(partial, "bin", name);
      writeFileSync(path, startScript(name));
      chmodSync(path, 0o755);
      await progress.run(path, ["--version"]);
    }
  };
  await installFolder(progress, folder(kind), fill, {
    bytes: 1e9,
    hint: `Without them the tests on ARM are skipped; with root, \`${armRemedy}\`.`,
  });
}

function folder(kind: string): string {
  return join(toolchain, `${kind}-${aptRelease() ?? "none"}`);
}

function own(kind: string, name: string): string | undefined {
  const path = join(folder(kind), "bin", name);
  return existsSync(path) ? path : undefined;
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
