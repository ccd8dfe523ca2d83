/** Data that is all held out, for an evaluation: nothing of it is trained on. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DatasetName, datasets } from "./datasets.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-all-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string) => join(folder, name);
const text = "0123456789".repeat(10);
const pixel = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC",
  "base64",
);

beforeAll(() => {
  for (const name of ["split", "pictures", "pictures/cat", "pictures/dog"]) mkdirSync(at(name));
  writeFileSync(at("text.txt"), text);
  writeFileSync(at("split/train.txt"), text);
  writeFileSync(at("split/valid.txt"), text.slice(0, 33));
  writeFileSync(
    at("tokens.bin"),
    Uint16Array.from({ length: 100 }, (_, i) => i),
  );
  writeFileSync(at("labelled.tsv"), `sentence\tlabel\n${"a fox\t1\na dog\t0\n".repeat(5)}`);
  for (const name of ["cat/1", "cat/2", "dog/1"]) writeFileSync(at(`pictures/${name}.png`), pixel);
});

const cases: readonly (readonly [name: DatasetName, options: object, rows: number])[] = [
  ["text", { path: "text.txt", tokenizer: "bytes", validationFraction: 0.1 }, 12], // (100 − 1) / 8
  ["text", { path: "split", tokenizer: "bytes", validationFraction: 0.1 }, 4],
  ["tokens", { path: "tokens.bin", vocabulary: 256, validationFraction: 0.1 }, 12],
  ["masked-text", { path: "text.txt", tokenizer: "bytes", maskFraction: 0.15, validationFraction: 0.1 }, 20], // 100 / 5
  ["labelled-text", { path: "labelled.tsv", tokenizer: "bytes", sentence: "sentence", label: "label", classes: 2 }, 10],
  ["image-folder", { path: "pictures", size: 1, resize: false, validationFraction: 0.1, maxCorrupt: 0 }, 3],
];

describe("holdOutAll", () => {
  it.each(cases)("of %s %o gives %i rows, and each of them once", async (name, options, rows) => {
    const given = { ...options, path: at((options as { path: string }).path) };
    const shared = { batchSize: 2, seed: 1, rank: 0, ranks: 1, length: 8, holdOutAll: true };
    await using data = await datasets[name].open(given, { ...shared, thread: true });
    expect(data.validationSamples).toBe(rows);
    let seen = 0;
    for await (using batch of data.validation({ windows: Number.POSITIVE_INFINITY, sharded: true })) seen += batch.rows;
    expect(seen).toBe(rows);
  });
});
