import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { constants } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { NativeMissingError } from "./native-missing-error.ts";

export type Addon = Record<string, unknown>;

/**
 * Opens the addon of the package that contains `moduleUrl` (pass `import.meta.url`): `build/Release/<name>.node`, or
 * else the prebuilt `dist/prebuilt/<platform>-<architecture>/<name>.node`. Throws NativeMissingError, also where a
 * bundler has put the module into another package, or into CommonJS, which has no `import.meta.url`.
 *
 * RTLD_DEEPBIND: symbols are looked up in the addon and its libraries first. Node exports its own OpenSSL, zlib and
 * libuv, and libtorch must not use these instead of its own. `TERSE_DEEPBIND=0` turns it off, for sanitizers. It is off
 * too where LD_PRELOAD brings another malloc: the addon would give memory of that one to glibc's free, and crash.
 */
export function loadAddon(name: string, moduleUrl: string | undefined): Addon {
  refuseBundle(name, moduleUrl);
  const file = addonFile(name, moduleUrl);
  const { RTLD_DEEPBIND = 0 } = constants.dlopen as { RTLD_DEEPBIND?: number };
  const deepBind = process.env["TERSE_DEEPBIND"] === "0" || preloadsMalloc() ? 0 : RTLD_DEEPBIND;
  const module = { exports: {} as Addon };
  try {
    process.dlopen(module, file, constants.dlopen.RTLD_NOW | deepBind);
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    if (code === "ERR_DLOPEN_DISABLED")
      throw new NativeMissingError(
        `The native ${name} addon may not be opened: this Node runs with --permission or --no-addons. Start it with --permission --allow-addons, or without these flags.`,
        { cause: error },
      );
    if (/cannot allocate memory|failed to map segment/i.test(message))
      throw new NativeMissingError(
        `The native ${name} addon cannot be opened: ${message}. Memory is out, or this process may not have more: raise its limit (ulimit -v, or that of its container).`,
        { cause: error },
      );
    const older = /^(\/.*\/[^/]+): version `.*' not found/.exec(message)?.[1];
    if (older !== undefined && isOnLibraryPath(dirname(older)))
      throw new NativeMissingError(
        `The native ${name} addon cannot be opened: ${message}. This library is older than the one that the addon was compiled with: take ${dirname(older)} out of LD_LIBRARY_PATH (conda's folder, for example).`,
        { cause: error },
      );
    throw new NativeMissingError(
      `The native ${name} addon cannot be opened: ${message}. Rebuild it with \`./terse setup\`, or \`npx cmake-js rebuild\` in ${packageRoot(moduleUrl)}.`,
      { cause: error },
    );
  }
  return module.exports;
}

/** Whether a library is preloaded that replaces malloc, such as libjemalloc, libtcmalloc or libmimalloc. */
function preloadsMalloc(): boolean {
  const files = (process.env["LD_PRELOAD"] ?? "").split(/[\s:]+/);
  return files.some((file) => /malloc|hoard|scudo/i.test(basename(file)));
}

const isOnLibraryPath = (folder: string): boolean =>
  (process.env["LD_LIBRARY_PATH"] ?? "").split(/[:;]/).some((each) => each !== "" && resolve(each) === folder);

/**
 * The library with the GPU kernels of the package that contains `moduleUrl`, native/<name> in the repository: the one
 * that the environment variable TERSE_<NAME>_CUDA names, else the one that was built there. Throws NativeMissingError.
 */
export function cudaLibrary(name: string, moduleUrl: string | undefined): string {
  refuseBundle(name, moduleUrl);
  const built = join(packageRoot(moduleUrl), "cuda", "build", `libterse_${name}_cuda.so`);
  const library = process.env[`TERSE_${name.toUpperCase()}_CUDA`] || built;
  if (existsSync(library)) return library;
  const folder = `native/${name}/cuda`;
  throw new NativeMissingError(
    `The GPU kernels of ${name} are not built: ${library} is missing. \`./terse setup\` builds them where there is an NVIDIA driver; elsewhere, with nvcc: cmake -S ${folder} -B ${folder}/build && cmake --build ${folder}/build`,
  );
}

function addonFile(name: string, moduleUrl: string): string {
  const root = packageRoot(moduleUrl);
  const built = join(root, "build", "Release", `${name}.node`);
  const prebuilt = join(root, "dist", "prebuilt", `${process.platform}-${process.arch}`, `${name}.node`);
  const file = [built, prebuilt].find(existsSync);
  if (file !== undefined) return createRequire(moduleUrl).resolve(file);
  throw new NativeMissingError(
    `The native ${name} addon is not built: ${built} is missing. Build it with \`./terse setup\` in the repository, or \`npx cmake-js rebuild\` in ${root}.`,
  );
}

function refuseBundle(name: string, moduleUrl: string | undefined): asserts moduleUrl is string {
  if (moduleUrl !== undefined && packageName(packageRoot(moduleUrl)) === `@terse/native-${name}`) return;
  throw new NativeMissingError(
    `The native ${name} addon cannot be found from inside a bundle. Leave @terse/native-* out of the bundle (with esbuild: --external:@terse/native-*), and install it where the bundle runs.`,
  );
}

function packageName(root: string): string | undefined {
  try {
    return (JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { name?: string }).name;
  } catch {
    return undefined; // there is none, or it is no JSON
  }
}

/** The nearest folder above the module that has a package.json; the module may be in src/ or in dist/. */
function packageRoot(moduleUrl: string): string {
  let root = dirname(fileURLToPath(moduleUrl));
  while (!existsSync(join(root, "package.json")) && dirname(root) !== root) root = dirname(root);
  return root;
}
