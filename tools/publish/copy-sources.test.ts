import { execFileSync, spawnSync } from "node:child_process";
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withLock } from "../lock.ts";

const root = realpathSync(join(import.meta.dirname, "../.."));
const packages = ["native/loader", "native/optimizers", "native/collectives", "native/tensor"];
const missing = ["pnpm", "npm", "cmake", "c++"].filter((tool) => spawnSync(tool, ["--version"]).status !== 0);
const why = missing.length > 0 ? ` (skipped: ${missing.join(" and ")} not on the PATH)` : "";

// packages/codecs/src/published.test.ts has @terse/native-codecs, and builds it.
describe.skipIf(missing.length > 0)(`native packages as published${why}, installed alone`, () => {
  const scratch = realpathSync(mkdtempSync(join(tmpdir(), "terse-copied-")));
  const user = join(scratch, "user");
  const installed = (name: string) => join(user, "node_modules/@terse", `native-${name}`);
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_OPTIONS|TERSE_IMPLEMENTATION)/i.test(name)),
  );
  const run = (command: string, args: readonly string[], cwd: string): string => {
    const { status, stdout, stderr, error } = spawnSync(command, args, {
      cwd,
      env,
      encoding: "utf8",
      maxBuffer: 1 << 28,
    });
    if (status === 0) return stdout;
    throw new Error(`${command} ${args.join(" ")}: ${error?.message ?? ""}\n${stdout}${stderr}`);
  };

  beforeAll(async () => {
    // One at a time: a build empties dist, and another test may be packing it.
    await withLock(
      join(root, "node_modules/.dist.lock"),
      () => {},
      async () => {
        const filters = packages.map((folder) => `--filter=./${folder}`);
        run(join(root, "node_modules/.bin/turbo"), ["run", "build", ...filters, "--output-logs=errors-only"], root);
        for (const folder of packages) run("pnpm", ["pack", "--pack-destination", scratch], join(root, folder));
      },
    );
    const headers = realpathSync(join(root, "native/optimizers/node_modules/node-addon-api"));
    run("npm", ["pack", "--ignore-scripts", "--pack-destination", scratch, headers], scratch);
    mkdirSync(user);
    writeFileSync(join(user, "package.json"), `{ "name": "user", "private": true, "type": "module" }`);
    const tarballs = globSync("*.tgz", { cwd: scratch }).map((file) => join(scratch, file));
    const quietly = ["--offline", "--no-audit", "--no-fund", "--cache", join(scratch, "cache")];
    run("npm", ["install", ...quietly, ...tarballs], user);
  }, 600_000); // collectives' portable addon is compiled

  afterAll(() => rmSync(scratch, { recursive: true, force: true }));

  const cmake = (name: string, ...words: string[]) =>
    run(join(root, "node_modules/.bin/cmake-js"), words, installed(name));

  it("bring the optimizers' addon that is built here, which runs the example of their README", () => {
    const readme = readFileSync(join(root, "native/optimizers/README.md"), "utf8");
    const [, example, printed] = readme.match(/```ts\n([\s\S]*?)```\s*```text\n([\s\S]*?)```/)!;
    writeFileSync(join(user, "example.ts"), example!);
    expect(run(process.execPath, ["--no-warnings", "example.ts"], user)).toBe(printed);
  });

  it.for(["optimizers", "collectives", "tensor"])(
    "carry every file that %s is made of, and take none from here",
    { timeout: 600_000 },
    (name, context) => {
      try {
        cmake(name, "configure", "--CDCMAKE_EXPORT_COMPILE_COMMANDS=ON");
      } catch (error) {
        if (String(error).includes("libtorch was not found")) context.skip("there is no libtorch: `./terse setup`");
        throw error;
      }
      const commands: { directory: string; command: string; file: string }[] = JSON.parse(
        readFileSync(join(installed(name), "build/compile_commands.json"), "utf8"),
      );
      expect(commands.length).toBeGreaterThan(3);
      for (const { directory, command, file } of commands) {
        // The preprocessor alone, which is much faster than a build, opens all that a build opens.
        const listed = execFileSync("/bin/sh", ["-c", command.replace(/ -o \S+/, " -M")], {
          cwd: directory,
          encoding: "utf8",
          env,
          maxBuffer: 1 << 28,
        });
        const files = listed.replaceAll("\\\n", " ").trim().split(/\s+/).slice(1);
        expect(files).toContain(file);
        // cmake-js fetches Node's headers.
        const here = files.filter((path) => path.startsWith(`${root}/`) && !path.includes("/node-api-headers/"));
        expect(here).toEqual([]);
      }
    },
  );

  it("contain neither tests nor files of this machine", () => {
    const files = globSync("node_modules/@terse/**/*", { cwd: user }).filter((file) => !file.includes("/build/"));
    expect(files.filter((file) => /\.(test|bench)\.ts$|\/(fake|testing)\b/.test(file))).toEqual([]);
    const texts = files.filter((file) => /\.(js|ts|map|json|txt|cmake|cc|h|c)$/.test(file));
    expect(texts.length).toBeGreaterThan(100);
    expect(texts.filter((file) => readFileSync(join(user, file), "utf8").includes(root))).toEqual([]);
    for (const name of ["loader", "optimizers", "collectives", "tensor"])
      expect(existsSync(join(installed(name), "LICENSE")), name).toBe(true);
  });
});
