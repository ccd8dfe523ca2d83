import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { makeFolder } from "./make-folder.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-folder-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("makeFolder", () => {
  it("makes a folder and those above it, also when they are there", () => {
    for (let i = 0; i < 2; i++) makeFolder(join(folder, "a", "b", "c"));
    expect(existsSync(join(folder, "a", "b", "c"))).toBe(true);
  });

  it("says what is in the way", () => {
    writeFileSync(join(folder, "file"), "");
    expect(() => makeFolder(join(folder, "file", "run"))).toThrow(
      `Cannot create the folder ${folder}/file/run: a part of the path is a file, not a folder; check the path.`,
    );
    expect(() => makeFolder(join(folder, "file"))).toThrow(/a part of the path is a file/);
    symlinkSync(join(folder, "nowhere"), join(folder, "link"));
    expect(() => makeFolder(join(folder, "link"))).toThrow(/a file, or a link that leads nowhere, has its name/);
    symlinkSync(join(folder, "round"), join(folder, "round"));
    expect(() => makeFolder(join(folder, "round", "run"))).toThrow(/: its symbolic links form a cycle; check the path/);
    expect(() => makeFolder(join(folder, "a".repeat(300)))).toThrow(/a name in the path is too long/);
  });

  it.skipIf(!existsSync("/proc/self"))("refuses a folder below /proc, which takes none", () => {
    expect(() => makeFolder("/proc/nothing/run")).toThrow(
      "Cannot create the folder /proc/nothing/run: its disk takes no folders.",
    );
  });
});
