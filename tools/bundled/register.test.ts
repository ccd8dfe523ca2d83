import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { scratchFolder } from "../testing/scratch-folder.ts";
import { root } from "../toolchain.ts";

/** A repository of its own, with the sources of one program. */
let repository: string;
const put = (file: string, text: string) => writeFileSync(join(repository, file), text);

beforeEach(() => {
  repository = join(scratchFolder(), "repository");
  for (const folder of ["app", "node_modules", "tools"]) mkdirSync(join(repository, folder), { recursive: true });
  cpSync(import.meta.dirname, join(repository, "tools", "bundled"), { recursive: true });
  symlinkSync(join(root, "node_modules", "esbuild"), join(repository, "node_modules", "esbuild"));
  put("app/main.ts", 'import { word } from "./word.ts";\nconsole.log(word);\n');
  put("app/word.ts", 'export const word: string = "first";\n');
});

function run() {
  const flags = ["--no-warnings", `--import=${join(repository, "tools", "bundled", "register.ts")}`];
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, join(repository, "app", "main.ts"), "argument"], {
    encoding: "utf8",
  });
  return { stdout, stderr };
}

const bundles = () => readdirSync(join(repository, "build", "programs")).filter((name) => name.endsWith(".mjs"));

describe("a program of the repository", () => {
  it("runs from one file, which holds what it imports", () => {
    put("app/main.ts", 'import { word } from "./word.ts";\nconsole.log(word, process.argv.slice(1).join());\n');
    const printed = `first ${join(repository, "app", "main.ts")},argument\n`;
    expect(run()).toEqual({ stdout: printed, stderr: "" });
    expect(bundles()).toEqual(["app-main.mjs"]);
    const bundle = join(repository, "build", "programs", "app-main.mjs");
    const text = readFileSync(bundle, "utf8");
    expect(text).toContain('word = "first"');
    writeFileSync(bundle, text.replace('word = "first"', 'word = "of the bundle"'));
    expect(run().stdout).toBe(printed.replace("first", "of the bundle"));
  });

  it("follows its sources: one that is written, one that goes, and a repository that moves", () => {
    expect(run().stdout).toBe("first\n");
    put("app/word.ts", 'export const word: string = "other";\n');
    expect(run().stdout).toBe("other\n");
    put("app/main.ts", 'import { word } from "./words.ts";\nconsole.log(word);\n');
    renameSync(join(repository, "app", "word.ts"), join(repository, "app", "words.ts"));
    expect(run().stdout).toBe("other\n");
    put("app/words.ts", "export const word: string = import.meta.dirname;\n");
    expect(run().stdout).toBe(`${repository}/app\n`);
    renameSync(repository, `${repository} of another`);
    repository = `${repository} of another`;
    expect(run().stdout).toBe(`${repository}/app\n`);
  });

  it("finds what is beside a source, and its threads, which are bundled too", () => {
    put("app/text.txt", "beside");
    put(
      "app/word.ts",
      `import { readFileSync } from "node:fs";
       import { Worker } from "node:worker_threads";
       new Worker(new URL("thread.ts", import.meta.url));
       export const word: string = readFileSync(new URL("text.txt", import.meta.url), "utf8");\n`,
    );
    put("app/thread.ts", 'import { part } from "./part.ts";\nconsole.log(part);\n');
    put("app/part.ts", 'export const part: string = "of a thread";\n');
    expect(run()).toEqual({ stdout: "beside\nof a thread\n", stderr: "" });
    expect(bundles()).toEqual(["app-main.mjs", "app-thread.mjs"]);
  });

  it("names its sources in a stack, and classes by their names", () => {
    put("app/word.ts", "export const word = 1;\nexport class Failure extends Error {}\n");
    put(
      "app/main.ts",
      `import { word } from "./word.ts";
       class Failure extends Error {}
       const other = await import("./word.ts");
       console.log(word, Failure.name, other.Failure.name);
       throw new Failure();\n`,
    );
    const { stdout, stderr } = run();
    expect(stdout).toBe("1 Failure Failure\n");
    expect(stderr).toContain(`${join(repository, "app", "main.ts")}:5:`);
  });

  it("loads a package itself that it imports only when needed", () => {
    const folder = join(repository, "node_modules", "lazy");
    mkdirSync(folder);
    writeFileSync(join(folder, "package.json"), '{ "type": "module", "exports": "./index.js" }');
    writeFileSync(join(folder, "index.js"), "export const place = import.meta.dirname;\n");
    put("app/word.ts", 'export const { place: word } = await import("lazy");\n');
    expect(run()).toEqual({ stdout: `${folder}\n`, stderr: "" });
  });

  it("runs from its sources where they cannot be bundled, and Node says why", () => {
    put("app/word.ts", 'export const word: string = "first;\n');
    expect(run().stderr).toContain(join(repository, "app", "word.ts"));
    put("app/word.ts", 'export const word: string = "first";\n');
    writeFileSync(join(repository, "build"), "in the way of the folder");
    expect(run()).toEqual({ stdout: "first\n", stderr: "" });
  });
});
