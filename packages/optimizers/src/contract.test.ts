/**
 * What the contract of algorithms promises beyond one vote or mean a step: several messages, phases, other means, every
 * kind of state.
 */
import type { Group } from "@terse/collectives";
import { StepRefusedError } from "@terse/exchange";
import { Arena, fromTypedArray, Linear, noGrad, ones, type Tensor } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import {
  type Algorithm,
  adamw,
  compressed,
  efSignsgd,
  lionCub,
  MessagesError,
  muon,
  Optimizer,
  type OptimizerOptions,
  sgd,
  terngrad,
} from "./index.ts";
import { Chain, input } from "./testing/chain.ts";
import { onRanks } from "./testing/on-ranks.ts";
import { phased } from "./testing/phased.ts";
import { powerIteration } from "./testing/power-iteration.ts";
import { savesOf, stored } from "./testing/stored.ts";
import { until } from "./testing/until.ts";

function open(group: Group, options: OptimizerOptions) {
  const model = new Chain();
  const arena = new Arena(model);
  return { model, arena, group, optimizer: new Optimizer(arena, group, { compareEvery: 1, bucket: 256, ...options }) };
}

type Training = ReturnType<typeof open>;

async function advance({ model, arena, group, optimizer }: Training, until: number, poison = 1) {
  const reports = [];
  while (optimizer.steps < until) {
    arena.zeroGradients();
    const scale = fromTypedArray(Float32Array.of(poison), []);
    const loss = model.loss(input(group.rank, optimizer.steps)).mul(scale);
    const closed = optimizer.bytesSent();
    await optimizer.begin({ lr: 0.01, loss: loss.item() });
    await loss.backward();
    const { bytes, messages, gradientNorm } = await optimizer.step({ lr: 0.01, loss: loss.item() });
    reports.push({ bytes: bytes - 32 * messages, messages, gradientNorm, closed });
  }
  return reports;
}

const floats = async (tensor: Tensor) => [...((await tensor.toTypedArray()) as Float32Array)];

const train = (ranks: number, steps: number, options: () => OptimizerOptions) =>
  onRanks(ranks, async (group) => {
    const training = open(group, options());
    const reports = await advance(training, steps);
    const θ = await floats(training.arena.parameters);
    const save = await stored(training.optimizer);
    await training.optimizer[Symbol.asyncDispose]();
    return { reports, θ, save };
  });

/** Votes for vectors, two messages for matrices. */
const mixed = (): OptimizerOptions => ({
  algorithm: powerIteration(),
  groups: [{ match: ({ shape }) => shape.length < 2, algorithm: lionCub() }],
});

describe("an algorithm of two messages that works on whole layers", () => {
  it.each([
    ["alone", () => ({ algorithm: powerIteration() })],
    ["beside votes", mixed],
  ] as const)("gives the same bits on all ranks, by buckets and while backward runs, %s", async (_, options) => {
    for (const ranks of [2, 3]) {
      const off = await train(ranks, 4, () => ({ ...options(), overlap: "off" }));
      const on = await train(ranks, 4, () => ({ ...options(), overlap: "on" }));
      for (const { θ } of [...off, ...on]) expect(θ).toEqual(off[0]!.θ);
      for (const { reports } of [...off, ...on]) for (const { bytes, closed } of reports) expect(bytes).toBe(closed);
      expect(on.map(({ reports }) => reports)).toEqual(off.map(({ reports }) => reports));
    }
    const apart = await train(2, 4, () => ({ ...options(), bucket: 1 }));
    const whole = await train(2, 4, () => ({ ...options(), bucket: 1e9 }));
    expect(apart[0]!.θ).toEqual(whole[0]!.θ); // of two ranks even means are added alike
  });

  it("sends two messages for all matrices of a bucket, not two for each", async () => {
    const whole = await train(2, 1, () => ({ algorithm: powerIteration(), bucket: 1e9 }));
    const one = await train(2, 1, () => ({ algorithm: adamw(), bucket: 1e9 }));
    for (const [r, { reports }] of whole.entries()) expect(reports[0]!.messages).toBe(2 * one[r]!.reports[0]!.messages);
  });

  it("sends a layer's second message while backward still runs", async () => {
    await onRanks(2, async (group) => {
      const training = open(group, { algorithm: powerIteration(), bucket: 1, overlap: "on" });
      const { arena, optimizer } = training;
      let sent = 0;
      const allReduce = group.allReduce.bind(group);
      group.allReduce = (...given) => {
        sent++;
        return allReduce(...given);
      };
      arena.zeroGradients();
      // Backward by hand, segment by segment, the last one left out.
      let ready: (segment: number) => void = () => {};
      arena.onGradientReady = (callback) => {
        ready = callback;
        return () => {};
      };
      await optimizer.begin({ lr: 0.01 });
      const parameters = arena.segments.length;
      for (let i = parameters - 1; i > 0; i--) ready(i);
      const before = await floats(arena.parameters);
      await until(
        () => sent >= 2 * (parameters - 1) - 1,
        () => `only ${sent} messages have left, and backward waits for one more gradient`,
      );
      expect(await floats(arena.parameters)).toEqual(before); // parameters change last
      ready(0);
      await optimizer.step({ lr: 0.01 });
      expect(sent).toBe(2 * parameters);
      await optimizer[Symbol.asyncDispose]();
    });
  });

  it("is refused by one rank's gradient on every rank, whatever else is under way, and the next step goes on", async () => {
    const outcomes = await onRanks(3, async (group) => {
      const training = open(group, { ...mixed(), overlap: "on", bucket: 100 });
      await advance(training, 1);
      const before = await floats(training.arena.parameters);
      const error = await advance(training, 2, group.rank === 1 ? Number.NaN : 1).catch((error: unknown) => error);
      return { error, unchanged: JSON.stringify(await floats(training.arena.parameters)) === JSON.stringify(before) };
    });
    for (const { error, unchanged } of outcomes) {
      expect(error).toBeInstanceOf(StepRefusedError);
      expect((error as Error).message).toContain("rank 1");
      expect(unchanged).toBe(true);
    }
  });
});

describe("an algorithm whose messages change with the step", () => {
  it("sends what its messages say for each step, with the same bits on all ranks", async () => {
    for (const ranks of [1, 2, 3]) {
      const all = await train(ranks, 8, () => ({ algorithm: phased(), clip: 0.05 }));
      for (const { θ, reports } of all) {
        expect(θ).toEqual(all[0]!.θ);
        for (const { bytes, closed } of reports) expect(bytes).toBe(closed);
      }
      if (ranks === 1) continue;
      const [mean, , , compressed, local] = all[0]!.reports;
      expect(compressed!.bytes).toBeLessThan(mean!.bytes / 5);
      expect(local!.bytes).toBe(0);
      expect(local!.messages).toBeGreaterThan(0); // headers: a step without a message still hears a refusal
    }
  });

  it("is refused by all ranks in a step without messages, too", async () => {
    const outcomes = await onRanks(2, async (group) => {
      const training = open(group, { algorithm: phased() });
      await advance(training, 4);
      return advance(training, 5, group.rank === 1 ? Number.POSITIVE_INFINITY : 1).catch((error: unknown) => error);
    });
    for (const error of outcomes) expect(error).toBeInstanceOf(StepRefusedError);
  });

  it("resumes bit for bit from a save at any step, with owned errors and numbers", async () => {
    const straight = await train(3, 7, () => ({ algorithm: phased(), clip: 0.05, clipBy: "previous" }));
    for (const at of [0, 1, 3, 4, 5])
      for (const bucket of [256, 1e9]) {
        const resumed = await onRanks(3, async (group) => {
          const options = () => ({ algorithm: phased(), clip: 0.05, clipBy: "previous", bucket }) as const;
          const first = open(group, options());
          await advance(first, at);
          const second = open(group, options());
          noGrad(() => second.arena.parameters.copy_(first.arena.parameters));
          await second.optimizer.restore(at, savesOf(group.rank, 3, await stored(first.optimizer)));
          await first.optimizer[Symbol.asyncDispose]();
          await advance(second, 7);
          return { θ: await floats(second.arena.parameters), save: await stored(second.optimizer) };
        });
        if (bucket === 256)
          expect(
            resumed.map(({ θ }) => θ),
            `at ${at}`,
          ).toEqual(straight.map(({ θ }) => θ));
        for (const { θ } of resumed) expect(θ).toEqual(resumed[0]!.θ);
        expect(resumed[0]!.save.scalars["seen.layers.0.weight"]).toEqual([5, 6]);
      }
  });

  it("carries its state to another number of ranks: means of elements, all server errors, the same numbers", async () => {
    const before = await train(3, 6, () => ({ algorithm: phased() }));
    const sumOwned = (saves: readonly { save: Awaited<ReturnType<typeof stored>> }[]) => {
      const owned = new Map<string, number[]>();
      for (const { save } of saves)
        for (const [name, values] of save.tensors) {
          const [, of, begin] = /^(serverError\..*)\[(\d+):\d+\]$/.exec(name) ?? [];
          if (of === undefined) continue;
          const all = owned.get(of) ?? [];
          owned.set(of, all);
          for (const [i, value] of [...(values as Float32Array)].entries()) all[Number(begin) + i] = value;
        }
      return owned;
    };
    const owned = sumOwned(before);
    for (const ranks of [1, 2, 4]) {
      const after = await onRanks(ranks, async (group) => {
        const training = open(group, { algorithm: phased(), bucket: 128 });
        await training.optimizer.restore(
          6,
          before.map(({ save }) => save),
        );
        return { save: await stored(training.optimizer) };
      });
      expect(sumOwned(after)).toEqual(ranks === 1 ? new Map() : owned);
      for (const { save } of after) {
        const name = "workerError.layers.2.weight";
        const mean = (before[0]!.save.tensors.get(name) as Float32Array).map((_, i) => {
          const sum = before.reduce((total, one) => total + (one.save.tensors.get(name) as Float32Array)[i]!, 0);
          return sum / 3;
        });
        const all = mean.map((value, i) => value + owned.get("serverError.layers.2.weight")![i]!);
        expect(save.tensors.get(name)).toEqual(ranks === 1 ? all : mean);
        expect(save.tensors.get("m.layers.2.weight")).toEqual(before[0]!.save.tensors.get("m.layers.2.weight"));
        expect(save.scalars["c.layers.5.weight"] ?? save.scalars["c.layers.5.bias"]).toBe(3);
      }
    }
  });

  it("says which part of a save is missing, and changes nothing", async () => {
    await onRanks(2, async (group) => {
      const training = open(group, { algorithm: phased() });
      await advance(training, 4);
      const save = await stored(training.optimizer);
      const tensors = new Map(save.tensors);
      tensors.delete("m.layers.3.weight");
      const restore = (scalars: object) =>
        training.optimizer.restore(9, savesOf(group.rank, 2, { tensors, scalars } as never));
      await expect(restore(save.scalars)).rejects.toThrow("there is no m.layers.3.weight of 144 elements");
      tensors.set("m.layers.3.weight", save.tensors.get("m.layers.3.weight")!);
      await expect(restore({})).rejects.toThrow(/there is no number c\.layers/);
      expect(training.optimizer.steps).toBe(4);
    });
  });
});

describe("an algorithm that averages something else", () => {
  /** Averages a vector of its own, of a large norm, before the gradient of its neighbour has come. */
  const averagesOthers = (): Algorithm => ({
    name: "others",
    splits: "anywhere",
    init: () => ({}),
    async step(_, g, __, exchange) {
      using large = ones([1000]).mul(1e6);
      await exchange.mean(large);
      await exchange.agreed();
      noGrad(() => g.zero_());
    },
    messages: () => [{ kind: "mean", n: 1000 }],
  });

  it("does not disturb how a mean gradient beside it is clipped", async () => {
    for (const [overlap, clipBy] of [
      ["off", "global"],
      ["on", "bucket"],
      ["on", "previous"],
    ] as const) {
      const groups = [
        { match: ({ name }: { name: string }) => name.startsWith("layers.0."), algorithm: averagesOthers() },
      ];
      const beside = await train(2, 3, () => ({
        algorithm: adamw(),
        groups,
        clip: 1e-3,
        clipBy,
        overlap,
        bucket: 1e9,
      }));
      const idle: Algorithm = {
        ...averagesOthers(),
        step: (_, __, ___, exchange) => exchange.agreed(),
        messages: () => [],
      };
      const alone = await train(2, 3, () => ({
        algorithm: adamw(),
        groups: [{ ...groups[0]!, algorithm: idle }],
        ...{ clip: 1e-3, clipBy, overlap, bucket: 1e9 },
      }));
      expect(beside[0]!.θ).toEqual(alone[0]!.θ);
    }
  });
});

describe("a message that follows from the mean gradient", () => {
  /** SGD that sends its clipped mean gradient once more. `spoils`: what one rank sends then is NaN. */
  const again = (spoils: (rank: number, step: number) => boolean = () => false): Algorithm => ({
    name: "again",
    splits: "at segments",
    init: () => ({}),
    async step(θ, g, _, exchange, { lr, step, vector }) {
      const scale = await exchange.meanGradient(g);
      using x = noGrad(() => g.mul(spoils(vector.rank, step) ? Number.NaN : scale));
      await exchange.mean(x);
      await exchange.agreed();
      noGrad(() => θ.sub_(x, { alpha: lr }));
    },
    messages: ({ n }) => [{ kind: "meanGradient" }, { kind: "mean", n }],
  });
  const clipped = { clip: 0.05, bucket: 1 } as const; // many buckets, whose common norm clips all

  it("waits for the means of all buckets, and none of them for it", async () => {
    for (const ranks of [2, 3]) {
      const plain = await train(ranks, 3, () => ({ ...clipped, algorithm: sgd() }));
      for (const overlap of ["off", "on"] as const) {
        const all = await train(ranks, 3, () => ({ ...clipped, overlap, algorithm: again() }));
        for (const { θ, reports } of all) {
          expect(θ).toEqual(all[0]!.θ);
          for (const [i, value] of θ.entries()) expect(value).toBeCloseTo(plain[0]!.θ[i]!, 6);
          for (const { bytes, closed } of reports) expect(bytes).toBe(closed);
        }
      }
    }
  });

  it.each([
    ["all compressed", () => compressed(muon({ eps: 1 }), efSignsgd())],
    ["at their owners", () => muon({ eps: 1 })],
  ] as const)("waits for the means of matrices, %s, in its bucket and the others", async (_, ofMatrices) => {
    const options = (algorithm: Algorithm) => ({
      ...clipped,
      bucket: 300, // several layers
      algorithm,
      groups: [
        { match: ({ name }: { name: string }) => name === "layers.1.bias", algorithm: compressed(sgd(), terngrad()) },
        { match: ({ role }: { role: string }) => role === "matrix", algorithm: ofMatrices() },
      ],
    });
    for (const ranks of [2, 3]) {
      const plain = await train(ranks, 3, () => options(sgd()));
      for (const overlap of ["off", "on"] as const) {
        const all = await train(ranks, 3, () => ({ ...options(again()), overlap }));
        for (const { θ } of all) {
          expect(θ).toEqual(all[0]!.θ);
          for (const [i, value] of θ.entries()) expect(value).toBeCloseTo(plain[0]!.θ[i]!, 6);
        }
      }
    }
  });

  it.each([
    ["means", adamw],
    ["compressed means", () => compressed(adamw(), terngrad())],
    ["votes", lionCub],
  ] as const)("leaves parameters beside it that follow %s as they are when it is refused", async (_, beside) => {
    const outcomes = await onRanks(2, async (group) => {
      const training = open(group, {
        ...clipped,
        clipBy: "previous",
        algorithm: again((rank, step) => rank === 1 && step === 1),
        groups: [{ match: ({ name }) => name.startsWith("layers.0."), algorithm: beside() }],
      });
      await advance(training, 1);
      const before = await floats(training.arena.parameters);
      const error = await advance(training, 2).catch((error: unknown) => error);
      return { error, unchanged: JSON.stringify(await floats(training.arena.parameters)) === JSON.stringify(before) };
    });
    for (const { error, unchanged } of outcomes) {
      expect(error).toBeInstanceOf(StepRefusedError);
      expect(unchanged).toBe(true);
    }
  });
});

describe("messages that are not those of the step", () => {
  it.each([
    ["one more", 1, "its messages say 1 for this step, and the step asks for one more"],
    ["one less", 3, "its messages say 3 for this step, and the step asked for 2"],
  ])("are an error on every rank and no deadlock, %s", async (_, said, message) => {
    const outcomes = await onRanks(2, async (group) => {
      const algorithm: Algorithm = {
        name: "wrong",
        splits: "anywhere",
        init: () => ({}),
        async step(_, g, __, exchange) {
          await exchange.mean(g);
          await exchange.mean(g);
          await exchange.agreed();
        },
        messages: ({ n }) => Array.from({ length: said }, () => ({ kind: "mean", n })),
      };
      const training = open(group, { algorithm, bucket: 1 });
      return advance(training, 1).catch((error: unknown) => error);
    });
    // The first rank that sees it ends the group, and tells the other one, which may not have got so far.
    for (const error of outcomes) expect(String(error)).toContain(message);
    expect(outcomes.some((error) => error instanceof MessagesError)).toBe(true);
  });

  it("end the group on all ranks when a step fails on one of them", async () => {
    const outcomes = await onRanks(2, async (group) => {
      const algorithm: Algorithm = {
        ...(adamw() as Algorithm),
        async step(θ, g, state, exchange, context) {
          if (group.rank === 1) throw new Error("no memory left");
          await adamw().step(θ, g, state as never, exchange, context);
        },
      };
      return advance(open(group, { algorithm }), 1).catch((error: unknown) => String(error));
    });
    expect(outcomes[1]).toContain("no memory left");
    expect(outcomes[0]).toContain("step 0 failed: Error: no memory left");
  });
});

describe("clipping by the shares of the step before", () => {
  const clipped = { clip: 0.05, clipBy: "previous" } as const;

  it("lets votes leave while backward runs, with the bits of no overlap, on any number of ranks", async () => {
    for (const ranks of [1, 2, 3]) {
      const options = () => ({ algorithm: lionCub({ beta2: 0.9 }), ...clipped, bucket: 64 });
      const on = await train(ranks, 5, () => ({ ...options(), overlap: "on" }));
      const off = await train(ranks, 5, options);
      const free = await train(ranks, 5, () => ({ algorithm: lionCub({ beta2: 0.9 }), bucket: 64 }));
      for (const { θ, reports } of on) {
        expect(θ).toEqual(off[0]!.θ);
        for (const { bytes, closed } of reports) expect(bytes).toBe(closed);
      }
      expect(on[0]!.θ).not.toEqual(free[0]!.θ);
      expect(on[0]!.save.scalars["previousSquares"]).toEqual(on.at(-1)!.save.scalars["previousSquares"]);
    }
  });

  it("extends the norm of the buckets that have left by the shares of the step before", async () => {
    // Squares of the gradient norms by step, rank and bucket, in the order in which the buckets leave.
    const squares = [
      [
        [9, 16],
        [1, 4],
      ],
      [
        [36, 1],
        [4, 0],
      ],
    ] as const;
    const seen = await onRanks(2, async (group) => {
      const scales: number[] = [];
      const algorithm: Algorithm = {
        name: "seen",
        splits: "anywhere",
        init: () => ({}),
        async step(_, g, __, exchange, { gradientScale }) {
          scales.push(gradientScale);
          await exchange.mean(g);
          await exchange.agreed();
        },
        messages: ({ n }) => [{ kind: "mean", n }],
      };
      const arena = new Arena(new Linear(8, 8));
      const optimizer = new Optimizer(arena, group, { algorithm, clip: 1, clipBy: "previous", bucket: 1 });
      for (const [step, ofRanks] of squares.entries()) {
        for (const [b, square] of ofRanks[group.rank]!.entries()) {
          const { offset } = arena.segments[1 - b]!;
          noGrad(() => arena.gradients.narrow(0, offset, 1).fill_(Math.sqrt(square)));
        }
        await optimizer.step({ lr: 0.1 });
        expect(scales).toHaveLength(2 * (step + 1));
      }
      const { scalars } = await optimizer.state();
      return { scales, scalars };
    });
    const shares = [(9 + 1) / 2, (16 + 4) / 2] as const; // p of step 0
    const whole = shares[0] + shares[1];
    for (const [r, { scales, scalars }] of seen.entries()) {
      const [first, second] = [squares[0][r]!, squares[1][r]!];
      const global = 1 / Math.sqrt(first[0] + first[1]);
      const estimates = [second[0] * (whole / shares[0]), second[0] + second[1]];
      const wanted = [global, global, ...estimates.map((square) => Math.min(1, 1 / Math.sqrt(square)))];
      for (const [i, scale] of scales.entries()) expect(scale).toBeCloseTo(wanted[i]!, 6);
      expect(scalars["previousSquares"]).toEqual([20, 0.5]);
    }
  });

  it("is exact for one bucket, and for a gradient that grows as a whole", async () => {
    const options = { algorithm: lionCub({ beta2: 0.9 }), clip: 0.05, bucket: 1e9 };
    const global = await train(3, 5, () => ({ ...options, clipBy: "global" }));
    const previous = await train(3, 5, () => ({ ...options, clipBy: "previous" }));
    expect(previous.map(({ θ }) => θ)).toEqual(global.map(({ θ }) => θ));
  });

  it("clips means by their own global norm, for which nobody waits", async () => {
    for (const overlap of ["on", "off"] as const) {
      const by = (clipBy: "global" | "previous") =>
        train(3, 4, () => ({ algorithm: adamw(), clip: 0.05, clipBy, overlap, bucket: 64 }));
      const [global, previous] = [await by("global"), await by("previous")];
      expect(previous.map(({ θ }) => θ)).toEqual(global.map(({ θ }) => θ));
      expect(previous[0]!.save.scalars).toEqual({});
    }
  });
});
