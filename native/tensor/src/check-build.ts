import { existsSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { NativeMissingError } from "@terse/native-loader";

/** build-info.json, which CMake writes next to the addon. */
export interface BuildInfo {
  libtorch: string; // folder with lib/ and include/
  foundBy: string;
  version: string;
  cxx11Abi: 0 | 1;
  compiler: string;
}

export function readBuildInfo(packageRoot: string): BuildInfo | undefined {
  const file = join(packageRoot, "build", "Release", "build-info.json");
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as BuildInfo) : undefined;
}

/**
 * Checks the addon's libtorch before the addon is opened. Throws NativeMissingError if that libtorch was removed, or if
 * LIBTORCH names another one.
 */
export function checkBuild(packageRoot: string, environment: NodeJS.ProcessEnv = process.env): void {
  const info = readBuildInfo(packageRoot);
  if (info === undefined) return; // the addon is not built; the loader has a better message for that
  const remedy = `Rebuild it with \`./terse setup\`, or \`npx cmake-js rebuild\` in ${packageRoot}.`;
  if (!existsSync(join(info.libtorch, "lib", "libtorch_cpu.so")))
    throw new NativeMissingError(
      `The native tensor addon was built against libtorch ${info.version} at ${info.libtorch}, which does not exist any more. ${remedy}`,
    );
  const wanted = environment["LIBTORCH"];
  if (wanted && (!existsSync(wanted) || realpathSync(wanted) !== realpathSync(info.libtorch)))
    throw new NativeMissingError(
      `The native tensor addon was built against libtorch ${info.version} at ${info.libtorch}, but LIBTORCH is ${wanted}. ${remedy}`,
    );
}
