import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { reasonOf } from "./data-error.ts";
import { makeFolder } from "./make-folder.ts";

const scratch = mkdtempSync(join(tmpdir(), "terse-make-folder-"));
afterAll(() => rmSync(scratch, { recursive: true }));

it("makes a folder and those above it, also where it is there", () => {
  const path = join(scratch, "a/b/c");
  for (let i = 0; i < 2; i++) makeFolder(path);
  expect(existsSync(path)).toBe(true);
});

it("says why it cannot", () => {
  writeFileSync(join(scratch, "file"), "");
  for (const [name, reason] of [
    ["file", "a file has the name of this folder, or of one above it"],
    ["file/x", "a file has the name of this folder, or of one above it"],
    ["x".repeat(300), "a name in the path is too long"],
  ] as const)
    expect(() => makeFolder(join(scratch, name))).toThrow(
      `Cannot make the folder ${join(scratch, name)}: ${reason}; name another one with --out.`,
    );
});

it.each(["ENOSPC", "EDQUOT", "EROFS", "ESTALE", "EIO"])("has words for %s, which needs a disk of its own", (code) => {
  const error = Object.assign(new Error(`${code}: as Node says it, mkdir 'x'`), { code, path: "x" });
  expect(reasonOf(error)).not.toContain("Node");
});

it.skipIf(!existsSync("/proc/self"))("refuses a folder below /proc, which takes none", () => {
  expect(() => makeFolder("/proc/nothing/out")).toThrow(
    "Cannot make the folder /proc/nothing/out: its disk takes no folders; name another one with --out.",
  );
});
