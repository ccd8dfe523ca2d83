import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { freemem, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readSafetensors, writeSafetensors } from "@terse/checkpoint";
import { fromTypedArray, manualSeed, noGrad, scope } from "@terse/tensor";
import { afterAll, describe, expect, it } from "vitest";
import { Gpt, gptPresets } from "../index.ts";

const python = process.env["TERSE_PYTHON"] ?? "";
const folder = mkdtempSync(join(tmpdir(), "terse-gpt-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function tokens(rows: number, length: number, vocabulary: number, seed: number): BigInt64Array {
  return BigInt64Array.from({ length: rows * length }, (_, i) => BigInt((i * 2654435761 + seed * 40503) % vocabulary));
}

/** ‖a − b‖ / ‖b‖ */
function relativeError(a: Float32Array, b: Float32Array): number {
  let [difference, norm] = [0, 0];
  for (let i = 0; i < b.length; i++) {
    difference += (a[i]! - b[i]!) ** 2;
    norm += b[i]! ** 2;
  }
  return Math.sqrt(difference / norm);
}

describe("gpt", () => {
  it.skipIf(!existsSync(python)).each([
    { vocabulary: 256, context: 32, width: 64, heads: 4, layers: 2, tied: true },
    { vocabulary: 97, context: 20, width: 48, heads: 3, layers: 3, tied: false },
  ])(
    "gives PyTorch's loss and gradients for the same weights, %o (skipped if TERSE_PYTHON has no torch)",
    async (shape) => {
      manualSeed(7);
      const model = new Gpt(shape);
      // Norms differ from 1, so that the test detects a transposed or unused weight.
      noGrad(() => {
        for (const [, p] of model.namedParameters())
          if (p.shape.length === 1)
            p.add_(fromTypedArray(Float32Array.from({ length: p.length }, (_, i) => Math.sin(i))));
      });
      const [rows, length] = [3, shape.context];
      const [now, next] = [tokens(rows, length, shape.vocabulary, 1), tokens(rows, length, shape.vocabulary, 2)];

      const [source, target] = [join(folder, "in.safetensors"), join(folder, "out.safetensors")];
      await writeSafetensors(source, [
        ...model.namedParameters(),
        ["tokens", { dtype: "i64", shape: [rows, length], data: now }],
        ["next", { dtype: "i64", shape: [rows, length], data: next }],
      ]);
      execFileSync(python, [
        fileURLToPath(new URL("./gpt-parity.py", import.meta.url)),
        source,
        target,
        JSON.stringify(shape),
      ]);
      const expected = await readSafetensors(target);

      const loss = model.loss({
        tokens: fromTypedArray(now, [rows, length]),
        next: fromTypedArray(next, [rows, length]),
      });
      await loss.backward();
      expect(Math.abs(loss.item() / Number(expected.get("loss")!.data[0]) - 1)).toBeLessThan(1e-6);
      const names = model.namedParameters().map(([name]) => name);
      expect(new Set([...names, "loss"])).toEqual(new Set(expected.keys()));
      for (const [name, parameter] of model.namedParameters()) {
        const got = (await parameter.grad!.toTypedArray()) as Float32Array;
        expect(relativeError(got, expected.get(name)!.data as Float32Array), name).toBeLessThan(1e-5);
      }
    },
  );

  it("is causal: a later token does not change earlier logits", () => {
    manualSeed(0);
    const model = new Gpt(gptPresets.nano);
    const ids = tokens(1, 16, 256, 3);
    const changed = BigInt64Array.from(ids);
    changed[10] = 255n - changed[10]!;
    scope(() =>
      noGrad(() => {
        const a = model.forward(fromTypedArray(ids, [1, 16]));
        const b = model.forward(fromTypedArray(changed, [1, 16]));
        expect(a.narrow(1, 0, 10).equal(b.narrow(1, 0, 10))).toBe(true);
        expect(a.narrow(1, 10, 6).equal(b.narrow(1, 10, 6))).toBe(false);
      }),
    );
  });

  it.each([
    ["small", 4_180_736],
    ["medium", 10_867_584],
  ] as const)("has the known number of parameters in its preset %s", (preset, count) => {
    expect(new Gpt(gptPresets[preset]).parameterCount()).toBe(count);
  });

  const free = freemem();
  const enough = 2e9; // bytes: weights, and a batch's activations and logits
  it.skipIf(free < enough)(
    `is made in its large preset 124M, and guesses uniformly${free < enough ? " (skipped: under 2 GB of memory are free)" : ""}`,
    () => {
      manualSeed(0);
      const model = new Gpt(gptPresets["124M"]);
      expect(model.parameterCount()).toBe(Gpt.countParameters(gptPresets["124M"]));
      const [now, next] = [1, 2].map((seed) => fromTypedArray(tokens(1, 16, 50257, seed), [1, 16]));
      const loss = scope(() => noGrad(() => model.loss({ tokens: now!, next: next! }).item()));
      expect(Math.abs(loss - Math.log(50257))).toBeLessThan(0.5);
      model.dispose();
    },
  );

  it("has large presets whose names are their number of parameters", () => {
    // Computed from the shapes, because the models would need gigabytes.
    for (const [name, { vocabulary, context, width, layers }] of Object.entries(gptPresets)) {
      if (!name.endsWith("M")) continue;
      const hidden = Math.ceil((8 * width) / 3 / 64) * 64;
      const count = (vocabulary + context + 1) * width + layers * (4 * width ** 2 + 3 * width * hidden + 2 * width);
      expect(Math.abs(count / 1e6 / Number.parseInt(name, 10) - 1), name).toBeLessThan(0.02);
    }
  });

  it("has, with initial weights, the loss of a uniform guess: ln of the vocabulary", () => {
    manualSeed(0);
    const model = new Gpt(gptPresets.nano);
    const loss = scope(() =>
      noGrad(() =>
        model
          .loss({
            tokens: fromTypedArray(tokens(4, 64, 256, 1), [4, 64]),
            next: fromTypedArray(tokens(4, 64, 256, 2), [4, 64]),
          })
          .item(),
      ),
    );
    expect(loss).toBeGreaterThan(5.4);
    expect(loss).toBeLessThan(5.7);
  });

  it("refuses a text longer than its context, and a width that heads do not divide", () => {
    const model = new Gpt(gptPresets.nano);
    expect(() => model.forward(fromTypedArray(tokens(1, 65, 256, 0), [1, 65]))).toThrow(
      /65 tokens do not fit its context of 64/,
    );
    expect(() => new Gpt({ width: 100, heads: 3 })).toThrow(/width must be a multiple of heads/);
    expect(() => new Gpt({ widht: 64 } as never)).toThrow(/did you mean width/);
  });
});
