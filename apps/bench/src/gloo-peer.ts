import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Builds peers/gloo_collectives.cc into a folder; undefined if that fails, with the reason on standard error. */
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
    // RPATH, not RUNPATH: it also applies to the libraries that Gloo needs.
    const flags = ["-std=c++20", "-O3", "-march=native", "-ffp-contract=off", "-Wl,--disable-new-dtags"];
    const files = [
      source,
      join(ours, "engines/gloo/gloo.cc"),
      ...sourcesIn(join(ours, "algorithms")),
      ...sourcesIn(join(ours, "wire")),
    ];
    const includes = [`-I${ours}`, `-I${join(native, "include")}`];
    execFileSync("c++", [...flags, ...files, "-o", program, ...includes, ...where, "-lgloo", "-lpthread"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
    return program;
  } catch (error) {
    process.stderr.write(`Gloo's own collectives are not measured: ${(error as Error).message}\n`);
    return undefined;
  }
}

/** A folder and the folders in it. */
function below(folder: string): string[] {
  return existsSync(folder) ? [folder, ...readdirSync(folder).map((name) => join(folder, name))] : [];
}

const sourcesIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".cc"))
    .map((name) => join(folder, name));
