import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, expect, it, vi } from "vitest";
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
  expect(() => loadAddon("codecs", moduleOf("@terse/native-codecs"))).toThrow(/is not built: .*npx cmake-js rebuild/);
});

it.skipIf(process.platform !== "linux")("says that memory is short where an addon does not fit into it", () => {
  const url = moduleOf("@terse/native-codecs");
  const folder = fileURLToPath(new URL("../build/Release", url));
  mkdirSync(folder, { recursive: true });
  const addon = readFileSync(new URL("../../codecs/build/Release/codecs.node", import.meta.url));
  // The program header of a segment to load says how much memory it takes.
  const [begin, size, count] = [Number(addon.readBigUInt64LE(32)), addon.readUInt16LE(54), addon.readUInt16LE(56)];
  const headers = Array.from({ length: count }, (_, i) => begin + i * size);
  const last = headers.findLast((at) => addon.readUInt32LE(at) === 1)!;
  addon.writeBigUInt64LE(2n ** 50n, last + 40);
  writeFileSync(join(folder, "codecs.node"), addon);
  expect(() => loadAddon("codecs", url)).toThrow(/Memory is out, or this process may not have more: .*ulimit -v/);
});

it.skipIf(process.platform !== "linux")("names a library of LD_LIBRARY_PATH that is too old for the addon", () => {
  const url = moduleOf("@terse/native-codecs");
  const folder = fileURLToPath(new URL("../build/Release", url));
  mkdirSync(folder, { recursive: true });
  const addon = readFileSync(new URL("../../codecs/build/Release/codecs.node", import.meta.url), "latin1");
  // The addon asks for a version that no libstdc++ has.
  const asks = addon.replace(/(?<=\0GLIBCXX_)[\d.]+(?=\0)/g, (version) => version.replaceAll(/\d/g, "9"));
  writeFileSync(join(folder, "codecs.node"), asks, "latin1");
  const message = () => {
    try {
      loadAddon("codecs", url);
    } catch (error) {
      return (error as Error).message;
    }
    return "none";
  };
  vi.stubEnv("LD_LIBRARY_PATH", undefined);
  const [, library] = /: (\S+)\/libstdc\+\+\.so\.6: version `GLIBCXX_9\S+' not found .*\. Rebuild it/.exec(message())!;
  vi.stubEnv("LD_LIBRARY_PATH", `/usr/nowhere:${library}/`);
  expect(message()).toMatch(/older than the one that the addon was compiled with: take \S+ out of LD_LIBRARY_PATH/);
  expect(message()).not.toContain("Rebuild");
  vi.unstubAllEnvs();
});

it.each([["--permission", "--allow-fs-read=*"], ["--no-addons"]])(
  "names the flag that keeps addons away: %s",
  (...flags) => {
    const program = `
    import { loadAddon } from ${JSON.stringify(new URL("load-addon.ts", import.meta.url).href)};
    try { loadAddon("codecs", ${JSON.stringify(new URL("../../codecs/src/index.ts", import.meta.url).href)}); }
    catch (error) { console.log(error.name, error.message, error.cause.code); }`;
    const node = [...flags, "--conditions=@terse/source", "--input-type=module", "--eval", program];
    expect(execFileSync(process.execPath, node, { encoding: "utf8" }).trim()).toBe(
      "NativeMissingError The native codecs addon may not be opened: this Node runs with --permission or --no-addons. Start it with --permission --allow-addons, or without these flags. ERR_DLOPEN_DISABLED",
    );
  },
);
