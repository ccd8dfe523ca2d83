import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Builds peers/gloo_allreduce.cc into a folder; undefined, with the reason on standard error, where that cannot be. */
export function buildGlooPeer(folder: string): string | undefined {
  const source = fileURLToPath(new URL("../../peers/gloo_allreduce.cc", import.meta.url));
  const program = join(folder, "gloo_allreduce");
  const prefix = process.env["TERSE_GLOO"];
  const root = prefix && [join(prefix, "usr"), prefix].find((each) => existsSync(join(each, "include/gloo/context.h")));
  const libraries = root ? below(join(root, "lib")).filter((each) => existsSync(join(each, "libgloo.so"))) : [];
  const where = root
    ? [
        `-I${join(root, "include")}`,
        ...libraries.flatMap((each) => [`-L${each}`, `-Wl,-rpath,${each}`, `-Wl,-rpath-link,${each}`]),
      ]
    : [];
  try {
    // The old kind of run path, which also finds what Gloo itself needs.
    const flags = ["-std=c++17", "-O3", "-march=native", "-Wl,--disable-new-dtags"];
    execFileSync("c++", [...flags, source, "-o", program, ...where, "-lgloo", "-lpthread"], { encoding: "utf8" });
    return program;
  } catch (error) {
    process.stderr.write(`without Gloo's own ring beside us: ${(error as Error).message}\n`);
    return undefined;
  }
}

/** A folder and those in it. */
function below(folder: string): string[] {
  return existsSync(folder) ? [folder, ...readdirSync(folder).map((name) => join(folder, name))] : [];
}
