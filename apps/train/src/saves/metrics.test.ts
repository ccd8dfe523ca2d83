import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Metrics } from "./metrics.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-metrics-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const path = () => join(folder, "metrics.jsonl");
const steps = () =>
  readFileSync(path(), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { step: number }).step);

describe("metrics.jsonl", () => {
  it("loses the steps that are taken again, and a last line that was half written", async () => {
    const metrics = new Metrics(folder);
    await metrics.cutAt(3); // there is no file yet
    for (const step of [0, 1, 2, 3]) metrics.log({ step, loss: 1 });
    writeFileSync(path(), '{"step":4,"lo', { flag: "a" });
    expect(await metrics.cutAt(3)).toBe(`${path()}: the last line is cut short, and is left out`);
    expect(steps()).toEqual([0, 1, 2]);
    expect(await metrics.cutAt(3)).toBeUndefined();
    metrics.log({ step: 3 });
    expect(steps()).toEqual([0, 1, 2, 3]);
  });

  it("that is no file is refused, and nobody waits for it", async () => {
    execFileSync("mkfifo", [path()]);
    await expect(new Metrics(folder).cutAt(3)).rejects.toThrow(`Cannot read ${path()}: it is a pipe, not a file`);
    rmSync(path());
    mkdirSync(path());
    await expect(new Metrics(folder).cutAt(3)).rejects.toThrow(`Cannot read ${path()}: it is a folder; name a file.`);
  });

  it("keeps what a run has measured of its network when it goes on from its end, but not from an earlier save", async () => {
    const metrics = new Metrics(folder);
    for (const line of [{ step: 49 }, { step: 50, "validation/loss": 2 }, { step: 50, network: {} }]) metrics.log(line);
    await metrics.cutAt(50);
    expect(readFileSync(path(), "utf8")).toBe('{"step":49}\n{"step":50,"network":{}}\n');
    await metrics.cutAt(40);
    expect(readFileSync(path(), "utf8")).toBe("");
  });

  it("keeps lines that the disk does not take now, and writes them later", () => {
    const run = join(folder, "run"); // a disk that is away
    const metrics = new Metrics(run);
    metrics.log({ step: 0 });
    metrics.log({ step: 1 });
    mkdirSync(run);
    metrics.log({ step: 2 });
    expect(readFileSync(join(run, "metrics.jsonl"), "utf8")).toBe('{"step":0}\n{"step":1}\n{"step":2}\n');
  });
});
