import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { mayExist } from "./may-exist.ts";

it("is false where there is nothing, and true where that cannot be seen", () => {
  const folder = mkdtempSync(join(tmpdir(), "terse-may-exist-"));
  writeFileSync(join(folder, "file"), "");
  symlinkSync("nothing", join(folder, "leads-nowhere"));
  symlinkSync("circle", join(folder, "circle"));
  const all = ["file", "circle", "nothing", "leads-nowhere", "file/inside", "with\0zero"].map((name) =>
    mayExist(join(folder, name)),
  );
  rmSync(folder, { recursive: true });
  expect(all).toEqual([true, true, false, false, false, false]);
});
