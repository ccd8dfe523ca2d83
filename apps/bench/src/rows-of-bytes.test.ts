import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { datasets, type TextBatch } from "@terse/data";
import { expect, it } from "vitest";
import { rowsOfBytes } from "./rows-of-bytes.ts";

it("gives PyTorch's side the rows that ours takes, and the byte after each", async () => {
  const folder = mkdtempSync(join(tmpdir(), "terse-rows-"));
  const text = Array.from({ length: 300 }, (_, i) => `${1000 + i} `).join("");
  writeFileSync(join(folder, "text.txt"), text);
  const open = () =>
    datasets.text.open(
      { path: join(folder, "text.txt"), tokenizer: "bytes", validationFraction: 0.1 },
      { batchSize: 3, seed: 1, rank: 1, ranks: 2, length: 20 },
    );
  const [ours, theirs] = [await open(), await open()];
  for (let step = 0; step < 4; step++) {
    const [batch] = (await ours.next()) as TextBatch[];
    const tokens = Buffer.from([...(await batch!.tokens.toTypedArray())].map(Number)).toString();
    const rows = (await rowsOfBytes(await theirs.next())).toString();
    expect(rows).toHaveLength(3 * 21);
    for (let row = 0; row < 3; row++) {
      const got = rows.slice(row * 21, row * 21 + 21);
      expect(got.slice(0, 20)).toBe(tokens.slice(row * 20, row * 20 + 20));
      expect(text).toContain(got);
    }
  }
  const heldOutText = (await rowsOfBytes(ours.validation({ windows: 5, sharded: false }))).toString();
  expect(heldOutText).toHaveLength(5 * 21);
  expect(text.slice(1350)).toContain(heldOutText.slice(0, 21));
  rmSync(folder, { recursive: true });
});
