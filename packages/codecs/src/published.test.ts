import { type ExecFileSyncOptions, execFileSync, spawnSync } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NativeMissingError, codecs as nativeCodecs } from "@terse/native-codecs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withLock } from "../../../tools/lock.ts";

const root = join(import.meta.dirname, "../../..");
const packages = ["packages/codecs", "native/codecs", "native/loader"];

const missing = ["pnpm", "npm", "cmake"].filter((tool) => spawnSync(tool, ["--version"]).status !== 0);
const why = missing.length > 0 ? ` (skipped: ${missing.join(" and ")} not on the PATH)` : "";

const addonMissing = (() => {
  try {
    nativeCodecs();
    return "";
  } catch (error) {
    if (error instanceof NativeMissingError) return ` (skipped: ${error.message})`;
    throw error;
  }
})();

const [, example, printed] = readFileSync(join(root, "packages/codecs/README.md"), "utf8").match(
  /```ts\n([\s\S]*?)```\s*```text\n([\s\S]*?)```/,
)!;

describe.skipIf(missing.length > 0)(`as published${why}, installed where nothing else is`, () => {
  const scratch = mkdtempSync(join(tmpdir(), "terse-published-"));
  const user = join(scratch, "user");
  const installed = join(user, "node_modules/@terse/native-codecs");
  // What tests and workspaces say to Node and npm is not for a user's programs.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_OPTIONS|TERSE_IMPLEMENTATION)/i.test(name)),
  );

  function run(command: string, args: readonly string[], cwd: string): string {
    const options: ExecFileSyncOptions = { cwd, env, stdio: "pipe", maxBuffer: 1 << 28 };
    try {
      return execFileSync(command, args, { ...options, encoding: "utf8" });
    } catch (error) {
      const { stdout, stderr } = error as { stdout: string; stderr: string };
      throw new Error(`${command} ${args.join(" ")}:\n${stdout}${stderr}`);
    }
  }

  /** What the README's example prints there, the implementation that printed it, and what it warns of. */
  function runExample(): { output: string; implementation: string; warnings: string[] } {
    writeFileSync(join(user, "example.ts"), `${example}\nconsole.log(sign.implementation);\n`);
    const quiet = ["--disable-warning=ExperimentalWarning"]; // of types that Node strips
    const { status, stdout, stderr } = spawnSync(process.execPath, [...quiet, "example.ts"], {
      cwd: user,
      env,
      encoding: "utf8",
    });
    if (status !== 0) throw new Error(stdout + stderr);
    const lines = stdout.split("\n");
    const warnings = stderr.split("\n").filter((line) => line.includes("TerseWarning"));
    return { implementation: lines.at(-2)!, output: `${lines.slice(0, -2).join("\n")}\n`, warnings };
  }

  beforeAll(async () => {
    // One at a time: a build empties dist, and another test may be packing it.
    await withLock(
      join(root, "node_modules/.dist.lock"),
      () => {},
      async () => {
        const turbo = ["run", "build", "--filter=@terse/codecs", "--output-logs=errors-only"];
        run(join(root, "node_modules/.bin/turbo"), turbo, root);
        for (const folder of packages) run("pnpm", ["pack", "--pack-destination", scratch], join(root, folder));
      },
    );
    // The one dependency from elsewhere: headers, which only a build reads.
    const headers = realpathSync(join(root, "native/codecs/node_modules/node-addon-api"));
    run("npm", ["pack", "--ignore-scripts", "--pack-destination", scratch, headers], scratch);

    mkdirSync(user);
    writeFileSync(join(user, "package.json"), `{ "name": "user", "private": true, "type": "module" }`);
    const tarballs = globSync("*.tgz", { cwd: scratch }).map((file) => join(scratch, file));
    expect(tarballs).toHaveLength(packages.length + 1);
    run(
      "npm",
      ["install", "--offline", "--no-audit", "--no-fund", "--cache", join(scratch, "cache"), ...tarballs],
      user,
    );
  }, 300_000);

  afterAll(() => rmSync(scratch, { recursive: true, force: true }));

  it.skipIf(addonMissing)(`brings the addon that is built here${addonMissing}`, () => {
    const { output, implementation, warnings } = runExample();
    expect(output).toBe(printed);
    expect(warnings).toEqual([]);
    expect(implementation).toBe(nativeCodecs().find(({ name }) => name === "sign")!.implementation);
  });

  it("runs in TypeScript, and says why and what to do, where the addon is another machine's, and where there is none", () => {
    const prebuilt = join(installed, "dist/prebuilt", `${process.platform}-${process.arch}`);
    mkdirSync(prebuilt, { recursive: true });
    writeFileSync(join(prebuilt, "codecs.node"), "of another machine");
    const once = (why: string) => [
      expect.stringMatching(`TerseWarning: the codecs run in TypeScript.*${why}.*npx cmake-js`),
    ];
    const here = { output: printed, implementation: "typescript" };
    expect(runExample()).toEqual({ ...here, warnings: once("cannot be opened") });
    rmSync(prebuilt, { recursive: true });
    expect(runExample()).toEqual({ ...here, warnings: once("is not built") });
  });

  it("declares types that a strict program accepts", () => {
    runExample();
    const strict = ["--noEmit", "--strict", "--target", "es2023", "--module", "nodenext", "--types", "node"];
    const types = ["--typeRoots", join(root, "node_modules/@types")];
    run(join(root, "node_modules/.bin/tsc"), [...strict, ...types, "example.ts"], user);
  });

  it("builds its addon from what was published", () => {
    // Not for speed: the compiler's optimizations would take most of the time.
    run(join(root, "node_modules/.bin/cmake-js"), ["build", "--CDCMAKE_BUILD_TYPE=None"], installed);
    const { output, implementation } = runExample();
    expect(output).toBe(printed);
    expect(implementation).not.toBe("typescript");
  }, 600_000);

  it("carries neither tests nor what belongs to this machine", () => {
    const files = globSync("node_modules/@terse/**/*", { cwd: user });
    expect(files.filter((file) => /\.(test|bench)\.ts$|\/testing\/|vectors\.json$|\.py$/.test(file))).toEqual([]);
    const texts = files.filter((file) => /\.(js|ts|map|json|txt|cmake)$/.test(file) && !file.includes("/build/"));
    expect(texts.filter((file) => readFileSync(join(user, file), "utf8").includes(root))).toEqual([]);
  });
});
