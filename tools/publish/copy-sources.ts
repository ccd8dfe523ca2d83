// Before a native package is packed, in its folder: what `npx cmake-js build` needs lies in part outside of it, and travels as
// dist/repository, in the places that it has here.
//
//     node ../../tools/publish/copy-sources.ts [--prebuilt] [GLOB…]    GLOBs: what it needs beyond its own sources and what all addons share
//
// --prebuilt: an addon that is built here travels too, as dist/prebuilt/<platform>-<architecture>. For addons that need nothing
// that another machine may have elsewhere.
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

const addon = join(folder, "build/Release", `${name}.node`);
rmSync(join(dist, "prebuilt"), { recursive: true, force: true });
if (words.includes("--prebuilt") && existsSync(addon))
  cpSync(addon, join(dist, "prebuilt", `${process.platform}-${process.arch}`, `${name}.node`));
