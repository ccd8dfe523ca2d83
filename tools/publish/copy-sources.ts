// Runs in the folder of a native package before it is packed. `npx cmake-js build` needs files from outside of that folder: they are
// copied to dist/repository, with their paths in the repository.
//
//     node ../../tools/publish/copy-sources.ts [--prebuilt] [GLOB…]    GLOBs: files besides its own sources and those that all addons share
//
// The addons that `./terse release` has built for other machines, build/prebuilt/<platform>-<architecture>, are copied to dist/prebuilt.
// With --prebuilt and without a release, the addon of this machine takes their place. It is for addons that need no library that another
// machine may keep elsewhere.
import { cpSync, existsSync, globSync, rmSync } from "node:fs";
import { basename, join } from "node:path";

const root = join(import.meta.dirname, "../..");
const folder = process.cwd();
const name = basename(folder);
const dist = join(folder, "dist");
const words = process.argv.slice(2);

const sources = globSync(
  [
    `native/${name}/**/*.{c,cc,cmake,h,in,txt}`,
    "native/include/**/*.h",
    "native/cmake/*.cmake",
    "native/*.cc",
    ...words.filter((word) => !word.startsWith("--")),
  ],
  { cwd: root, exclude: (path) => /(^|\/)(build|dist|node_modules|cuda|fake)$/.test(path) },
);
rmSync(join(dist, "repository"), { recursive: true, force: true });
for (const file of sources) cpSync(join(root, file), join(dist, "repository", file));

const released = globSync(`build/prebuilt/*-*/${name}.node`, { cwd: folder });
const addon = join(folder, "build/Release", `${name}.node`);
rmSync(join(dist, "prebuilt"), { recursive: true, force: true });
for (const file of released) cpSync(join(folder, file), join(dist, file.replace(/^build/, "")));
if (released.length === 0 && words.includes("--prebuilt") && existsSync(addon))
  cpSync(addon, join(dist, "prebuilt", `${process.platform}-${process.arch}`, `${name}.node`));
