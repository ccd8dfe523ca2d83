// Before the package is packed: what `npx cmake-js build` needs lies outside of this folder, and travels as dist/repository, in the
// places that it has here; an addon that is built here travels as dist/prebuilt/<platform>-<architecture>.
import { cpSync, existsSync, globSync, rmSync } from "node:fs";
import { join } from "node:path";

const folder = import.meta.dirname;
const root = join(folder, "../..");
const dist = join(folder, "dist");

const sources = globSync(
  [
    "native/codecs/**/*.{c,cc,cmake,h,in,txt}",
    "native/include/**/*.h",
    "native/parallel/*.c",
    "native/cmake/*.cmake",
    "native/*.cc",
    "packages/codecs/src/**/*.{c,h}",
  ],
  { cwd: root, exclude: (path) => /(^|\/)(build|dist|node_modules)$/.test(path) },
);
rmSync(join(dist, "repository"), { recursive: true, force: true });
for (const file of sources) cpSync(join(root, file), join(dist, "repository", file));

const addon = join(folder, "build/Release/codecs.node");
rmSync(join(dist, "prebuilt"), { recursive: true, force: true });
if (existsSync(addon)) cpSync(addon, join(dist, "prebuilt", `${process.platform}-${process.arch}`, "codecs.node"));
