import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { codecs } from "./codecs.ts";
import * as terse from "./index.ts";
import { needsPython, python } from "./testing/python.ts";

const root = `${import.meta.dirname}/..`;
const read = (path: string): string => readFileSync(`${root}/${path}`, "utf8");

describe("the package", () => {
  it("has a folder and an export for each codec", () => {
    const names = Object.keys(codecs).sort();
    expect(readdirSync(`${root}/src/codecs`).sort()).toEqual(names);
    const exported = names.map((name) => name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase()));
    expect(Object.keys(terse)).toEqual(expect.arrayContaining(exported));
  });

  it.each(Object.keys(codecs))("has a README that names %s in its table", (name) => {
    const lines = read("README.md").split("\n");
    const table = lines.indexOf("| codec | what it sends |") + 1;
    const link = `[\`${name}\`](src/codecs/${name}/README.md)`;
    expect(
      lines.some((line) => line.startsWith("| ") && line.includes(link)),
      `packages/codecs/README.md:${table}: ${link}`,
    ).toBe(true);
  });

  it.skipIf(!python)(`has golden vectors that numpy still agrees with${needsPython}`, () => {
    expect(execFileSync(python!, ["vectors.py", "--check"], { cwd: root, encoding: "utf8" })).not.toContain("is not");
  });

  it("has a README whose example prints what it says", () => {
    const [, program, output] = read("README.md").match(/```ts\n([\s\S]*?)```\s*```text\n([\s\S]*?)```/)!;
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ["--conditions=@terse/source", "--input-type=module-typescript", "-e", program!],
      {
        cwd: root,
        env: { ...process.env, NODE_OPTIONS: "" },
        encoding: "utf8",
      },
    );
    expect(stdout, stderr).toBe(output);
  });
});
