import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
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
  for (const path of [join(scratch, "file"), join(scratch, "file/x")])
    expect(() => makeFolder(path)).toThrow(/^Cannot make the folder .*; name another one with --out\.$/);
});

it.skipIf(!existsSync("/proc/self"))("refuses a folder below /proc, which takes none", () => {
  expect(() => makeFolder("/proc/nothing/out")).toThrow(
    "Cannot make the folder /proc/nothing/out: its disk takes no folders; name another one with --out.",
  );
});
