import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { totalmem } from "node:os";
import { join } from "node:path";
import { availableProcessors } from "../../native/loader/src/available-processors.ts";
import { type Environment, variables } from "../environment.ts";
import type { Progress } from "../steps.ts";
import { root } from "../toolchain.ts";
import { findBuildTools, requireBuildTools } from "./build-tools.ts";
import { withCheckoutLock } from "./packages.ts";

export const addons = ["codecs", "collectives", "optimizers", "tensor"] as const;
export type AddonName = (typeof addons)[number];

/**
 * What an addon was built from. Other `tools` need a clean build; other `sources` a build of the changed files. An MPI
 * where there was none needs only the latter: tests install it, and a module of its own has what uses it.
 */
export interface Stamp {
  tools: string;
  mpi?: string;
  sources: string;
}

export type BuildState = "current" | "changed" | "missing";

export function isBuilt(addon: AddonName): boolean {
  return existsSync(join(root, "native", addon, "build", "Release", `${addon}.node`));
}

export function buildState(addon: AddonName, environment: Environment): BuildState {
  if (!isBuilt(addon)) return "missing";
  return sameStamp(readStamp(addon), wantedStamp(addon, environment)) ? "current" : "changed";
}

export async function buildAddon(addon: AddonName, environment: Environment, progress: Progress): Promise<void> {
  requireBuildTools();
  await withCheckoutLock(progress, async () => {
    if (buildState(addon, environment) === "current") return;
    const folder = join(root, "native", addon);
    const [built, wanted] = [readStamp(addon), wantedStamp(addon, environment)];
    rmSync(stampFile(addon), { force: true });
    const cmakeJs = join(root, "node_modules", "cmake-js", "bin", "cmake-js");
    for (const command of waysToBuild(built, wanted))
      await progress.run(process.execPath, [cmakeJs, command, "--directory", folder], {
        cwd: folder,
        env: {
          ...variables(environment),
          CMAKE_BUILD_PARALLEL_LEVEL: process.env["CMAKE_BUILD_PARALLEL_LEVEL"] || String(parallelJobs()),
        },
      });
    mkdirSync(join(folder, "build"), { recursive: true });
    writeFileSync(stampFile(addon), JSON.stringify(wanted));
  });
}

/** The commands of cmake-js, one after the other. */
export function waysToBuild(built: Stamp | undefined, wanted: Stamp): readonly string[] {
  if (built?.tools !== wanted.tools) return ["rebuild"];
  const { mpi = "" } = built; // stamps written before had none
  if (mpi === wanted.mpi) return ["build"];
  return mpi === "" ? ["configure", "build"] : ["rebuild"]; // CMake would still find the other one in its cache
}

function readStamp(addon: AddonName): Stamp | undefined {
  const file = stampFile(addon);
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Stamp) : undefined;
}

function sameStamp(a: Stamp | undefined, b: Stamp): boolean {
  return a !== undefined && a.tools === b.tools && (a.mpi ?? "") === b.mpi && a.sources === b.sources;
}

function stampFile(addon: AddonName): string {
  return join(root, "native", addon, "build", "terse-stamp.json");
}

export function wantedStamp(addon: AddonName, environment: Environment): Stamp {
  const { compiler, cmake, make } = findBuildTools();
  const tools = [compiler.path, cmake.path, make.path].map((path) => path && fileIdentity(path));
  const flags = ["CFLAGS", "CXXFLAGS", "LDFLAGS", "CC", "CXX"].map((name) => process.env[name]);
  const { libtorch, gloo, mpi } = environment;
  // Their files, and not how they were found: a shell that has `./terse env` names the same ones by variables.
  const libraries =
    addon === "tensor" ? [libtorch?.root, libtorch?.version] : addon === "collectives" ? [gloo?.library] : [];
  const headers = realpathSync(join(root, "native", addon, "node_modules", "node-addon-api"));
  return {
    tools: createHash("sha256")
      .update(JSON.stringify([tools, flags, libraries, headers]))
      .digest("hex"),
    mpi: addon === "collectives" && mpi ? `${mpi.prefix ?? ""} ${mpi.path}` : "",
    sources: hashFiles(root, sourcesOf(addon)),
  };
}

/** All files of the repository that a build reads; the codecs' C files are beside their TypeScript. */
export function sourcesOf(addon: AddonName): string[] {
  const languages = "**/*.{c,cc,cpp,h,hpp,cu,cuh,cmake,txt}";
  const patterns = [
    `native/${addon}/${languages}`,
    `native/include/${languages}`,
    `native/cmake/${languages}`,
    `native/loops/${languages}`,
    `packages/${addon}/src/${languages}`,
  ];
  const outside = (path: string) =>
    path === "build" || path === "node_modules" || path.endsWith("/build") || path.endsWith("/node_modules");
  return [...globSync(patterns, { cwd: root, exclude: outside }), `native/${addon}/package.json`].sort();
}

/** A hash of the names and contents of files, but not of their times. */
export function hashFiles(folder: string, files: readonly string[]): string {
  const hash = createHash("sha256");
  for (const file of files)
    hash.update(`${file}\n`).update(
      createHash("sha256")
        .update(readFileSync(join(folder, file)))
        .digest(),
    );
  return hash.digest("hex");
}

/** Identifies a tool by its file, which is faster than to run it for its version. */
export function fileIdentity(path: string): string {
  const file = realpathSync(path);
  const { size, mtimeMs } = statSync(file);
  return `${file} ${size} ${mtimeMs}`;
}

/** Compiling torch's headers takes up to 2 GB for each job. */
export function parallelJobs(): number {
  const memory = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY); // of a container
  return Math.max(1, Math.min(availableProcessors(), Math.floor(memory / 2e9)));
}
