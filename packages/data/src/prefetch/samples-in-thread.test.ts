import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { DataError } from "../data-error.ts";
import { datasets } from "../datasets.ts";
import { noAugmentation } from "../images/augment/augmentation.ts";
import { rowsOf } from "../testing/dataset-contract.ts";

const entry = datasets["made-images"];
const options = { ...noAugmentation, classes: 10, size: 8, policy: "autoaugment", mixup: 0.5, crop: 1 } as const;
const given = { batchSize: 4, seed: 3, rank: 1, ranks: 2 };

describe("samples in a thread", () => {
  it("give the same batches as on this thread", async () => {
    const [inThread, here] = [await entry.open(options, { ...given, thread: true }), await entry.open(options, given)];
    for (const count of [1, 1, 3, 2]) {
      const [a, b] = [await inThread.next(count), await here.next(count)];
      for (let i = 0; i < count; i++)
        expect(await rowsOf(a[i]!, entry.fields)).toEqual(await rowsOf(b[i]!, entry.fields));
    }
    const heldOut = async (data: typeof here) => {
      const rows: string[] = [];
      for await (using batch of data.validation({ windows: 10, sharded: true }))
        rows.push(...(await rowsOf(batch, entry.fields)));
      return rows;
    };
    expect(await heldOut(inThread)).toEqual(await heldOut(here));
    const { source, unit, item, itemsPerBatch, trainingUnits, validationUnits, fingerprint, prompt } = inThread;
    expect({ source, unit, item, itemsPerBatch, trainingUnits, validationUnits, fingerprint, prompt }).toEqual({
      source: here.source,
      unit: here.unit,
      item: here.item,
      itemsPerBatch: here.itemsPerBatch,
      trainingUnits: here.trainingUnits,
      validationUnits: here.validationUnits,
      fingerprint: here.fingerprint,
      prompt: here.prompt,
    });
    await inThread[Symbol.asyncDispose]();
  });

  it("of a text too", async () => {
    const folder = mkdtempSync(join(tmpdir(), "terse-thread-"));
    writeFileSync(
      join(folder, "text.txt"),
      Uint8Array.from({ length: 5000 }, (_, i) => (i * i) >> 4),
    );
    const open = (thread: boolean) =>
      datasets.text.open(
        { path: join(folder, "text.txt"), tokenizer: "bytes", validationFraction: 0.1 },
        { ...given, length: 16, accumulate: 2, thread },
      );
    const [inThread, here] = [await open(true), await open(false)];
    for (let step = 0; step < 3; step++) {
      const [a, b] = [await inThread.next(2), await here.next(2)];
      for (const [i, batch] of a.entries())
        expect(await rowsOf(batch, datasets.text.fields)).toEqual(await rowsOf(b[i]!, datasets.text.fields));
    }
    expect(inThread.waitedSeconds).toBeGreaterThan(0);
    for (const data of [inThread, here]) await data[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  it("go on from a state, and drop what was read ahead of it", async () => {
    const [data, again] = [await entry.open(options, { ...given, thread: true }), await entry.open(options, given)];
    await data.next();
    const state = data.state();
    const rows = await rowsOf((await data.next())[0]!, entry.fields);
    await data.next();
    for (const restored of [data, again]) {
      restored.restore(state);
      expect(await rowsOf((await restored.next())[0]!, entry.fields)).toEqual(rows);
    }
    await data[Symbol.asyncDispose]();
  });

  it("report what is wrong with the data when they are opened, and when they are read", async () => {
    const folder = mkdtempSync(join(tmpdir(), "terse-thread-"));
    const cifar = datasets.cifar10.open(
      { ...noAugmentation, path: join(folder, "absent") },
      { ...given, thread: true },
    );
    await expect(cifar).rejects.toThrow(DataError);
    await expect(cifar).rejects.toThrow(/Cannot read the folder .*absent: it does not exist/);
    const ids = new Uint16Array(70_000);
    ids[69_990] = 300;
    writeFileSync(join(folder, "train.bin"), ids);
    const tokens = await datasets.tokens.open(
      { path: join(folder, "train.bin"), vocabulary: 300, validationFraction: 0 },
      { batchSize: 7000, seed: 3, ranks: 1, rank: 0, length: 10, thread: true },
    );
    await expect(tokens.next()).rejects.toThrow(/train\.bin: token 69990 is 300, and the vocabulary has 300 tokens/);
    await tokens[Symbol.asyncDispose]();
    await expect(tokens.next()).rejects.toThrow(/the thread that reads data ended/);
    rmSync(folder, { recursive: true });
  });
});
