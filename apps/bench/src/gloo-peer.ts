import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

// Our own side of it: the collectives, and what they stand on.
const sources = [
  ...["all_gather", "all_reduce", "all_to_all", "barrier", "broadcast", "direct", "gather", "message"],
  ...["reduce", "ring", "root", "scatter", "straight", "gloo/gloo"],
];

/** Builds peers/gloo_collectives.cc into a folder; undefined, with the reason on standard error, where that cannot be. */
export function buildGlooPeer(folder: string): string | undefined {
  const source = fileURLToPath(new URL("../peers/gloo_collectives.cc", import.meta.url));
  const native = fileURLToPath(new URL("../../../native", import.meta.url));
  const ours = join(native, "collectives");
  const program = join(folder, "gloo_collectives");
  const prefix = process.env["TERSE_GLOO"];
  const root = prefix && [join(prefix, "usr"), prefix].find((each) => existsSync(join(each, "include/gloo/context.h")));
  const libraries = root ? below(join(root, "lib")).filter((each) => existsSync(join(each, "libgloo.so"))) : [];
  const where = root
    ? [
        ...["-isystem", join(root, "include")],
        ...libraries.flatMap((each) => [`-L${each}`, `-Wl,-rpath,${each}`, `-Wl,-rpath-link,${each}`]),
      ]
    : [];
  try {
    // The old kind of run path, which also finds what Gloo itself needs.
    const flags = ["-std=c++20", "-O3", "-march=native", "-ffp-contract=off", "-Wl,--disable-new-dtags"];
    const files = [source, ...sources.map((name) => join(ours, `${name}.cc`)), "-o", program];
    const includes = [`-I${ours}`, `-I${join(native, "include")}`];
    execFileSync("c++", [...flags, ...files, ...includes, ...where, "-lgloo", "-lpthread"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
    return program;
  } catch (error) {
    process.stderr.write(`without Gloo's own collectives beside us: ${(error as Error).message}\n`);
    return undefined;
  }
}

/** A folder and those in it. */
function below(folder: string): string[] {
  return existsSync(folder) ? [folder, ...readdirSync(folder).map((name) => join(folder, name))] : [];
}
