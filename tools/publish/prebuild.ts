import { existsSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import type { ArmCpp } from "../dependencies/arm.ts";
import { StepFailed } from "../remedy.ts";
import type { Progress } from "../steps.ts";

type Runs = Pick<Progress, "run">;

/** The addons whose libraries every machine has in one place. `tensor` needs libtorch, so users build it. */
export const portable = ["codecs", "collectives", "optimizers"] as const;
export const targets = ["linux-x64", "linux-arm64"] as const;
export type Target = (typeof targets)[number];

/** What the addons may ask of a machine: glibc 2.34 and GCC 12's libstdc++, as Debian 12 and Ubuntu 22.04 have them. */
const newest: Readonly<Record<string, string>> = { GLIBC: "2.34", GLIBCXX: "3.4.30", CXXABI: "1.3.13", GCC: "9.9" };

/**
 * Builds an addon of the checkout `root` for other machines: `native/<name>/build/prebuilt/<target>/<name>.node`. It is
 * plain Node-API 9, so one file serves Node 22 and all later ones.
 */
export async function prebuild(
  progress: Runs,
  root: string,
  name: (typeof portable)[number],
  target: Target,
  arm: ArmCpp | undefined,
): Promise<void> {
  const build = join(root, "native", name, "build", "prebuilt", target);
  await buildPortable(progress, root, name, { build, target, arm });
  const wants = tooNew(readFileSync(join(build, `${name}.node`), "latin1"));
  if (wants.length > 0)
    throw new StepFailed(
      `native/${name} for ${target} asks for ${wants.join(", ")}, which older machines lack: release on Debian 12 or an older system.`,
    );
}

/** Builds `<build>/<name>.node` without libraries that another machine may lack, for this machine or for `target`. */
export async function buildPortable(
  progress: Runs,
  root: string,
  name: string,
  { build, target, arm }: { build: string; target?: Target; arm?: ArmCpp | undefined },
): Promise<void> {
  const folder = join(root, "native", name);
  const headers = [
    join(root, "node_modules", "cmake-js", "node_modules", "node-api-headers", "include"),
    join(realpathSync(join(root, "node_modules", "cmake-js")), "..", "node-api-headers", "include"),
  ].find(existsSync);
  const settings: Record<string, string> = {
    CMAKE_BUILD_TYPE: "Release",
    CMAKE_JS_INC: [headers, realpathSync(join(folder, "node_modules", "node-addon-api"))].join(";"),
    CMAKE_SHARED_LINKER_FLAGS: "-s",
    TERSE_PORTABLE: "ON",
  };
  if (target !== undefined && target !== `linux-${process.arch}`) {
    if (arm === undefined) throw new StepFailed(`Addons for ${target} need its compiler: release on an x64 machine.`);
    settings["CMAKE_SYSTEM_NAME"] = "Linux";
    settings["CMAKE_SYSTEM_PROCESSOR"] = "aarch64";
    settings["CMAKE_C_COMPILER"] = arm.compiler;
    settings["CMAKE_CXX_COMPILER"] = arm.cppCompiler;
  }
  const given = Object.entries(settings).map(([key, value]) => `-D${key}=${value}`);
  await progress.run("cmake", ["-S", folder, "-B", build, ...given]);
  await progress.run("cmake", ["--build", build, "--target", name, "--parallel", "2"]);
}

/** The versions of symbols in a library that are newer than those that it may ask for: "GLIBC_2.38". */
export function tooNew(library: string): string[] {
  const found = new Set(library.match(/\b(?:GLIBC|GLIBCXX|CXXABI|GCC)_\d+(?:\.\d+)+(?=\0)/g));
  return [...found].filter((symbol) => {
    const [kind, version] = symbol.split("_") as [string, string];
    return version.localeCompare(newest[kind]!, "en", { numeric: true }) > 0;
  });
}
