/** The tarballs of docs/packages.md in the oldest Node, and the documents' programs as they stand there. */
import { spawn, spawnSync } from "node:child_process";
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../../test-e2e/ranks/start-ranks.ts";
import { library } from "../../tsup.config.base.ts";
import { installNode, oldestNode } from "../dependencies/node.ts";
import { withLock } from "../lock.ts";
import { run } from "../run.ts";
import { root } from "../toolchain.ts";
import { examples } from "./examples.ts";

const manifests = globSync(["package.json", "{packages,native}/*/package.json"], { cwd: root }).map((file) => ({
  folder: join(root, dirname(file)),
  ...(JSON.parse(readFileSync(join(root, file), "utf8")) as {
    name: string;
    private?: true;
    engines?: object;
    dependencies?: Record<string, string>;
  }),
}));
const published = manifests.filter((manifest) => manifest.private !== true);
const document = (path: string) => readFileSync(join(root, path), "utf8");

it("is the same in engines, in what is built, in CI and in the documents", () => {
  const wanted = oldestNode.replace(/\.0$/, "");
  for (const { name, engines } of [...published, manifests.find(({ name }) => name === "terse")!])
    expect(engines, name).toEqual({ node: `>=${wanted}` });
  expect(library.target).toBe(`node${wanted}`);
  expect(document(".github/workflows/ci.yml")).toContain(`node-version: "${oldestNode}"`);
  for (const path of ["docs/packages.md", "docs/how-to/train-your-own-model.md"])
    expect(document(path), path).toContain(`Node ${wanted}`);
});

const missing = ["pnpm", "npm", "cmake", "tar"].filter((tool) => spawnSync(tool, ["--version"]).status !== 0);
const node = await installNode({ run, say: () => {} }, oldestNode, process.arch).catch((error: Error) => error);
const why = missing.length > 0 ? `${missing.join(" and ")} not on the PATH` : node instanceof Error && node.message;

describe.skipIf(why)(
  `Node ${oldestNode}${why ? ` (skipped: ${why})` : ""}, with the packages from their tarballs`,
  () => {
    const scratch = realpathSync(mkdtempSync(join(tmpdir(), "terse-oldest-")));
    const user = join(scratch, "user");
    const modules = join(user, "node_modules");
    const env = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_OPTIONS|NODE_COMPILE_CACHE|TERSE_IMPL)/i.test(name)),
    );

    /** What a program prints in the oldest Node. It may say nothing on standard error. */
    async function inNode(words: readonly string[], variables: Record<string, string> = {}): Promise<string> {
      const child = spawn(node as string, ["--disable-warning=ExperimentalWarning", ...words], {
        cwd: user,
        env: { ...env, OMP_NUM_THREADS: "1", ...variables },
        stdio: ["ignore", "pipe", "pipe"],
      });
      const ended = new Promise((resolve) => child.on("close", resolve));
      const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
      if (code !== 0 || stderr !== "") throw new Error(`${words.join(" ")} ended with ${code}: ${stdout}${stderr}`);
      return stdout;
    }

    beforeAll(async () => {
      // One at a time: a build empties dist, and another test may be packing it.
      await withLock(
        join(root, "node_modules/.dist.lock"),
        () => {},
        async () => {
          const filters = published.map(({ name }) => `--filter=${name}`);
          await run(join(root, "node_modules/.bin/turbo"), ["run", "build", ...filters], { cwd: root, env });
          await run("pnpm", [...filters, "pack", "--pack-destination", scratch], { cwd: root, env });
        },
      );
      for (const { name } of published) {
        const folder = join(modules, name);
        mkdirSync(folder, { recursive: true });
        const [tarball] = globSync(`${name.replace("@terse/", "terse-")}-[0-9]*.tgz`, { cwd: scratch });
        await run("tar", ["-xzf", join(scratch, tarball!), "-C", folder, "--strip-components=1"]);
      }
      // What a registry would give beside them.
      for (const { folder, dependencies = {} } of published)
        for (const name of Object.keys(dependencies).filter((each) => !each.startsWith("@terse/"))) {
          mkdirSync(dirname(join(modules, name)), { recursive: true });
          const target = realpathSync(join(folder, "node_modules", name));
          if (!existsSync(join(modules, name))) symlinkSync(target, join(modules, name));
        }
      // The addon that every user builds, with libtorch: a build takes minutes.
      symlinkSync(join(root, "native/tensor/build"), join(modules, "@terse/native-tensor/build"));
      writeFileSync(join(user, "package.json"), `{ "name": "user", "private": true, "type": "module" }`);
      writeFileSync(join(user, "README.md"), document("packages/data/README.md"));
    }, 600_000);

    afterAll(() => rmSync(scratch, { recursive: true, force: true }));

    it("name each other's tarballs for pnpm, as docs/packages.md says", async () => {
      const [, line] = /^(\(echo overrides:.*) && pnpm add/m.exec(document("docs/packages.md"))!;
      await run("bash", ["-c", line!.replace("/tmp/terse", scratch)], { cwd: user });
      const lines = readFileSync(join(user, "pnpm-workspace.yaml"), "utf8").trimEnd().split("\n");
      const tarballs = globSync("*.tgz", { cwd: scratch }).map((file) => join(scratch, file));
      expect(lines[0]).toBe("overrides:");
      const named = lines.slice(1).map((each) => /^ {2}"(.*)": "file:(.*)"$/.exec(each)!);
      expect(named.map(([, name]) => name).sort()).toEqual(published.map(({ name }) => name).sort());
      expect(named.map(([, , file]) => file).sort()).toEqual(tarballs.sort());
    });

    it.each(examples(root))("runs the example of $package", async ({ code, printed }) => {
      writeFileSync(join(user, "example.ts"), code);
      expect(await inNode(["example.ts"])).toBe(printed);
    });

    it("understands every program of the documents", async () => {
      const files = globSync(["*.md", "docs/**/*.md", "{packages,native}/*/README.md"], { cwd: root });
      const programs = files.flatMap((file) =>
        [...document(file).matchAll(/```ts\n(import [\s\S]*?)```/g)].map(([, code]) => ({ file, code: code! })),
      );
      expect(programs.length).toBeGreaterThan(10);
      for (const { file, code } of programs) {
        writeFileSync(join(user, "program.mjs"), stripTypeScriptTypes(code)); // --check looks at JavaScript only
        await expect(inNode(["--check", "program.mjs"]), file).resolves.toBe("");
      }
    });

    /** Both ranks of a world over TCP run `file`; what rank 0 prints. */
    async function onTwoRanks(file: string): Promise<string> {
      const world = { WORLD_SIZE: "2", MASTER_ADDR: "127.0.0.1", MASTER_PORT: `${await freePort()}` };
      const ranks = ["0", "1"].map((RANK) => inNode([file], { ...world, RANK }));
      return (await Promise.all(ranks))[0]!;
    }

    it("joins two processes over TCP, by the addon that its tarball brings", async () => {
      const program = `
      import { joinWorld } from "@terse/collectives";
      const group = await joinWorld();
      const x = Float32Array.of(group.rank + 1, 10);
      await group.allReduce(x);
      console.log(...x);
      await group.close();`;
      writeFileSync(join(user, "world.ts"), program);
      expect(existsSync(join(modules, "@terse/native-collectives/build"))).toBe(false);
      expect(await onTwoRanks("world.ts")).toBe("3 20\n");
    });

    it("trains the page's own model on two ranks", async () => {
      const page = document("docs/how-to/train-your-own-model.md");
      writeFileSync(join(user, "train.ts"), /```ts\n([\s\S]*?)```/.exec(page)![1]!);
      const losses = [...(await onTwoRanks("train.ts")).matchAll(/loss ([\d.]+)/g)].map(([, loss]) => Number(loss));
      expect(losses).toHaveLength(3);
      expect(losses.at(-1)).toBeLessThan(0.3); // ln 2 without learning
      expect(existsSync(join(user, "classifier/model.safetensors"))).toBe(true);
    });
  },
);
