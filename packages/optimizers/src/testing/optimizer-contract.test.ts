/**
 * No member of a family is without its contract. The contracts themselves hold that a title begins with the name of
 * what is tested.
 */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { algorithms, gradientCompressions } from "../index.ts";

/** The titles of the contracts in the tests of a folder, up to what is written in at run time. */
function titles(folder: string, contract: string): string[] {
  const tests = readdirSync(folder).filter((name) => name.endsWith(".test.ts"));
  const begin = new RegExp(`\\b${contract}\\(\\s*["'\`]([^"'\`$]+)`, "g");
  return tests.flatMap((name) =>
    [...readFileSync(`${folder}/${name}`, "utf8").matchAll(begin)].map(([, title]) => title!),
  );
}

describe.each([
  ["algorithms", "optimizerContract", algorithms],
  ["gradients", "gradientContract", gradientCompressions],
] as const)("of the folder %s", (folder, contract, registry) => {
  const found = titles(`${import.meta.dirname}/../${folder}`, contract);

  it.each(Object.keys(registry))(`%s has its ${contract}`, (name) => {
    expect(found.filter((title) => new RegExp(`^${name}(?![\\w-])`).test(title))).not.toEqual([]);
  });
});
