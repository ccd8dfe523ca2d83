import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { readLines } from "../recording.ts";
import { readmePicture, readmeTable } from "./readme.ts";

const at = (path: string) => new URL(`../../../../${path}`, import.meta.url);
const lines = readLines(at("docs/results/convergence.jsonl"));

it("the picture of README.md is of the recorded runs (made anew by ./terse test convergence/readme -u)", async () => {
  const picture = readmePicture(lines);
  expect(picture).not.toMatch(/NaN|undefined|Infinity/);
  await expect(picture).toMatchFileSnapshot(fileURLToPath(at("docs/results/seconds.svg")));
});

it("the table of README.md is of the recorded runs (made anew by ./terse test convergence/readme -u)", async () => {
  const [begin, end] = ["<!-- results: ./terse test convergence/readme -u -->\n\n", "\n\n<!-- end of results -->"];
  const text = readFileSync(at("README.md"), "utf8");
  const [before, after] = [text.indexOf(begin) + begin.length, text.indexOf(end)];
  expect(after).toBeGreaterThan(before);
  const written = `${text.slice(0, before)}${readmeTable(lines)}${text.slice(after)}`;
  await expect(written).toMatchFileSnapshot(fileURLToPath(at("README.md")));
});
