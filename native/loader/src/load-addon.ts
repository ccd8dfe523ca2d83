import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { NativeMissingError } from "./native-missing-error.ts";

export type Addon = Record<string, unknown>;

/**
 * Opens `build/Release/<name>.node` of the package that holds `moduleUrl` (its `import.meta.url`), or the one that it was
 * published with, `dist/prebuilt/<platform>-<architecture>/<name>.node`.
 * Symbols bind inside the addon first (RTLD_DEEPBIND): Node exports its own OpenSSL, zlib and libuv, which must not
 * stand in for those that libtorch was built with. `TERSE_DEEPBIND=0` turns that off, for sanitizers.
 */
export function loadAddon(name: string, moduleUrl: string): Addon {
  const file = addonFile(name, moduleUrl);
  const deepBind =
    process.env["TERSE_DEEPBIND"] === "0" ? 0 : ((constants.dlopen as { RTLD_DEEPBIND?: number }).RTLD_DEEPBIND ?? 0);
  const module = { exports: {} as Addon };
  try {
    process.dlopen(module, file, constants.dlopen.RTLD_NOW | deepBind);
  } catch (error) {
    throw new NativeMissingError(
      `the native ${name} addon does not open: ${(error as Error).message}. Rebuild it with \`./terse setup\`, or \`npx cmake-js rebuild\` in ${packageRoot(moduleUrl)}.`,
      { cause: error },
    );
  }
  return module.exports;
}

function addonFile(name: string, moduleUrl: string): string {
  const root = packageRoot(moduleUrl);
  const built = join(root, "build", "Release", `${name}.node`);
  const prebuilt = join(root, "dist", "prebuilt", `${process.platform}-${process.arch}`, `${name}.node`);
  const file = [built, prebuilt].find(existsSync);
  if (file !== undefined) return createRequire(moduleUrl).resolve(file);
  throw new NativeMissingError(
    `the native ${name} addon is not built: ${built} is missing. Build it with \`./terse setup\` in the repository, or \`npx cmake-js build\` in ${root}.`,
  );
}

/** Sources lie in src/, published code in dist/: the package root is the nearest folder with a package.json. */
function packageRoot(moduleUrl: string): string {
  let root = dirname(fileURLToPath(moduleUrl));
  while (!existsSync(join(root, "package.json")) && dirname(root) !== root) root = dirname(root);
  return root;
}
