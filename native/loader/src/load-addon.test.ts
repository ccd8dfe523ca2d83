import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, expect, it } from "vitest";
import { cudaLibrary, loadAddon, NativeMissingError } from "./index.ts";

const scratch = mkdtempSync(join(tmpdir(), "terse-loader-"));
afterAll(() => rmSync(scratch, { recursive: true }));

/** The URL of a module in the package of a name. */
function moduleOf(name: string): string {
  const root = mkdtempSync(join(scratch, "package-"));
  mkdirSync(join(root, "dist"));
  writeFileSync(join(root, "package.json"), JSON.stringify({ name }));
  return pathToFileURL(join(root, "dist", "index.js")).href;
}

it.each([
  ["another package", moduleOf("my-app")],
  ["no package", pathToFileURL(join(scratch, "bundle.mjs")).href],
  ["CommonJS, which has no import.meta.url", undefined],
])("says what to tell a bundler that has put the package into %s", (_, url) => {
  for (const open of [loadAddon, cudaLibrary]) {
    expect(() => open("codecs", url)).toThrow(NativeMissingError);
    expect(() => open("codecs", url)).toThrow("Leave @terse/native-* out of the bundle");
  }
});

it("says how to build an addon that is missing in its own package", () => {
  expect(() => loadAddon("codecs", moduleOf("@terse/native-codecs"))).toThrow(/is not built: .*npx cmake-js build/);
});
