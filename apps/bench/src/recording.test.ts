import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it } from "vitest";
import { linesFrom, merged, provenance, type RecordedLine, readLines, written } from "./recording.ts";

const line = (setting: string, recorded: string, value: number, machine = "2 cores"): RecordedLine => ({
  bench: "train",
  setting,
  recorded,
  machine,
  case: `lion ${setting}`,
  metric: "step_ms",
  value,
  unit: "ms",
});
const before = [
  line("2x100mbit", "2026-11-20T10:00Z", 1),
  line("2x1gbit", "2026-11-20T10:05Z", 2),
  line("2x1gbit", "2026-11-20T10:05Z", 3),
];

it("replaces all lines of a measured setting, and keeps those of the others", () => {
  const now = [line("2x1gbit", "2026-11-21T08:00Z", 4)];
  expect(merged(before, now, ["2x100mbit", "2x1gbit"])).toEqual([before[0], now[0]]);
});

it("keeps the suite's order, and drops settings that no longer exist", () => {
  const now = [line("4x1gbit", "2026-11-21T08:00Z", 5)];
  const settings = ["4x1gbit", "2x100mbit"];
  expect(merged(before, now, settings).map(({ setting }) => setting)).toEqual(settings);
});

it("says when each setting was recorded, and on which machines", () => {
  expect(provenance([...before, line("4x1gbit", "2026-11-20T10:05Z", 5, "64 cores")])).toEqual({
    machine: "2 cores; 64 cores",
    when: "2x100mbit: 2026-11-20 10:00 UTC; 2x1gbit, 4x1gbit: 2026-11-20 10:05 UTC",
  });
});

it("reads what it has written, NaN of a run that broke off too", () => {
  const folder = mkdtempSync(join(tmpdir(), "terse-recording-"));
  const file = join(folder, "lines.jsonl");
  const lines = [line("2x1gbit", "2026-11-21T08:00Z", 4), line("2x1gbit", "2026-11-21T08:00Z", Number.NaN)];
  writeFileSync(file, written(lines));
  expect(readLines(pathToFileURL(file))).toEqual(lines);
  expect(linesFrom(file, "train")).toEqual(lines);
  expect(() => linesFrom(file, "gpu")).toThrow(`--from: ${file} has no lines of gpu`);
  for (const wrong of ["null", "[]", "text", '{"bench":"train"}']) {
    writeFileSync(file, `${written(lines)}\n${wrong}\n`);
    expect(() => linesFrom(file, "train")).toThrow(`--from: ${file}:4 is no line that ./terse bench --json`);
  }
  expect(() => linesFrom(folder, "train")).toThrow(`--from: ${folder} cannot be read: it is a folder`);
  const missing = join(folder, "b ü'.json");
  expect(() => linesFrom(missing, "train")).toThrow(`--from: ${missing} cannot be read: it does not exist`);
  rmSync(folder, { recursive: true });
});

it("leaves an earlier picture as it is where nothing is drawn", () => {
  const folder = mkdtempSync(join(tmpdir(), "terse-recording-"));
  const [lines, svg] = [join(folder, "lines.jsonl"), join(folder, "earlier.svg")];
  writeFileSync(lines, written([{ ...line("10mbit", "2026-11-21T08:00Z", 4), bench: "convergence" }]));
  writeFileSync(svg, "<svg/>");
  const main = new URL("main.ts", import.meta.url).pathname;
  const argv = [main, "convergence", "--settings=10mbit", `--from=${lines}`, `--svg=${svg}`];
  const { stderr } = spawnSync(process.execPath, ["--conditions=@terse/source", ...argv], { encoding: "utf8" });
  expect(readFileSync(svg, "utf8"), stderr).toBe("<svg/>");
  expect(stderr).toMatch(/--svg: nothing was measured that the picture of convergence shows/);
  rmSync(folder, { recursive: true });
});
