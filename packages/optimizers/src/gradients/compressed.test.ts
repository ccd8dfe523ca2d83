import { StepRefusedError } from "@terse/exchange";
import {
  Arena,
  fromTypedArray,
  Linear,
  type Module,
  ModuleList,
  memory,
  noGrad,
  scope,
  zerosLike,
} from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { collectGarbage } from "../../../tensor/src/testing/collect-garbage.ts";
import {
  type Algorithm,
  adamw,
  algorithms,
  anyCodec,
  compressed,
  dgc,
  efSignsgd,
  type GradientCompression,
  graddrop,
  lionCub,
  muon,
  Optimizer,
  type OptimizerOptions,
  powersgd,
  sgd,
  terngrad,
} from "../index.ts";
import { Chain, layers } from "../testing/chain.ts";
import { compressions } from "../testing/methods.ts";
import { onRanks } from "../testing/on-ranks.ts";
import { stored } from "../testing/stored.ts";
import { until } from "../testing/until.ts";

/** Sends the gradient as it is; what it hands out is made of that by `decoded`. */
function plain(decoded: (mean: number, name: string) => number = (mean) => mean): GradientCompression {
  return {
    name: "plain",
    splits: "at segments",
    init: () => ({}),
    async mean(g, _, exchange, { vector }) {
      await exchange.mean(g);
      const values = (await Promise.resolve(g.toTypedArray())) as Float32Array;
      noGrad(() =>
        g.copy_(
          fromTypedArray(
            values.map((value) => decoded(value, vector.segments[0]!.name)),
            g.shape,
          ),
        ),
      );
    },
    messages: ({ n, offset }) => [{ kind: "mean", n, offset }],
  };
}

describe("an algorithm whose gradients are compressed", () => {
  it("is cut as the stricter of the two allows, and has the state of both", async () => {
    expect(compressed(sgd(), terngrad()).splits).toBe("anywhere");
    expect(compressed(sgd(), dgc()).splits).toBe("at segments");
    await onRanks(1, async (group) => {
      const arena = new Arena(new Linear(8, 8));
      const algorithm = compressed(adamw(), powersgd({ minCompressionRate: 1 }));
      await using optimizer = new Optimizer(arena, group, { algorithm });
      const { tensors } = await optimizer.state();
      const names = ["m.bias", "v.bias", "m.weight", "v.weight", "gradientError.weight", "Q.weight"];
      expect([...tensors.keys()].sort()).toEqual(names.sort());
    });
  });

  it("goes on from a save that has nothing of the compression only where that begins anew", async () => {
    await onRanks(2, async (group) => {
      const arena = new Arena(new Linear(8, 8));
      await using plain = new Optimizer(arena, group, { algorithm: adamw() });
      for (const m of plain.momenta()) noGrad(() => m.fill_(3));
      const save = await stored(plain);
      const algorithm = compressed(adamw(), powersgd({ minCompressionRate: 1 }));
      await using optimizer = new Optimizer(arena, group, { algorithm });
      const before = await stored(optimizer);
      await expect(optimizer.restore(2, [save])).rejects.toThrow(/there is no gradientError\.weight of 64 elements/);
      await optimizer.restore(2, [save], { compressesAnew: true });
      const { tensors } = await stored(optimizer);
      for (const name of ["gradientError.weight", "Q.weight"])
        expect(tensors.get(name)).toEqual(before.tensors.get(name));
      expect(tensors.get("m.weight")).toEqual(new Float32Array(64).fill(3));
    });
  });

  it.each(["sgd", "adamw", "lion", "lamb", "muon"] as const)(
    "takes %s, whose every step sends a mean gradient",
    (name) => {
      const algorithm = (algorithms[name] as () => Algorithm)();
      expect(compressed(algorithm, efSignsgd()).name).toBe(`${name} with ef-signsgd`);
    },
  );

  it.each([
    "signsgd",
    "signum",
    "one-bit-adam",
    "one-bit-lamb",
    "lamb-basic-one-bit",
    "distributed-lion",
    "lion-cub",
    "dion",
    "zero-one-adam",
    "demo",
  ] as const)("refuses %s, which has a step without a mean gradient", (name) => {
    const algorithm = (algorithms[name] as () => Algorithm)();
    expect(() => compressed(algorithm, efSignsgd())).toThrow(
      `ef-signsgd: ef-signsgd compresses mean gradients, and ${name} does not send one`,
    );
  });

  it("refuses a compression of the whole model under an algorithm of single matrices", () => {
    expect(() => compressed(muon(), graddrop({ threshold: "model" }))).toThrow(
      "graddrop: graddrop works on the whole model at once here, and muon on single matrices; take graddrop.threshold: layer, or leave graddrop out",
    );
    expect(compressed(muon(), graddrop()).splits).toBe("at segments");
  });

  it("refuses a compression that keeps state under the algorithm's name for its own", () => {
    const clashing = {
      ...plain(),
      init: (θ: Parameters<GradientCompression["init"]>[0]) => ({ elements: { m: zerosLike(θ) } }),
    };
    const pair = compressed(adamw(), clashing);
    const θ = zerosLike(fromTypedArray(new Float32Array(4)));
    expect(() => pair.init(θ, {} as never)).toThrow(
      "m: an algorithm and the compression of its gradients both keep elements",
    );
  });

  /** Takes one step, which every rank refuses because of a mean gradient, and which changes nothing. */
  async function expectRefused(ranks: number, model: () => Module, options: OptimizerOptions): Promise<void> {
    const outcomes = await onRanks(ranks, async (group) => {
      const arena = new Arena(model());
      const optimizer = new Optimizer(arena, group, options);
      const before = [...((await arena.parameters.toTypedArray()) as Float32Array)];
      noGrad(() => arena.gradients.fill_(1));
      const error = await optimizer.step({ lr: 0.1 }).catch((error: unknown) => error);
      const after = [...((await arena.parameters.toTypedArray()) as Float32Array)];
      return { error: error as Error, unchanged: JSON.stringify(before) === JSON.stringify(after) };
    });
    for (const { error, unchanged } of outcomes) {
      expect(error).toBeInstanceOf(StepRefusedError);
      expect(error.message).toContain("the mean gradient is not finite");
      expect(unchanged).toBe(true);
    }
  }

  it("changes nothing on any rank where one layer's mean is not finite, and the others' are", async () => {
    const compression = plain((mean, name) => (name === "bias" ? Number.NaN : mean));
    for (const clip of [0, 1e-3])
      await expectRefused(2, () => new Linear(8, 8), { algorithm: compressed(sgd(), compression), bucket: 1, clip });
  });

  it.each([
    ["means at owners, by slices", muon],
    ["means", sgd],
    ["votes", lionCub],
  ] as const)(
    "changes nothing on any rank where %s are beside a compressed mean that is not finite",
    async (_, beside) => {
      const spoilt = plain((mean, name) => (name === "1.bias" ? Number.NaN : mean));
      for (const [clip, clipBy] of [
        [0, "global"],
        [1e-3, "global"],
        [1e-3, "bucket"],
      ] as const)
        await expectRefused(3, () => new ModuleList([new Linear(200, 200), new Linear(200, 200)]), {
          algorithm: beside(),
          groups: [{ match: ({ role }) => role !== "matrix", algorithm: compressed(sgd(), spoilt) }],
          ...{ bucket: 40_000, clip, clipBy },
        });
    },
  );

  it("is clipped by the norm of all layers together, whatever they were made of", async () => {
    await onRanks(2, async (group) => {
      const arena = new Arena(new Linear(8, 8));
      const algorithm = compressed(
        sgd(),
        plain((mean) => 3 * mean),
      );
      const optimizer = new Optimizer(arena, group, { algorithm, bucket: 1, clip: 1 });
      const before = (await arena.parameters.toTypedArray()).slice() as Float32Array;
      noGrad(() => arena.gradients.narrow(0, 0, 64).fill_(0.5));
      const { gradientNorm } = await optimizer.step({ lr: 1 });
      expect(gradientNorm).toBeCloseTo(3 * Math.sqrt(64 * 0.25), 5);
      const after = (await arena.parameters.toTypedArray()) as Float32Array;
      for (let i = 0; i < 64; i++) expect(before[i]! - after[i]!).toBeCloseTo(1.5 / gradientNorm, 5);
    });
  });

  it("frees every tensor that a step makes, under every compression", async () => {
    for (const [name, compression] of Object.entries(compressions)) {
      await collectGarbage();
      const [tensors] = await onRanks(1, async (group) => {
        const arena = new Arena(new Chain());
        await using optimizer = new Optimizer(arena, group, { algorithm: compressed(sgd(), compression()) });
        const after: number[] = [];
        for (let step = 0; step < 3; step++) {
          scope(() => noGrad(() => arena.gradients.fill_(1)));
          await optimizer.step({ lr: 0.1 });
          after.push(memory().tensors);
        }
        return after;
      });
      expect(tensors, name).toEqual([tensors![0], tensors![0], tensors![0]]);
    }
  });

  it("sends a layer's second message while backward still runs, and changes parameters last", async () => {
    await onRanks(2, async (group) => {
      const arena = new Arena(new Chain());
      const algorithm = compressed(adamw(), powersgd({ minCompressionRate: 1 }));
      await using optimizer = new Optimizer(arena, group, { algorithm, bucket: 1, overlap: "on", clip: 1e-3 });
      let second = 0; // messages: means of Mᵀ P
      const allReduce = group.allReduce.bind(group);
      group.allReduce = (...given) => {
        second++;
        return allReduce(...given);
      };
      // Backward by hand, segment by segment; the last one, a weight, is left out.
      let ready: (segment: number) => void = () => {};
      arena.onGradientReady = (callback) => {
        ready = callback;
        return () => {};
      };
      noGrad(() => arena.gradients.fill_(1));
      await optimizer.begin({ lr: 0.01 });
      for (let i = arena.segments.length - 1; i > 0; i--) ready(i);
      const before = (await arena.parameters.toTypedArray()).slice();
      await until(
        () => second >= layers - 1,
        () => `only ${second} second messages have left, and backward waits for one more gradient`,
      );
      expect((await arena.parameters.toTypedArray()).slice()).toEqual(before);
      ready(0);
      await optimizer.step({ lr: 0.01 });
      expect(second).toBe(layers);
      expect((await arena.parameters.toTypedArray()).slice()).not.toEqual(before);
    });
  });

  it("sends as many messages for many layers as for one", async () => {
    const messages = async (compression: () => GradientCompression, layers: number) => {
      const [sent] = await onRanks(2, async (group) => {
        const arena = new Arena(new Linear(64, 16 * layers));
        const parts = Array.from({ length: layers }, (_, k) => ({ name: `part ${k}`, offset: 1024 * k }));
        const segments = parts.map((part) => ({ ...part, shape: [16, 64], length: 1024, role: "matrix" as const }));
        const bias = { ...arena.segments[1]!, offset: 1024 * layers };
        Object.defineProperty(arena, "segments", { value: [...segments, bias] });
        const optimizer = new Optimizer(arena, group, { algorithm: compressed(sgd(), compression()), compareEvery: 0 });
        noGrad(() => arena.gradients.fill_(1));
        return (await optimizer.step({ lr: 0.1 })).messages;
      });
      return sent;
    };
    const all: (() => GradientCompression)[] = [
      powersgd,
      efSignsgd,
      terngrad,
      () => dgc({ ratio: 0.1 }),
      () => anyCodec({ codec: "scaled-sign" }),
      () => anyCodec({ codec: "int8", errorFeedback: false }),
    ];
    for (const compression of all) expect(await messages(compression, 6)).toBe(await messages(compression, 1));
  });
});
