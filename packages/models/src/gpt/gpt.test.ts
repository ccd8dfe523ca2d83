import { freemem } from "node:os";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { fromTypedArray, libtorch, manualSeed, noGrad, randn, scope, type Tensor } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import {
  needsPython,
  python,
  pythonTorchVersion,
  relativeError,
  runPython,
} from "../../../tensor/src/testing/python.ts";
import { Gpt, gptPresets } from "../index.ts";

function tokens(rows: number, length: number, vocabulary: number, seed: number): BigInt64Array {
  return BigInt64Array.from({ length: rows * length }, (_, i) => BigInt((i * 2654435761 + seed * 40503) % vocabulary));
}

const { version } = libtorch();
const draws = pythonTorchVersion === version; // the same random numbers for a seed
const without = draws
  ? ""
  : ` (without dropout: Python has torch ${pythonTorchVersion}, and ${version} is loaded here)`;

describe.skipIf(python === undefined)(`gpt beside gpt.py, with the same weights${needsPython || without}`, () => {
  it.each([
    { vocabulary: 256, context: 32, width: 64, heads: 4, layers: 2, tied: true, dropout: 0 },
    { vocabulary: 97, context: 20, width: 48, heads: 3, layers: 3, tied: false, dropout: 0 },
    ...(draws ? [{ vocabulary: 97, context: 20, width: 48, heads: 3, layers: 2, tied: false, dropout: 0.3 }] : []),
  ])("gives its logits, loss and gradients, %o", (shape) =>
    scope(async () => {
      manualSeed(7);
      const model = new Gpt(shape);
      noGrad(() => {
        for (const p of model.parameters()) if (p.role === "norm") p.add_(randn(p.shape)); // ones would hide an error
      });
      const [rows, length] = [3, shape.context];
      const [now, next] = [1, 2].map((seed) =>
        fromTypedArray(tokens(rows, length, shape.vocabulary, seed), [rows, length]),
      ) as [Tensor, Tensor];
      const weights = model.namedParameters().map(([name, p]) => [`weights ${name}`, p.detach()]);
      const { logits, loss, ...gradients } = await runPython(
        `
sys.path.insert(0, ${JSON.stringify(dirname(fileURLToPath(import.meta.url)))})
from gpt import Gpt
m = Gpt(**json.loads('${JSON.stringify(shape)}'))
m.load_state_dict({name[8:]: t for name, t in inputs.items() if name.startswith("weights ")}, strict=True)
torch.manual_seed(11)
loss = m.loss(inputs["tokens"], inputs["next"])
loss.backward()
outputs.update({name: p.grad for name, p in m.named_parameters()}, loss=loss, logits=m.eval()(inputs["tokens"]))`,
        { tokens: now, next, ...Object.fromEntries(weights) },
      );
      manualSeed(11);
      const mine = model.loss({ tokens: now, next });
      await mine.backward();
      expect(relativeError(mine, loss!)).toBeLessThan(1e-6);
      expect(relativeError(model.eval().forward(now), logits!)).toBeLessThan(1e-5);
      expect(
        model
          .namedParameters()
          .map(([name]) => name)
          .sort(),
      ).toEqual(Object.keys(gradients).sort());
      for (const [name, { grad }] of model.namedParameters())
        expect(relativeError(grad!, gradients[name]!), name).toBeLessThan(1e-5);
    }),
  );
});

describe("gpt", () => {
  it("has a role for every parameter", () => {
    const roles = (tied: boolean) =>
      Object.fromEntries(
        new Gpt({ ...gptPresets.nano, layers: 1, tied }).namedParameters().map(([name, { role }]) => [name, role]),
      );
    const tied = {
      "embedding.weight": "embedding",
      "position.weight": "embedding",
      "blocks.0.attention_norm.weight": "norm",
      "blocks.0.attention.qkv.weight": "matrix",
      "blocks.0.attention.out.weight": "matrix",
      "blocks.0.mlp_norm.weight": "norm",
      "blocks.0.mlp.gate.weight": "matrix",
      "blocks.0.mlp.up.weight": "matrix",
      "blocks.0.mlp.down.weight": "matrix",
      "norm.weight": "norm",
    };
    expect(roles(true)).toEqual(tied);
    expect(roles(false)).toEqual({ ...tied, "head.weight": "head" });
  });

  it("drops nothing in evaluation, and something in training", () => {
    const model = new Gpt({ ...gptPresets.nano, dropout: 0.5 });
    const ids = fromTypedArray(tokens(1, 16, 256, 1), [1, 16]);
    scope(() =>
      noGrad(() => {
        expect(model.forward(ids).equal(model.forward(ids))).toBe(false);
        model.eval();
        expect(model.forward(ids).equal(model.forward(ids))).toBe(true);
      }),
    );
  });

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
    expect(() => new Gpt({ width: 100, heads: 3 })).toThrow(/^gpt\.heads: 3 does not divide width, 100$/);
    expect(() => new Gpt({ widht: 64 } as never)).toThrow(/did you mean width/);
  });
});
