import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { readLines } from "../recording.ts";
import { readmePicture, readmeTable, soonestTable } from "../testing/readme-shown.ts";

const at = (path: string) => new URL(`../../../../${path}`, import.meta.url);
const lines = ["convergence", "local"].flatMap((suite) => readLines(at(`docs/results/${suite}.jsonl`)));

it("the picture of README.md is of the recorded runs (made anew by ./terse test convergence/readme -u)", async () => {
  const picture = readmePicture(lines);
  expect(picture).not.toMatch(/NaN|undefined|Infinity/);
  await expect(picture).toMatchFileSnapshot(fileURLToPath(at("docs/results/seconds.svg")));
});

it.each([
  ["README.md", readmeTable],
  ["docs/results/README.md", soonestTable],
] as const)(
  "the table of %s is of the recorded runs (made anew by ./terse test convergence/readme -u)",
  async (file, table) => {
    const [begin, end] = ["<!-- results: ./terse test convergence/readme -u -->\n\n", "\n\n<!-- end of results -->"];
    const text = readFileSync(at(file), "utf8");
    const [before, after] = [text.indexOf(begin) + begin.length, text.indexOf(end)];
    expect(after).toBeGreaterThan(before);
    const written = `${text.slice(0, before)}${table(lines)}${text.slice(after)}`;
    await expect(written).toMatchFileSnapshot(fileURLToPath(at(file)));
  },
);
