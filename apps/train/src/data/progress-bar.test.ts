import { Writable } from "node:stream";
import { expect, it } from "vitest";
import { ProgressBar } from "./progress-bar.ts";

function shown(isTTY: boolean, work: (bar: ProgressBar) => void, columns = 80, what = "reading"): string {
  let text = "";
  const output = Object.assign(
    new Writable({
      write(chunk, _, done) {
        text += chunk;
        done();
      },
    }),
    { isTTY, columns },
  );
  using bar = new ProgressBar(what, (n) => `${n} B`, output);
  work(bar);
  return text;
}

it("draws a bar on a terminal", () => {
  const text = shown(true, (bar) => bar.at(50, 100));
  expect(text).toBe(`\rreading [${"█".repeat(15)}${" ".repeat(15)}] 50% 50 B\u001b[K`);
});

it("writes a line for each tenth elsewhere", () => {
  const text = shown(false, (bar) => {
    for (let done = 0; done <= 200; done++) bar.at(done, 200);
  });
  expect(text.split("\n")).toEqual([...Array.from({ length: 11 }, (_, i) => `reading: ${10 * i} %`), ""]);
});

it("shows what is done where the whole is not known", () => {
  expect(shown(true, (bar) => bar.at(7, undefined))).toBe("\rreading 7 B\u001b[K");
  expect(shown(false, (bar) => bar.at(7, undefined))).toBe("");
});

it.each([80, 40, 20, 5])("never wraps, in %i columns", (columns) => {
  const path = "tokenizing /home/somebody/data/a-long-name-of-a-folder/and-of-a-file/train-00000-of-00001.jsonl";
  const text = shown(true, (bar) => bar.at(500_000, 1_000_000), columns, path);
  const line = text.slice(1, -"\u001b[K".length);
  expect(line.length).toBeLessThan(columns);
  if (columns >= 40) expect(line).toMatch(/^tokenizing \/home.*… 50% 500000 B$/);
});
