import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "..");

it("has a README whose C example compiles against the library and prints what it says", () => {
  const [, program, output] = readFileSync(join(root, "README.md"), "utf8").match(
    /```c\n([\s\S]*?)```\s*```text\n([\s\S]*?)```/,
  )!;
  const folder = mkdtempSync(join(tmpdir(), "terse-"));
  try {
    writeFileSync(join(folder, "example.c"), program!);
    const include = join(root, "../include");
    const library = join(root, "build/libterse_codecs.a");
    execFileSync(
      process.env["CC"] ?? "cc",
      ["-std=c11", "-Wall", "-Werror", `-I${include}`, "example.c", library, "-o", "example"],
      { cwd: folder },
    );
    expect(execFileSync(join(folder, "example"), { encoding: "utf8", env: { TERSE_IMPLEMENTATION: "" } })).toBe(output);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
