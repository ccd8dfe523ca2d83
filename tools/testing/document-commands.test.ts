/** Every command of the READMEs and of docs/ runs (documents-as-run.ts), or its table says why not. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../toolchain.ts";
import { documents, testCommandsOf, wayOf, ways } from "./documents-as-run.ts";

describe("the commands of the documents", () => {
  it("all run, or have a reason why not", () => {
    const lines = documents.flatMap(({ file, lines }) => lines.map((line) => ({ file, ...line })));
    expect(lines.filter(({ text }) => wayOf(text) === undefined)).toEqual([]);
    const taken = new Set(lines.map(({ text }) => wayOf(text)));
    expect(ways.filter((way) => !taken.has(way))).toEqual([]);
    expect(lines.filter(({ text }) => wayOf(text)?.never === undefined).length).toBeGreaterThan(45);
  });

  it.each(ways.flatMap(({ by }) => (by ? [by] : [])))("that this test does not run are run by %s", (file, ...words) => {
    const test = readFileSync(join(root, file), "utf8");
    expect(words.filter((word) => !test.includes(word))).toEqual([]);
  });

  testCommandsOf(
    documents.filter(({ lines }) => lines.some(({ text }) => wayOf(text)?.never === undefined)),
    false,
  );
});
