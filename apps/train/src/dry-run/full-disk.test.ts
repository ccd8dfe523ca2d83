import { spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { expect, it } from "vitest";

it("a dry run that cannot print fails, since that is all it does", () => {
  const full = openSync("/dev/full", "w");
  const main = new URL("../main.ts", import.meta.url).pathname;
  const argv = ["train", "--model.preset=nano", "--nproc-per-node=1", "--dry-run"];
  const { status, stderr } = spawnSync(process.execPath, ["--conditions=@terse/source", main, ...argv], {
    stdio: ["ignore", full, "pipe"],
    encoding: "utf8",
  });
  closeSync(full);
  expect(stderr).toMatch(/^error: standard output cannot be written: ENOSPC/);
  expect(status).toBe(1);
});
