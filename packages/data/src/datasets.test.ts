import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { TextBatch } from "./batch.ts";
import { datasets } from "./datasets.ts";
import { augmentationOptions } from "./images/augment/augmentation.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-datasets-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const path = join(folder, "text.txt");
writeFileSync(path, "to be or not to be, that is the question. ".repeat(100));

const given = { batchSize: 2, seed: 0, rank: 0, ranks: 1 };

describe("datasets", () => {
  it("knows the vocabulary and the row length of a text before it is opened", () => {
    expect(datasets.text.facts({ validationFraction: 0.1 })).toEqual({ vocabulary: 256, length: undefined });
    expect(datasets.text.facts({ blockSize: 32 })).toEqual({ vocabulary: 256, length: 32 });
    expect(datasets.text.facts({ tokenizer: "gpt2" })).toEqual({ vocabulary: 50257, length: undefined });
  });

  it("opens a text with rows as long as the model takes, or as the recipe says", async () => {
    const rowLength = async (options: object) => {
      const data = await datasets.text.open(
        { path, validationFraction: 0.1, ...options },
        { ...given, length: 16, thread: true },
      );
      using batch = (await data.next())[0]! as TextBatch;
      expect(Object.keys(batch)).toEqual(expect.arrayContaining([...datasets.text.fields]));
      expect(data.itemsPerBatch).toBe(batch.tokens.length);
      return batch.tokens.shape[1];
    };
    expect(await rowLength({})).toBe(16);
    expect(await rowLength({ blockSize: 24 })).toBe(24);
  });

  it("says how much of a text is held out, and how that begins", async () => {
    const open = (validationFraction: number) =>
      datasets.text.open({ path, validationFraction }, { ...given, length: 16, thread: true });
    const data = await open(0.1);
    expect([data.unit, data.trainingUnits, data.validationUnits]).toEqual(["byte", 3780, 420]);
    expect(data.prompt).toHaveLength(24);
    expect((await open(0)).prompt).toBe("to be or not to be, that");
  });

  it("has one fingerprint for the same files, and another for others", async () => {
    const other = join(folder, "other.txt");
    writeFileSync(other, "to be or not to be, that is the question! ".repeat(100));
    const of = async (path: string) =>
      (await datasets.text.open({ path, validationFraction: 0.1 }, { ...given, length: 16 })).fingerprint;
    expect(await of(path)).toMatch(/^[0-9a-f]{64}$/);
    expect(await of(path)).toBe(await of(path));
    expect(await of(other)).not.toBe(await of(path));
  });
});

it("docs/data.md names every dataset with its tensors, and every augmentation", () => {
  const page = readFileSync(new URL("../../../docs/data.md", import.meta.url), "utf8");
  for (const [name, { fields }] of Object.entries(datasets)) {
    const row = page.split("\n").find((line) => line.startsWith("| ") && line.includes(`\`${name}\``))!;
    for (const field of fields) expect(row, name).toContain(`\`${field}\``);
  }
  for (const option of Object.keys(augmentationOptions.entries)) expect(page).toMatch(new RegExp(`\`${option}[:\`]`));
});
