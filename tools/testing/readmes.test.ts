import { execFileSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
const readmes = globSync("packages/*/README.md", { cwd: root }).sort();

it("finds a README in every package", () => {
  expect(readmes.map(dirname)).toEqual(globSync("packages/*/package.json", { cwd: root }).map(dirname).sort());
});

it.each(readmes)("runs the example of %s and prints what it says", (path) => {
  const readme = readFileSync(join(root, path), "utf8");
  const example = /```ts\n([\s\S]*?)```/.exec(readme)?.[1];
  const printed = /```text\n([\s\S]*?)```/.exec(readme)?.[1];
  expect(example, "a block of TypeScript").toBeDefined();
  expect(printed, "a block of what it prints").toBeDefined();
  // Inside the package's folder, so that imports resolve as a user's do.
  const folder = mkdtempSync(join(root, dirname(path), "example-"));
  try {
    const file = join(folder, "example.ts");
    writeFileSync(file, example!);
    const output = execFileSync(process.execPath, ["--conditions=@terse/source", "--no-warnings", file], {
      cwd: join(root, dirname(path)),
      encoding: "utf8",
    });
    expect(output).toBe(printed);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
