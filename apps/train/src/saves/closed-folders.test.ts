import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OutOfReachError } from "@terse/checkpoint";
import { loopback } from "@terse/collectives";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readMetrics } from "../results/read-metrics.ts";
import { findSave, savedSteps } from "./find-save.ts";
import { newestRun } from "./model-of-run.ts";
import { namedInstead, readSave, savesIn } from "./save-folder.ts";

const root = process.getuid?.() === 0; // root may read every folder, so the tests change to the user nobody
let folder: string;
let run: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-closed-"));
  chmodSync(folder, 0o755);
  run = join(folder, "runs", "run");
  for (const step of [10, 20]) {
    mkdirSync(join(run, `step-${step}`), { recursive: true });
    writeFileSync(join(run, `step-${step}`, "manifest.json"), "{}");
  }
  writeFileSync(join(run, "metrics.jsonl"), "");
});
afterEach(() => {
  if (root) process.seteuid!(0);
  for (const path of closed.splice(0)) chmodSync(path, 0o755);
  rmSync(folder, { recursive: true, force: true });
});

const closed: string[] = [];
function close(path: string): void {
  closed.push(path);
  chmodSync(path, 0);
  if (root) process.seteuid!(65534);
}

describe.skipIf(process.platform === "win32")("a save that is closed to this user", () => {
  it("counts as a save: no older one takes its place", async () => {
    const [group] = await loopback(1);
    close(join(run, "step-20"));
    expect(savesIn(run)).toEqual([10, 20]);
    expect(() => readSave(run)).toThrow(/^Cannot read .*step-20\/manifest\.json: permission denied/);
    expect(await savedSteps(run, group!)).toEqual([20, 10]);
    await expect(findSave(run, group!)).rejects.toThrow(OutOfReachError);
  });

  it("counts as a save, where its folder cannot be looked at", () => {
    // A folder that a user may not enter cannot be made here: `access` asks for the real user, who is root.
    rmSync(join(run, "step-20"), { recursive: true });
    symlinkSync("step-20", join(run, "step-20"));
    expect(savesIn(run)).toEqual([10, 20]);
    expect(() => readSave(run)).toThrow(/^Cannot read .*step-20\/manifest\.json: its symbolic links form a cycle/);
  });

  it("is not passed over for an older one, where the whole run is closed", async () => {
    const [group] = await loopback(1);
    close(run);
    const failure: unknown = await savedSteps(run, group!).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(OutOfReachError);
    expect((failure as Error).message).toMatch(/^Cannot read .*run: permission denied; choose another folder, or make/);
    await expect(readMetrics(run)).rejects.toThrow(/^Cannot read .*run\/metrics\.jsonl: permission denied/);
  });

  it("does not hide the runs beside it", () => {
    const other = join(folder, "runs", "other");
    mkdirSync(join(other, "step-5"), { recursive: true });
    writeFileSync(join(other, "step-5", "manifest.json"), "{}");
    const before = process.cwd();
    process.chdir(folder);
    try {
      close(run);
      expect(newestRun()).toBe(join("runs", "other"));
      expect(namedInstead("runs")).toMatch(/ has runs in it: name one of them, such as runs\/other$/);
    } finally {
      process.chdir(before);
    }
  });
});
