import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

it("runs the example of the README and prints what it says", () => {
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const [, example] = /```ts\n([\s\S]*?)```/.exec(readme)!;
  const [, printed] = /```text\n([\s\S]*?)```/.exec(readme)!;
  const folder = mkdtempSync(join(import.meta.dirname, "example-"));
  try {
    const file = join(folder, "example.ts");
    writeFileSync(file, example!);
    const output = execFileSync(process.execPath, ["--conditions=@terse/source", "--no-warnings", file], {
      cwd: join(import.meta.dirname, ".."),
      encoding: "utf8",
    });
    expect(output).toBe(printed);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
