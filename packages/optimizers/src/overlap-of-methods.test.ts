/** Method by method: what has left when backward, which is driven by hand, has come to the last gradient. */
import type { Group } from "@terse/collectives";
import { bytesOfRound } from "@terse/exchange";
import { Arena } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { type Algorithm, adamw, compressed, muon, Optimizer, type OptimizerOptions, zeroOneAdam } from "./index.ts";
import { Chain, input } from "./testing/chain.ts";
import { algorithms, compressions, variants, wholes } from "./testing/methods.ts";
import { onRanks } from "./testing/on-ranks.ts";
import { until } from "./testing/until.ts";

const ranks = 3;

/** A model whose every parameter is a bucket, and whose backward is driven by hand. */
async function open(group: Group, options: OptimizerOptions) {
  const groups = [group]; // and the one that results come down over
  const split = group.split.bind(group);
  group.split = async (...given) => {
    const inner = await split(...given);
    if (groups.length === 1) groups.push(inner!);
    return inner;
  };
  const model = new Chain();
  const arena = new Arena(model);
  let ready: (segment: number) => void = () => {};
  const others = [{ match: ({ shape }: { shape: readonly number[] }) => shape.length < 2, algorithm: adamw() }];
  const optimizer = new Optimizer(arena, group, {
    bucket: 1,
    overlap: "on",
    ...(options.algorithm.takes === "matrices" && { groups: others }),
    ...options,
  });
  const total = () => ({
    bytes: groups.reduce((sum, one) => sum + one.sent().bytes, 0),
    messages: groups.reduce((sum, one) => sum + one.sent().messages, 0),
  });
  let [before, next] = [total(), 0];
  return {
    optimizer,
    θ: async () => [...(await arena.parameters.toTypedArray())],
    /** Makes the gradients of a step, and begins it. */
    async begin() {
      arena.zeroGradients();
      await model.loss(input(group.rank, optimizer.steps)).backward();
      arena.onGradientReady = (callback) => {
        ready = callback;
        return () => {};
      };
      await optimizer.begin({ lr: 0.01 });
      [before, next] = [total(), arena.segments.length - 1];
    },
    /** Since `begin`: payload, and messages. */
    sent: () => ({ bytes: total().bytes - before.bytes, messages: total().messages - before.messages }),
    /** Backward comes to this segment. */
    backTo(segment: number) {
      while (next >= segment) ready(next--);
    },
  };
}

type Hand = Awaited<ReturnType<typeof open>>;

/**
 * Payload bytes of the messages that can have left when all buckets but the last one are ready. A second message has
 * its place behind the first one of the next bucket, a third one behind that of the bucket after it; what follows from
 * mean gradients waits for all of them.
 */
function bytesBefore({ optimizer }: Hand, rank: number): number {
  const closed = optimizer.requests().slice(0, -1);
  const rounds = closed.flatMap(({ rounds, afterMeans }, place) =>
    rounds.slice(0, Math.min(rounds.length - afterMeans, closed.length - place)),
  );
  return rounds.reduce((sum, round) => sum + bytesOfRound(round, ranks, rank, optimizer.schemes), 0);
}

/** Results that have come are handed out meanwhile. */
async function aFewIterations(): Promise<void> {
  for (let i = 0; i < 10; i++) await new Promise((next) => setImmediate(next));
}

const methods: Record<string, () => Algorithm> = {
  ...algorithms,
  ...variants,
  "zero-one-adam, of two messages": () =>
    zeroOneAdam({ freeze: 2, doubling: 1, localSteps: 2, early: "buffer", eps: 1 }),
  ...Object.fromEntries(
    Object.entries(compressions).flatMap(([name, create]) => [
      [`adamw, ${name}`, () => compressed(adamw(), create())],
      [`muon, ${name}`, () => compressed(muon(), create())],
    ]),
  ),
};

describe("while the last gradient is missing", () => {
  /** `from`: the first step that is looked at. */
  async function check(options: () => OptimizerOptions, { steps = 4, from = 0 } = {}): Promise<void> {
    await onRanks(ranks, async (group) => {
      const hand = await open(group, options());
      const { optimizer } = hand;
      while (optimizer.steps < steps) {
        await hand.begin();
        const before = await hand.θ();
        if (optimizer.steps >= from) {
          const [expected, buckets] = [bytesBefore(hand, group.rank), optimizer.requests().length - 1];
          hand.backTo(1);
          await until(
            () => hand.sent().bytes >= expected && hand.sent().messages >= buckets,
            () =>
              `step ${optimizer.steps}: only ${hand.sent().bytes} of ${expected} bytes have left, and backward waits for one more gradient`,
          );
          await aFewIterations();
          expect(hand.sent().bytes).toBe(expected);
          expect(await hand.θ()).toEqual(before);
          hand.backTo(0);
        }
        await optimizer.step({ lr: 0.01 });
        expect(await hand.θ()).not.toEqual(before);
      }
      await optimizer[Symbol.asyncDispose]();
    });
  }

  it.each(Object.entries(methods))(
    "all messages of the layers before it have left, and no parameter has changed, %s",
    (_, create) => check(() => ({ algorithm: create() }), { steps: create().isLocal ? 5 : 4 }),
  );

  it.each(["adamw", "adamw with powersgd", "muon", "lion-cub", "demo", "dion"])(
    "the same of a gradient that is clipped, %s",
    (name) => {
      const create = methods[name]!;
      // Own gradients have no step before the first one, so that one waits.
      const from = /^(adamw|muon)/.test(create().name) ? 0 : 1;
      return check(() => ({ algorithm: create(), clip: 1e-3, clipBy: "previous" }), { steps: 3, from });
    },
  );
});

describe("what works on the model as one vector", () => {
  it.each(Object.entries(wholes))(
    "says so, and sends nothing before the end of backward, %s",
    async (_, { create, perLayer }) => {
      const why = `works on the whole vector at once: set overlap to off, or take ${perLayer}`;
      await onRanks(ranks, async (group) => {
        await expect(open(group, { algorithm: create() })).rejects.toThrow(why);
        const hand = await open(group, { algorithm: create(), overlap: "auto" });
        const { optimizer } = hand;
        expect(optimizer.obstacle).toContain(why);
        for (let step = 0; step < 3; step++) {
          await hand.begin();
          hand.backTo(0);
          await aFewIterations();
          expect(hand.sent().messages).toBe(0);
          await optimizer.step({ lr: 0.01 });
          expect(hand.sent().messages).toBeGreaterThan(0);
        }
        await optimizer[Symbol.asyncDispose]();
      });
    },
  );
});
