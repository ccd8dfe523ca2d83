/**
 * Buckets that leave while backward still runs: the same bits as when they wait for its end, whatever the gradients do.
 */
import { loopback } from "@terse/collectives";
import { dense, hierarchical, type Measured, StepRefusedError } from "@terse/exchange";
import { Arena, fromTypedArray, noGrad } from "@terse/tensor";
import { describe, expect, it, vi } from "vitest";
import { applyVote, lionVote } from "./algorithms/kernels.ts";
import { BucketSize } from "./bucket-size.ts";
import {
  type Algorithm,
  adamw,
  dion,
  lion,
  lionCub,
  Optimizer,
  type OptimizerOptions,
  oneBitAdam,
  oneBitLamb,
  type StepReport,
  type StoredState,
  zeroOneAdam,
} from "./index.ts";
import { Chain, input, layers } from "./testing/chain.ts";
import { algorithms, variants, wholes } from "./testing/methods.ts";
import { onRanks } from "./testing/on-ranks.ts";
import { savesOf, stored } from "./testing/stored.ts";

interface Run extends Partial<OptimizerOptions> {
  algorithm: Algorithm;
  ranks?: number;
  steps?: number;
  accumulate?: number;
  width?: number;
  frozen?: readonly number[];
  /** Layers that a rank's loss leaves out. */
  skips?: (rank: number) => readonly number[];
  /** Layers that a rank has frozen for a step, after their arena was made. */
  asleep?: (rank: number, step: number) => readonly number[];
  poison?: (rank: number, step: number) => number;
  /** The parameters and states of all ranks after `at` steps, from which this run goes on. */
  from?: { at: number; saves: readonly Saved[] };
}

interface Saved {
  readonly flat: Float32Array; // parameters, with pads
  readonly save: StoredState;
}

/** For algorithms that work on matrices alone. */
const othersBy = (algorithm: Algorithm) => ({
  groups: [{ match: ({ shape }: { shape: readonly number[] }) => shape.length !== 2, algorithm }],
});

/** The parameters of every rank after some steps, and what the last step cost. */
function train({
  ranks = 2,
  steps = 4,
  accumulate = 1,
  width,
  frozen = [],
  skips = () => [],
  asleep = () => [],
  poison = () => 1,
  from,
  ...options
}: Run) {
  return onRanks(ranks, async (group) => {
    const model = new Chain(width);
    for (const i of frozen)
      for (const [, parameter] of [...model.layers][i]!.namedParameters()) parameter.requiresGrad = false;
    const arena = new Arena(model);
    const groups = options.algorithm.takes === "matrices" ? othersBy(adamw()) : {};
    await using optimizer = new Optimizer(arena, group, { bucket: 64, compareEvery: 1, ...groups, ...options });
    if (from) {
      noGrad(() => arena.parameters.copy_(fromTypedArray(from.saves[group.rank]!.flat)));
      await optimizer.restore(from.at, savesOf(group.rank, ranks, from.saves[group.rank]!.save));
    }
    const reports: StepReport[] = [];
    for (let step = from?.at ?? 0; step < steps; step++) {
      arena.zeroGradients();
      for (const [i, layer] of [...model.layers].entries())
        if (!frozen.includes(i)) layer.requiresGrad_(!asleep(group.rank, step).includes(i));
      for (let part = 0; part < accumulate; part++) {
        const scale = fromTypedArray(Float32Array.of(poison(group.rank, step)), []);
        const share = model.loss(input(group.rank, step, part, width), skips(group.rank)).mul(scale);
        if (part + 1 === accumulate) await optimizer.begin({ lr: 0.01, loss: share.item() });
        await share.backward();
      }
      reports.push(await optimizer.step({ lr: 0.01 }));
    }
    const flat = ((await arena.parameters.toTypedArray()) as Float32Array).slice();
    return {
      θ: [...flat],
      flat,
      save: await stored(optimizer),
      m: (await Promise.all([...(await optimizer.state()).tensors.values()].map((m) => m.toTypedArray()))).map((m) => [
        ...m,
      ]),
      reports,
      report: reports.at(-1)!,
      bytesSent: optimizer.bytesSent(Math.max(0, optimizer.steps - 1)), // of the step that is reported
      bucketing: optimizer.bucketing,
      obstacle: optimizer.obstacle,
    };
  });
}

/** Each number of ranks, and each thing that makes buckets ready in another order, at least once. */
const cases: Record<string, Omit<Run, "algorithm">> = {
  "on 2 ranks, with accumulation, frozen parameters, and others that get no gradient anywhere": {
    accumulate: 3,
    frozen: [0, 3],
    skips: () => [1, 5],
  },
  "on 3 ranks, with a parameter that gets no gradient on one of them": {
    ranks: 3,
    skips: (rank) => (rank === 1 ? [4] : []),
  },
  "on 3 ranks, with accumulation, and with layers that are frozen now and then, others on each rank": {
    ranks: 3,
    accumulate: 2,
    frozen: [2],
    asleep: (rank, step) => (step % 2 === 1 ? [rank, 4] : []),
  },
  "on 4 ranks, with each bucket clipped": { ranks: 4, steps: 3, clip: 0.05, clipBy: "bucket" },
};

/** The cases of the variants: those that check most at once. */
const few = Object.fromEntries(Object.entries(cases).slice(2));
const tested = [
  ...Object.entries(algorithms).map(([name, algorithm]) => ({ name, algorithm, cases })),
  ...Object.entries(variants).map(([name, algorithm]) => ({ name, algorithm, cases: few })),
  {
    name: "dion, by Cholesky-QR",
    algorithm: () => dion({ rank: 3, orthonormalize: "cholesky-qr" }),
    cases: { "of matrices of 128 rows, without which it is Householder's": { width: 128, bucket: 20_000 } },
  },
];

describe.each(tested)("$name overlapped", ({ algorithm, cases }) => {
  it.each(Object.entries(cases))("gives the same bits as no overlap, %s", async (_, options) => {
    const off = await train({ ...options, algorithm: algorithm(), overlap: "off" });
    const on = await train({ ...options, algorithm: algorithm(), overlap: "on" });
    for (const { θ } of on) expect(θ).toEqual(off[0]!.θ);
    for (const { θ } of off) expect(θ).toEqual(off[0]!.θ);
    expect(on.map(({ report }) => report.gradientNorm)).toEqual(off.map(({ report }) => report.gradientNorm));
    const [start] = await train({ ...options, algorithm: algorithm(), steps: 0 });
    expect(on[0]!.θ).not.toEqual(start!.θ);
  });

  it("sends the closed form, in several messages", async () => {
    for (const ranks of [2, 3]) {
      const [first] = await train({ ranks, algorithm: algorithm(), overlap: "on", steps: 1, compareEvery: 0 });
      const { bytes, messages } = first!.report;
      expect(bytes - 32 * messages).toBe(first!.bytesSent);
      expect(messages).toBeGreaterThanOrEqual(layers);
    }
  });

  it("goes on from a save as if it had never stopped, with buckets of another size", async () => {
    const whole = await train({ algorithm: algorithm(), overlap: "on", steps: 5 });
    for (const at of [1, 3]) {
      const before = await train({ algorithm: algorithm(), overlap: "on", steps: at });
      const after = await train({
        algorithm: algorithm(),
        overlap: "on",
        steps: 5,
        bucket: 200,
        from: { at, saves: before },
      });
      expect(after.map(({ θ }) => θ)).toEqual(whole.map(({ θ }) => θ));
    }
  });
});

describe.each(Object.entries(algorithms))("%s", (_, algorithm) => {
  it.each(["on", "off"] as const)("refuses a step together, one rank's loss being NaN, overlap %s", async (overlap) => {
    const poison = (rank: number, step: number) => (rank === 1 && step === 2 ? Number.NaN : 1);
    const before = await train({ ranks: 3, algorithm: algorithm(), overlap, steps: 2 });
    const outcomes = await onRanks(3, async (group) => {
      const model = new Chain();
      const arena = new Arena(model);
      const groups = algorithm().takes === "matrices" ? othersBy(adamw()) : {};
      await using optimizer = new Optimizer(arena, group, { algorithm: algorithm(), bucket: 64, overlap, ...groups });
      for (let step = 0; ; step++) {
        arena.zeroGradients();
        const loss = model
          .loss(input(group.rank, step, 0), [])
          .mul(fromTypedArray(Float32Array.of(poison(group.rank, step)), []));
        await optimizer.begin({ lr: 0.01, loss: loss.item() });
        await loss.backward();
        const error = await optimizer.step({ lr: 0.01, loss: loss.item() }).then(
          () => undefined,
          (error: unknown) => error,
        );
        if (error) return { error, θ: [...((await arena.parameters.toTypedArray()) as Float32Array)] };
      }
    });
    for (const { error, θ } of outcomes) {
      expect(error).toBeInstanceOf(StepRefusedError);
      expect((error as Error).message).toContain("rank 1");
      expect(θ).toEqual(before[0]!.θ);
    }
  });
});

describe("dion over a mesh, overlapped", () => {
  it.each([{}, { errorFeedback: false }, { errorFeedback: "own", orientation: "longer" }] as const)(
    "gives the same bits as no overlap, with layers that are frozen now and then and clipped buckets, and after a save: %o",
    async (given) => {
      const options = (): Run => ({
        ranks: 4,
        algorithm: dion({ rank: 3, ...given }),
        parallel: { data: 2, weight: 2 },
        clip: 0.05,
        clipBy: "bucket",
        asleep: (rank, step) => (step % 2 === 1 ? [rank, 4] : []),
      });
      const off = await train({ ...options(), overlap: "off" });
      const on = await train({ ...options(), overlap: "on" });
      const before = await train({ ...options(), overlap: "on", steps: 2 });
      const after = await train({ ...options(), overlap: "on", from: { at: 2, saves: before } });
      for (const { θ } of [...off, ...on, ...after]) expect(θ).toEqual(off[0]!.θ);
      for (const { report, bytesSent } of on) expect(report.bytes - 32 * report.messages).toBe(bytesSent);
    },
  );
});

describe.each(Object.entries(wholes))("%s, on the model as one vector,", (_, { create }) => {
  it("waits for the end of backward, and goes on from a save", async () => {
    const off = await train({ algorithm: create(), overlap: "off", accumulate: 2, frozen: [2] });
    const auto = await train({ algorithm: create(), overlap: "auto", accumulate: 2, frozen: [2] });
    for (const { θ } of [...off, ...auto]) expect(θ).toEqual(off[0]!.θ);
    await expect(train({ algorithm: create(), overlap: "on" })).rejects.toThrow("works on the whole vector at once");
    const whole = await train({ algorithm: create(), steps: 5 });
    for (const at of [1, 3]) {
      const before = await train({ algorithm: create(), steps: at });
      const after = await train({ algorithm: create(), steps: 5, from: { at, saves: before } });
      expect(after.map(({ θ }) => θ)).toEqual(whole.map(({ θ }) => θ));
    }
  });
});

/** The elements of the chain's matrices. */
const matricesOf = (θ: readonly number[]): number[] =>
  new Arena(new Chain()).segments.flatMap(({ shape, offset, length }) =>
    shape.length === 2 ? θ.slice(offset, offset + length) : [],
  );

describe("buckets of a gradient that is clipped by its global norm", () => {
  const clipped = { clip: 0.05, clipBy: "global", overlap: "auto" } as const;

  it.each(Object.entries(algorithms))("give the same bits as one message, for %s", async (_, algorithm) => {
    for (const ranks of [2, 3]) {
      const { takes, takesMean } = algorithm();
      const own = takes !== "matrices" && !takesMean;
      if (takes === "matrices") {
        // AdamW has the vectors beside them, as means; after one step these have not changed a gradient of the matrices
        // yet.
        const options = { ...clipped, ranks, steps: 1 };
        const [inOne] = await train({ ...options, algorithm: algorithm(), bucket: 2 ** 20 });
        for (const { θ } of await train({ ...options, algorithm: algorithm() }))
          expect(matricesOf(θ)).toEqual(matricesOf(inOne!.θ));
      }
      const one = await train({ ...clipped, ranks, algorithm: algorithm(), bucket: 2 ** 20 });
      const cut = await train({ ...clipped, ranks, algorithm: algorithm() });
      if (own) {
        for (const { θ } of cut) expect(θ).toEqual(one[0]!.θ);
        expect(cut.map(({ report }) => report.gradientNorm)).toEqual(one.map(({ report }) => report.gradientNorm));
      } else {
        // A mean's norm is summed by bucket, and shows that in its last bits.
        const apart = cut[0]!.θ.map((v, i) => Math.abs(v - one[0]!.θ[i]!));
        expect(Math.max(...apart)).toBeLessThan(1e-6);
        expect(cut[0]!.report.gradientNorm).toBeCloseTo(one[0]!.report.gradientNorm, 6);
      }
      // It does clip. A vote does not feel it in the first step, but its momentum does afterwards.
      expect(one[0]!.report.gradientNorm).toBeGreaterThan(0.05);
      expect(cut[0]!.report.messages).toBeGreaterThan(one[0]!.report.messages);
      expect(cut[0]!.report.bytes - 32 * cut[0]!.report.messages).toBe(cut[0]!.bytesSent);
    }
  });

  it.each(Object.entries(algorithms))(
    "give the same bits as no overlap, and say why they wait, for %s",
    async (_, create) => {
      const options = { ...clipped, ranks: 3 };
      const off = await train({ ...options, algorithm: create(), overlap: "off" });
      const auto = await train({ ...options, algorithm: create() });
      for (const { θ } of [...off, ...auto]) expect(θ).toEqual(off[0]!.θ);
      const { name, takesMean } = create();
      const first = auto[0]!.obstacle; // is that of the first step
      if (takesMean) expect(first).toBeUndefined();
      else if (!/^(one-bit|lamb-basic|zero-one)/.test(name)) expect(first).toContain("clipping by the global norm");
    },
  );

  // Every number of ranks with every type of means; both optimizers with every number and with every type.
  const lionOrAdamw = [() => lion({ weightDecay: 0.1 }), () => adamw()] as const;
  it.each(
    [2, 3, 4].flatMap((ranks, i) =>
      (["f32", "bf16", "int8"] as const).map((means, k) => ({ ranks, means, create: lionOrAdamw[(i + k) % 2]! })),
    ),
  )(
    "leave while backward still runs where they are means, with the same bits, on $ranks ranks in $means",
    async ({ ranks, means, create }) => {
      const options = { ...clipped, ranks, schemes: { means: dense(means) } };
      const off = await train({ ...options, algorithm: create(), overlap: "off" });
      const on = await train({ ...options, algorithm: create(), overlap: "on" });
      const free = await train({ ...options, algorithm: create(), overlap: "off", clip: 0 });
      const byBucket = await train({ ...options, algorithm: create(), overlap: "off", clipBy: "bucket" });
      for (const { θ } of [...on, ...off]) expect(θ).toEqual(off[0]!.θ);
      expect(on.map(({ report }) => report.gradientNorm)).toEqual(off.map(({ report }) => report.gradientNorm));
      expect(on[0]!.report.messages).toBe(off[0]!.report.messages);
      expect(free[0]!.θ).not.toEqual(off[0]!.θ);
      expect(byBucket[0]!.θ).not.toEqual(off[0]!.θ);
    },
  );

  it("clip a mean by the norm of all of it, not of a bucket", async () => {
    // Steps of plain descent: θ − θ′ is the clipped mean itself.
    const descent: Algorithm = {
      ...(adamw() as Algorithm),
      async step(θ, g, _state, exchange) {
        const scale = await exchange.meanGradient(g);
        await exchange.agreed();
        noGrad(() => θ.sub_(g.mul(scale)));
      },
    };
    for (const overlap of ["on", "off"] as const) {
      const [before] = await train({ ...clipped, algorithm: descent, overlap, steps: 0 });
      const [after] = await train({ ...clipped, algorithm: descent, overlap, steps: 1 });
      const moved = Math.hypot(...after!.θ.map((v, i) => v - before!.θ[i]!));
      expect(after!.report.gradientNorm).toBeGreaterThan(0.06);
      expect(moved).toBeCloseTo(0.05, 5);
    }
  });

  it("wait for each other where means and votes share the clip", async () => {
    const [group] = loopback(1);
    const groups = [{ match: ({ name }: { name: string }) => name.includes("0"), algorithm: adamw() as Algorithm }];
    const mixed = new Optimizer(new Arena(new Chain()), group!, { ...clipped, algorithm: lionCub(), groups });
    expect(mixed.obstacle).toContain("global norm");
    const means = new Optimizer(new Arena(new Chain()), group!, { ...clipped, algorithm: lion(), groups });
    expect(means.obstacle).toBeUndefined();
    await group!.close();
  });

  it("send a bucket before the next one is encoded", async () => {
    const [happened] = await onRanks(2, async (group) => {
      const log: string[] = [];
      const inner = lionCub() as Algorithm;
      const algorithm: Algorithm = {
        ...inner,
        step: (...given) => {
          log.push("ready");
          return inner.step(...given);
        },
      };
      const up = group.allToAll.bind(group);
      group.allToAll = (...given) => {
        log.push("on the wire");
        return up(...given);
      };
      const model = new Chain();
      const arena = new Arena(model);
      await using optimizer = new Optimizer(arena, group, { algorithm, bucket: 64, ...clipped });
      await model.loss(input(group.rank, 0, 0), []).backward();
      await optimizer.step({ lr: 0.01 });
      return log;
    });
    expect(happened!.length).toBeGreaterThanOrEqual(2 * layers);
    expect(happened).toEqual(happened!.map((_, i) => (i % 2 === 0 ? "ready" : "on the wire")));
  });

  it("refuse a step together when one of them is not finite, and change nothing", async () => {
    const poison = (rank: number, step: number) => (rank === 1 && step === 2 ? Number.POSITIVE_INFINITY : 1);
    await expect(train({ ...clipped, ranks: 3, algorithm: lionCub(), poison })).rejects.toThrow(
      /rank 1 refuses the step/,
    );
  });
});

describe("a step of several messages, one after the other", () => {
  /** Lion Cub whose ranks average their momenta in the step itself, and then vote once more. */
  const thrice = (): Algorithm => ({
    ...(lionCub() as Algorithm),
    messages: ({ n }) => [
      { kind: "vote", n, outcome: "plus" },
      { kind: "mean", n },
      { kind: "vote", n, outcome: "minus" },
    ],
    async step(θ, g, { elements }, exchange, { lr, gradientScale }) {
      const m = elements!["m"]!;
      const mixed = { beta1: 0.9, beta2: 0.5, zero: "plus", gradientScale } as const;
      using v = await exchange.majority(lionVote(m, g, mixed), { tie: "plus" });
      await exchange.mean(m);
      using w = await exchange.majority(lionVote(m, g, mixed), { tie: "minus" });
      await exchange.agreed();
      applyVote(θ, v, { keep: 1, scale: -lr });
      applyVote(θ, w, { keep: 1, scale: -lr / 2 });
    },
  });

  it.each([2, 3])("ends, with the same bits by buckets and while backward runs, on %i ranks", async (ranks) => {
    const groups = [{ match: ({ name }: { name: string }) => name.endsWith("bias"), algorithm: lion() as Algorithm }];
    const run = { ranks, groups, algorithm: thrice() };
    const whole = await train({ ...run, bucket: 2 ** 20, overlap: "off" });
    for (const overlap of ["off", "on"] as const) {
      const cut = await train({ ...run, overlap });
      for (const { θ } of cut) expect(θ).toEqual(whole[0]!.θ);
      expect(cut.map(({ m }) => m)).toEqual(whole.map(({ m }) => m));
    }
    expect(whole[1]!.m).not.toEqual(whole[0]!.m); // the second vote has mixed own gradients in
    const once = await train({ ...run, algorithm: lionCub(), bucket: 2 ** 20 });
    expect(whole[0]!.reports[0]!.gradientNorm).toBe(once[0]!.reports[0]!.gradientNorm); // and not the momenta's
  });

  it("is refused by a later message, too, and changes nothing", async () => {
    const outcomes = await onRanks(2, async (group) => {
      const algorithm: Algorithm = {
        ...thrice(),
        messages: ({ n }) => [
          { kind: "mean", n },
          { kind: "mean", n },
        ],
        async step(θ, g, _state, exchange) {
          await exchange.mean(g);
          if (group.rank === 1) noGrad(() => g.fill_(Number.NaN));
          await exchange.mean(g);
          await exchange.agreed();
          noGrad(() => θ.zero_());
        },
      };
      const arena = new Arena(new Chain());
      const θ = async () => [...(await arena.parameters.toTypedArray())];
      const before = await θ();
      await using optimizer = new Optimizer(arena, group, { algorithm, bucket: 64 });
      const error = await optimizer.step({ lr: 0.1 }).catch((error: unknown) => error);
      return { error, before, after: await θ() };
    });
    for (const { error, before, after } of outcomes) {
      expect(error).toBeInstanceOf(StepRefusedError);
      expect(after).toEqual(before);
    }
  });
});

describe("overlap", () => {
  it("lets buckets leave before backward has ended, the last layers first", async () => {
    const seen: string[] = [];
    const recording = (name: string): Algorithm => {
      const inner = lionCub() as Algorithm;
      return {
        ...inner,
        step: (θ, g, state, exchange, context) => {
          seen.push(name);
          return inner.step(θ, g, state, exchange, context);
        },
      };
    };
    await onRanks(2, async (group) => {
      const model = new Chain();
      const arena = new Arena(model);
      const algorithm = group.rank === 0 ? recording("bucket") : lionCub();
      await using optimizer = new Optimizer(arena, group, { algorithm, bucket: 64, overlap: "auto" });
      const loss = model.loss(input(group.rank, 0, 0), []);
      await optimizer.begin({ lr: 0.1 });
      await loss.backward();
      if (group.rank === 0) seen.push("backward has ended");
      await optimizer.step({ lr: 0.1 });
    });
    expect(seen.indexOf("backward has ended")).toBeGreaterThanOrEqual(layers - 1);
  });

  it("names its obstacle, and the options that remove it", async () => {
    const [group] = loopback(1);
    const make = (options: OptimizerOptions) => new Optimizer(new Arena(new Chain()), group!, options);
    expect(() => make({ algorithm: lionCub(), clip: 1, overlap: "on" })).toThrow(
      "overlap is on, and clipping by the global norm needs the last gradient before the first message: set clipBy to previous or bucket, or clip to 0",
    );
    const whole: Algorithm = { ...(lion() as Algorithm), name: "whole", splits: "nowhere" };
    expect(() => make({ algorithm: whole, overlap: "on" })).toThrow(
      "whole works on the whole vector at once: set overlap to off, or take an optimizer that works on single elements or layers",
    );
    for (const algorithm of [oneBitAdam({ warmup: 3 }), oneBitAdam(), oneBitLamb(), zeroOneAdam({ freeze: 3 })]) {
      expect(() => make({ algorithm, clip: 1, overlap: "on" })).toThrow(
        "overlap is on, and after the warm-up clipping by the global norm needs the last gradient",
      );
      expect(make({ algorithm, clip: 1, overlap: "auto" }).obstacle).toBeUndefined(); // the warm-up overlaps
      expect(make({ algorithm, clip: 1, clipBy: "previous", overlap: "on" }).obstacle).toBeUndefined();
    }
    expect(make({ algorithm: lionCub(), clip: 1, overlap: "auto" }).obstacle).toContain("global norm");
    expect(make({ algorithm: lion(), clip: 1, overlap: "on" }).obstacle).toBeUndefined();
    expect(make({ algorithm: lionCub(), clip: 1, clipBy: "bucket", overlap: "on" }).obstacle).toBeUndefined();
    await group!.close();
  });

  it.each([2, 3])(
    "cuts buckets by the time of the first steps, and gives the same bits, on %i ranks",
    async (ranks) => {
      // A network so slow to begin a message that one bucket is best; and a choice of as many as there are segments.
      const measured = { link: { alphaLong: 1e6, beta: 1e-15 } } as Measured;
      const settings = { ranks, algorithm: lionCub({ weightDecay: 0.1 }), bucket: "auto", compareEvery: 0 } as const;
      const off = await train({ ...settings, steps: 7, overlap: "off" });
      const before = await train({ ...settings, steps: 4, overlap: "on", measured });
      const one = await train({ ...settings, steps: 7, overlap: "on", measured });
      vi.spyOn(BucketSize.prototype, "choose").mockResolvedValue({ elements: 1, why: "as many as there can be" });
      const many = await train({ ...settings, steps: 7, overlap: "on", measured });
      vi.restoreAllMocks();
      for (const { θ } of [...many, ...one]) expect(θ).toEqual(off[0]!.θ);
      const messages = ranks === 2 ? 1 : 2 * (ranks - 1); // there and back; two ranks both count everything
      for (const { report } of [...before, ...one, ...off]) expect(report.messages).toBe(messages);
      for (const { report, bytesSent, bucketing } of many) {
        expect(report.messages).toBe(2 * layers * messages); // each layer has a weight and a bias
        expect(report.bytes - 32 * report.messages).toBe(bytesSent);
        expect(bucketing).toBe("as many as there can be");
      }
      for (const { bucketing } of [...before, ...one]) {
        // The fourth step was the last to be looked at.
        expect(bucketing).toMatch(/^1 bucket of \d+ parameters: backward takes /);
      }
      expect(off[0]!.bucketing).toBeUndefined();
    },
  );

  it("refuses bucket auto where each bucket is clipped: times would decide about values", async () => {
    const [group] = loopback(1);
    const options = { algorithm: lionCub(), clip: 1, clipBy: "bucket", bucket: "auto" } as const;
    expect(() => new Optimizer(new Arena(new Chain()), group!, options)).toThrow(
      'bucket is "auto", and with clipBy: bucket the size of buckets would decide how they are clipped: give a number',
    );
    await group!.close();
  });

  it("says that a gradient has grown after it left, and when begin is to be called", async () => {
    const errors = await onRanks(2, async (group) => {
      const model = new Chain();
      const algorithm = lionCub();
      await using optimizer = new Optimizer(new Arena(model), group, { algorithm, bucket: 64, overlap: "on" });
      await optimizer.begin({ lr: 0.1 });
      for (let part = 0; part < 2; part++) await model.loss(input(group.rank, 0, part), []).backward();
      return optimizer.step({ lr: 0.1 }).catch((error: unknown) => String(error));
    });
    for (const error of errors)
      expect(error).toMatch(/^Error: the gradient of layers\.5\.\w+ has grown .* before the last backward of a step$/);
  });

  it("gives the same bits as no overlap where hosts are dense inside", async () => {
    for (const ranksPerHost of [2, 3]) {
      const votes = () => hierarchical({ ranksPerHost, inside: "dense" });
      const run = { ranks: 5, accumulate: 2, frozen: [1], algorithm: lionCub({ weightDecay: 0.1 }) };
      const off = await train({ ...run, overlap: "off", schemes: { votes: votes() } });
      const on = await train({ ...run, overlap: "on", schemes: { votes: votes() } });
      for (const { θ } of [...on, ...off]) expect(θ).toEqual(off[0]!.θ);
      expect(on.map(({ m }) => m)).toEqual(off.map(({ m }) => m));
    }
  });

  it("reports the same norm of the gradient, whichever bucket's mean comes first", async () => {
    const groups = [{ match: ({ name }: { name: string }) => name.endsWith("bias"), algorithm: adamw() as Algorithm }];
    const run = { ranks: 5, steps: 16, algorithm: lionCub(), groups, bucket: 1 };
    const norms = async (overlap: "on" | "off") =>
      (await train({ ...run, overlap })).map(({ reports }) => reports.map(({ gradientNorm }) => gradientNorm));
    expect(await norms("on")).toEqual(await norms("off"));
  });

  it("refuses two optimizers under way on one group: each needs its own", async () => {
    const run = (overlap: "on" | "off", apart: boolean) =>
      onRanks(2, async (group) => {
        const models = [new Chain(), new Chain()] as const;
        const arenas = models.map((model) => new Arena(model));
        const groups = [group, apart ? (await group.split(0))! : group];
        const optimizers = arenas.map(
          (arena, k) =>
            new Optimizer(arena, groups[k]!, { algorithm: lionCub(), bucket: 64, overlap, compareEvery: 1 }),
        );
        // The ranks' gradients are complete in another order, because rank 1 has none of the second model's last layer.
        const [first, second] = models.map((model, k) =>
          model.loss(input(group.rank, k, 0), group.rank === k ? [5] : []),
        );
        const begun = [];
        for (const optimizer of optimizers) begun.push(await optimizer.begin({ lr: 0.1 }).catch(String));
        await first!.add(second!).backward();
        for (const [k, optimizer] of optimizers.entries()) if (!begun[k]) await optimizer.step({ lr: 0.1 });
        const θ = await Promise.all(arenas.map(async (arena) => [...(await arena.parameters.toTypedArray())]));
        for (const optimizer of optimizers) await optimizer[Symbol.asyncDispose]();
        if (apart) await groups[1]!.close();
        return { begun, θ };
      });
    const one = await run("off", false);
    expect(await run("off", true)).toEqual(one);
    expect(await run("on", true)).toEqual(one);
    for (const { begun } of await run("on", false)) {
      expect(begun[0]).toBeUndefined();
      expect(begun[1]).toMatch(/another optimizer's step is under way on this group, .* group\.split\(0\)$/);
    }
  });

  it("refuses a second step while one is under way", async () => {
    const errors = await onRanks(2, async (group) => {
      const model = new Chain();
      await using optimizer = new Optimizer(new Arena(model), group, {
        algorithm: lionCub(),
        bucket: 64,
        overlap: "on",
      });
      await optimizer.begin({ lr: 0.1 });
      const again = await optimizer.begin({ lr: 0.1 }).catch((error: unknown) => String(error));
      await model.loss(input(group.rank, 0, 0), []).backward();
      await optimizer.step({ lr: 0.1 });
      return again;
    });
    for (const error of errors) expect(error).toContain("call step after each begin");
  });
});
