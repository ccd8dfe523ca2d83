// Imports every package as users get it, from dist, in the oldest Node that package.json allows; so this file is JavaScript.
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const root = join(import.meta.dirname, "../..");
let failed = false;
for (const file of globSync("{packages,native}/*/package.json", { cwd: root }).sort()) {
  const { name, private: isPrivate, exports } = JSON.parse(readFileSync(join(root, file), "utf8"));
  if (isPrivate) continue;
  try {
    const names = Object.keys(await import(pathToFileURL(join(root, dirname(file), exports["."].default)).href));
    if (names.length === 0) throw new Error("it exports nothing");
    console.log(`✓ ${name}: ${names.length} exports`);
  } catch (error) {
    failed = true;
    console.error(`✗ ${name}: ${error.message}`);
  }
}
process.exitCode = failed ? 1 : 0;
