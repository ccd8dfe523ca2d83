// Runs in the folder of a native package before it is packed. `npx cmake-js build` needs files from outside of that
// folder: they are copied to dist/repository, with their paths in the repository.
//
//     node ../../tools/publish/copy-sources.ts [--prebuilt|--portable] [GLOB…]
//
// GLOBs: files besides its own sources and those that all addons share.
// The addons that `./terse release` has built for other machines, build/prebuilt/<platform>-<architecture>, are copied
// to dist/prebuilt. Without a release one for this machine's platform takes their place: with --prebuilt the addon that
// is built here, and with --portable one that is built for it now, without the libraries that another machine may lack
// or keep elsewhere. It shares nearly all objects with the addon that is built here.
import { cpSync, existsSync, globSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { withCheckoutLock } from "../dependencies/packages.ts";
import { CommandFailed, run } from "../run.ts";
import { buildPortable } from "./prebuild.ts";

const root = join(import.meta.dirname, "../..");
const folder = process.cwd();
const name = basename(folder);
const dist = join(folder, "dist");
const words = process.argv.slice(2);

const sources = globSync(
  [
    `native/${name}/**/*.{c,cc,cmake,h,in,txt}`,
    "native/include/**/*.h",
    "native/cmake/*.{cmake,h}",
    "native/*.cc",
    ...words.filter((word) => !word.startsWith("--")),
  ],
  { cwd: root, exclude: (path) => /(^|\/)(build|dist|node_modules|cuda|fake)$/.test(path) },
);
rmSync(join(dist, "repository"), { recursive: true, force: true });
for (const file of sources) cpSync(join(root, file), join(dist, "repository", file));

const released = globSync(`build/prebuilt/*-*/${name}.node`, { cwd: folder });
rmSync(join(dist, "prebuilt"), { recursive: true, force: true });
for (const file of released) cpSync(join(folder, file), join(dist, file.replace(/^build/, "")));
if (released.length === 0) {
  const addon = words.includes("--portable")
    ? await portableAddon(join(folder, "build"))
    : words.includes("--prebuilt")
      ? join(folder, "build/Release", `${name}.node`)
      : undefined;
  if (addon !== undefined && existsSync(addon))
    cpSync(addon, join(dist, "prebuilt", `${process.platform}-${process.arch}`, `${name}.node`));
}

/**
 * The addon; undefined where it cannot be built: the package then has only sources, as for a platform without an addon.
 */
async function portableAddon(build: string): Promise<string | undefined> {
  process.stderr.write(`native/${name}: building it without the libraries that another machine may lack\n`);
  const built = existsSync(join(build, "CMakeCache.txt"));
  const portable = join(build, "portable");
  try {
    if (built)
      await withCheckoutLock({ say: () => {} }, () =>
        run("cmake", ["--build", build, "--target", `${name}_portable`, "--parallel", "2"]),
      );
    else await buildPortable({ run }, root, name, { build: portable });
    return join(portable, `${name}.node`);
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    process.stderr.write(
      `${error.output}${error.message}\nThe package is packed without an addon: \`npx cmake-js rebuild\` in its folder builds it where it is installed.\n`,
    );
    return undefined;
  }
}
