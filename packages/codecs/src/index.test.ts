import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { needsPython, python } from "./codec-contract.ts";
import { codecs } from "./codecs.ts";

const root = `${import.meta.dirname}/..`;
const read = (path: string): string => readFileSync(`${root}/${path}`, "utf8");

describe("the package", () => {
  it("knows the codecs that the C library knows, and no others", () => {
    const listed = new Set(
      [...read("../../native/codecs/find.c").matchAll(/\bX(?:, |\()(\w+), \w+, (?:1|HAS_\w+)\)/g)].map(
        ([, name]) => name!,
      ),
    );
    expect(listed.size).toBeGreaterThan(1);
    expect([...Object.keys(codecs), "vote"].map((name) => name.replaceAll("-", "_")).sort()).toEqual(
      [...listed].sort(),
    );
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
