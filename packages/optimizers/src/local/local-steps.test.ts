import { loopback } from "@terse/collectives";
import { StepRefusedError } from "@terse/exchange";
import { Arena, Linear } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { adamw, anyCodec, compressed, LocalSteps, lionCub, muon, powersgd, sgd } from "../index.ts";
import { savesOf } from "../testing/stored.ts";
import { type Given, type GradientOf, trainLocally, wandering } from "../testing/train-locally.ts";
import { RoundSchedule } from "./round-schedule.ts";

const nesterov = { algorithm: sgd({ momentum: 0.9, nesterov: true }), compareEvery: 1 };

describe("local steps are torchft's", () => {
  // Its regression fixtures of DiLoCo (torchft/local_sgd_test fixtures at 7eb7087): 2 fragments, H 6, θ₀ 1, every
  // gradient 2, inner SGD with rate 1, outer SGD with rate 2, without momentum. Both layers after each step.
  const fixtures: [delay: number, alpha: number, first: number[], second: number[]][] = [
    [
      0,
      0,
      [-1, -3, -11, -13, -15, -17, -19, -21, -35, -37, -39, -41, -43, -45, -59],
      [-1, -3, -5, -7, -9, -23, -25, -27, -29, -31, -33, -47, -49, -51, -53],
    ],
    [
      0,
      0.5,
      [-1, -3, -8, -10, -12, -14, -16, -18, -24.5, -26.5, -28.5, -30.5, -32.5, -34.5, -40.25],
      [-1, -3, -5, -7, -9, -17, -19, -21, -23, -25, -27, -32, -34, -36, -38],
    ],
    [
      0,
      1,
      [-1, -3, -5, -7, -9, -11, -13, -15, -17, -19, -21, -23, -25, -27, -29],
      [-1, -3, -5, -7, -9, -11, -13, -15, -17, -19, -21, -23, -25, -27, -29],
    ],
    [
      1,
      0,
      [-1, -3, -7, -9, -11, -13, -15, -17, -27, -29, -31, -33, -35, -37, -47],
      [-1, -3, -5, -7, -9, -19, -21, -23, -25, -27, -29, -39, -41, -43, -45],
    ],
    [
      1,
      0.5,
      [-1, -3, -6, -8, -10, -12, -14, -16, -21.5, -23.5, -25.5, -27.5, -29.5, -31.5, -35.75],
      [-1, -3, -5, -7, -9, -15, -17, -19, -21, -23, -25, -29, -31, -33, -35],
    ],
    [
      1,
      1,
      [-1, -3, -5, -7, -9, -11, -13, -15, -17, -19, -21, -23, -25, -27, -29],
      [-1, -3, -5, -7, -9, -11, -13, -15, -17, -19, -21, -23, -25, -27, -29],
    ],
  ];

  it.each(fixtures)("with delay %d and alpha %d", async (delay, alpha, first, second) => {
    const ranks = alpha === 1 ? 1 : 2; // where no rank would use what the others send, several are refused
    const given = { syncEvery: 6, fragments: 2, delay, alpha, outerLr: 2 };
    for (const { seen } of await trainLocally(ranks, given, () => 2, { steps: 15, lr: 1 })) {
      expect(seen.map(({ own }) => own[0]![0])).toEqual(first);
      expect(seen.map(({ own }) => own[1]![0])).toEqual(second);
    }
  });
});

it("a step while a round is waited for is refused", async () => {
  const arena = new Arena(new Linear(2, 2));
  const given = { inner: { algorithm: sgd() }, outer: { algorithm: sgd() }, outerLr: 1, syncEvery: 1 };
  await using optimizer = new LocalSteps(arena, loopback(1)[0]!, given);
  let calls: Promise<unknown>[] = [];
  optimizer.beside = async () => {
    optimizer.beside = undefined;
    await new Promise(setImmediate); // this rank's own step has ended
    calls = [optimizer.step({ lr: 1 }), optimizer.begin({ lr: 1 })];
    await Promise.race([Promise.allSettled(calls), new Promise(setImmediate)]);
  };
  await optimizer.step({ lr: 1 });
  expect(calls).toHaveLength(2);
  for (const call of calls) await expect(call).rejects.toThrow("the step before has not ended: await its step");
  expect(optimizer.steps).toBe(1);
});

describe("local steps with momentum and unequal ranks", () => {
  // From a reference in float64: θ[p][f] and shared[f] as scalars, the recursion of local-steps.ts line by line.
  const [a, b] = [
    [1, 0.5],
    [0.3, -0.8],
  ];
  const gradient: GradientOf = ({ rank, step, layer, value }) =>
    a![rank]! * (value - b![rank]!) * (1 + layer) + 0.1 * Math.sin(step + layer + rank);

  it.each<[delay: number, alpha: number, shared: number[], first: number[], second: number[], rebase?: boolean]>([
    [0, 0, [0.000053351824, -0.523555112135], [0.071939307041, -0.523555112135], [-0.063086213836, -0.523555112135]],
    [1, 0.5, [0.225953128791, -0.299959424971], [0.363126762048, -0.021925929701], [0.170571765569, -0.294961284355]],
    [1, 0, [0.227155922582, -0.397745813557], [0.255892389355, -0.397745813557], [0.141873856272, -0.397745813557]],
    [
      1,
      0,
      [0.07412327067, -0.518263815358],
      [0.119803130433, -0.466614700918],
      [-0.038006186598, -0.565100777468],
      true,
    ],
    [
      1,
      0.5,
      [0.155662184269, -0.357995979535],
      [0.312648548897, -0.048335442477],
      [0.089543597174, -0.378938809088],
      true,
    ],
  ])("delay %d and alpha %d: after 12 steps", async (delay, alpha, shared, first, second, rebase = false) => {
    const own = [first, second];
    const given = { syncEvery: 4, fragments: 2, delay, alpha, rebase, outer: nesterov, outerLr: 0.7 };
    const ranks = await trainLocally(2, given, gradient, { steps: 12 });
    for (const [rank, { seen }] of ranks.entries()) {
      const last = seen.at(-1)!;
      for (const f of [0, 1]) {
        expect(Math.abs(last.shared[f]![0]! - shared[f]!)).toBeLessThan(2e-6);
        expect(Math.abs(last.own[f]![0]! - own[rank]![f]!)).toBeLessThan(2e-6);
      }
    }
  });

  it("after the first round of each fragment", async () => {
    const given = { syncEvery: 4, fragments: 2, outer: nesterov, outerLr: 0.7 };
    const { seen } = (await trainLocally(2, given, gradient, { steps: 4 }))[0]!;
    expect(seen[1]!.shared[0]![0]).toBeCloseTo(0.777888897116, 6);
    expect(seen[1]!.shared[1]![0]).toBe(1);
    expect(seen[3]!.shared[0]![0]).toBeCloseTo(0.777888897116, 6);
    expect(seen[3]!.shared[1]![0]).toBeCloseTo(0.3168054968, 6);
  });

  it("in one bit both ways, with errors", async () => {
    // Tang et al. 2021, Algorithm 1, on three pseudo-gradients, in float64: outer SGD with rate 1, so θ̄ falls by each.
    const rounds = [
      [
        [0.03, -0.01, 0.02, 0.005],
        [0.01, -0.02, -0.01, 0.004],
      ],
      [
        [0.02, 0.01, 0.01, -0.003],
        [-0.01, -0.03, 0.02, 0.002],
      ],
      [
        [-0.01, 0.02, 0.005, 0.001],
        [0.03, 0.01, -0.02, 0.006],
      ],
    ];
    const expected = [
      [0.0156421299, -0.0156421299, 0.011294357, 0.011294357],
      [-0.0010754935, -0.0010754935, 0.0157982525, -0.0157982525],
      [0.0136258596, -0.0136258596, -0.0177751852, 0.0177751852],
    ];
    // Elements repeat, so that each of the two owners has the elements of a pair, and scales are those of 4 elements.
    const place = (element: number) => 2 * Math.floor(element / 64) + (element % 2);
    const steps: GradientOf = ({ rank, step, element }) => rounds[step]![rank]![place(element)]!;
    const outer = { algorithm: compressed(sgd(), anyCodec({ codec: "scaled-sign" })) };
    const given = { syncEvery: 1, outer };
    const ranks = await trainLocally(2, given, steps, { steps: 3, lr: 1, sizes: [128], start: 0 });
    for (const { seen } of ranks)
      for (const [round, { shared }] of seen.entries())
        for (const [element, value] of shared[0]!.entries()) {
          const fell = (round === 0 ? 0 : seen[round - 1]!.shared[0]![element]!) - value;
          expect(fell, `round ${round}, element ${element}`).toBeCloseTo(expected[round]![place(element)]!, 7);
        }
  });
});

describe("a round of local steps", () => {
  it("with plain averaging ends at the mean of the ranks", async () => {
    const alone = await Promise.all(
      [0, 1, 2].map(async (rank) => {
        const own: GradientOf = (at) => wandering({ ...at, rank });
        const { seen } = (await trainLocally(1, { syncEvery: 100 }, own, { steps: 5, sizes: [3, 70] }))[0]!;
        return seen.at(-1)!.own;
      }),
    );
    const ranks = await trainLocally(3, { syncEvery: 5 }, wandering, { steps: 5, sizes: [3, 70] });
    for (const { seen } of ranks)
      for (const [layer, values] of seen.at(-1)!.shared.entries())
        for (const [i, value] of values.entries()) {
          const mean = alone.reduce((sum, own) => sum + own[layer]![i]!, 0) / 3;
          expect(value).toBeCloseTo(mean, 5);
        }
  });

  it("also ends a run whose last steps are fewer than H", async () => {
    const codec = compressed(sgd({ momentum: 0.9, nesterov: true }), anyCodec({ codec: "scaled-sign" }));
    const given = { syncEvery: 5, outer: { algorithm: codec, compareEvery: 0 }, outerLr: 0.7 };
    const [sizes, steps] = [[5, 70], 8];
    const ranks = await trainLocally(3, { ...given, steps }, wandering, { steps, sizes });
    for (const { seen } of ranks) {
      expect(seen.flatMap(({ bytes }, step) => (bytes > 0 ? [step] : []))).toEqual([4, 7]);
      expect(seen.map(({ closed }) => closed > 0)).toEqual(seen.map(({ bytes }) => bytes > 0)); // headers come on top
      const { own, shared } = seen.at(-1)!;
      expect(own).toEqual(shared);
      expect(shared).toEqual(ranks[0]!.seen.at(-1)!.shared);
      expect(shared).not.toEqual(seen.at(-2)!.shared);
    }
    // A longer run goes on from there: its next round is at a multiple of H again, and its last one at its end.
    const saves = (rank: number) => savesOf(rank, 3, ranks[rank]!.save);
    const from = { at: steps, saves, shared: ranks[0]!.seen.at(-1)!.shared };
    const longer = await trainLocally(3, { ...given, steps: 12 }, wandering, { steps: 12, sizes, from });
    for (const { seen } of longer) {
      expect(seen.flatMap(({ bytes }, i) => (bytes > 0 ? [steps + i] : []))).toEqual([9, 11]);
      expect(seen.map(({ closed }) => closed > 0)).toEqual(seen.map(({ bytes }) => bytes > 0));
      expect(seen.at(-1)!.own).toEqual(longer[0]!.seen.at(-1)!.shared);
    }
  });

  it("has the number that its fragment's rounds before it give it, also behind the end of a shorter run", () => {
    const numbers = (schedule: RoundSchedule, from: number, to: number) =>
      Array.from({ length: to - from }, (_, i) => schedule.roundOf(from + i)?.number ?? "–");
    const [short, longer] = [8, 12].map((steps) => new RoundSchedule({ syncEvery: 5, fragments: 1, delay: 0, steps }));
    expect(numbers(short!, 0, 8)).toEqual(["–", "–", "–", "–", 0, "–", "–", 1]);
    longer!.goesOn(8, [2], false);
    expect(numbers(longer!, 8, 12)).toEqual(["–", 2, "–", 3]);
  });

  it("gives every rank θ̄ bit for bit, keeps α of its own, and touches its own fragment alone", async () => {
    for (const alpha of [0, 0.25]) {
      const given = { syncEvery: 4, fragments: 2, alpha, outer: nesterov, outerLr: 0.7 };
      const ranks = await trainLocally(3, given, wandering, { steps: 12, sizes: [5, 70] });
      for (const { seen } of ranks)
        for (let step = 1; step < 12; step += 2) {
          const fragment = ((step + 1) / 2 - 1) % 2;
          const { own, shared } = seen[step]!;
          if (alpha === 0) expect(own[fragment]).toEqual(shared[fragment]);
          else expect(own[fragment]).not.toEqual(shared[fragment]);
          expect(shared[1 - fragment]).toEqual(seen[step - 1]!.shared[1 - fragment]);
          expect(shared).toEqual(ranks[0]!.seen[step]!.shared);
        }
    }
  });

  it("alone, with rate 1 and no momentum, is the inner optimizer", async () => {
    const [local] = await trainLocally(1, { syncEvery: 3, inner: { algorithm: adamw() } }, wandering, { steps: 9 });
    const inner = { algorithm: adamw() };
    const [plain] = await trainLocally(1, { syncEvery: 100, inner }, wandering, { steps: 9 });
    for (const [step, { own }] of local!.seen.entries())
      for (const [layer, values] of own.entries())
        for (const [i, value] of values.entries()) expect(value).toBeCloseTo(plain!.seen[step]!.own[layer]![i]!, 6);
  });

  it.each([1, 4])(
    "alone, with a delay of %i and its steps beside the round on top, is the inner optimizer",
    async (delay) => {
      const run = { steps: 15, sizes: [3, 70] };
      const end = async (given: Given) => (await trainLocally(1, given, wandering, run))[0]!.seen.at(-1)!.own.flat();
      const inner = { algorithm: adamw() };
      const plain = await end({ syncEvery: 100, inner });
      const farthest = async (rebase: boolean) => {
        const own = await end({ syncEvery: 5, delay, rebase, inner });
        return Math.max(...own.map((value, i) => Math.abs(value - plain[i]!)));
      };
      expect(await farthest(true)).toBeLessThan(1e-6);
      expect(await farthest(false)).toBeGreaterThan(1e-2);
    },
  );

  it("of one step is synchronous SGD", async () => {
    const at = { layer: 0, element: 0 };
    const ranks = await trainLocally(2, { syncEvery: 1 }, wandering, { steps: 8, sizes: [1] });
    let x = 1;
    for (let step = 0; step < 8; step++) {
      const gradients = [0, 1].map((rank) => wandering({ ...at, rank, step, value: x }));
      x -= 0.05 * (gradients[0]! + gradients[1]!);
      for (const { seen } of ranks) expect(seen[step]!.own[0]![0]).toBeCloseTo(x, 5);
    }
  });

  it("sends what its closed form says, whatever carries it", async () => {
    const codecOf = (codec: string, more: object = {}) => compressed(sgd(), anyCodec({ codec, ...more }));
    const outers = [
      sgd(),
      adamw(),
      lionCub(),
      codecOf("scaled-sign"),
      codecOf("int8"),
      codecOf("l1", { bits: 4 }),
      codecOf("bin-means"),
      codecOf("top-k", { ratio: 0.1 }),
    ];
    for (const algorithm of outers)
      for (const ranks of [1, 2, 3, 5])
        for (const fragments of [1, 2]) {
          const given = { syncEvery: 4, fragments, outer: { algorithm, compareEvery: 0 } };
          const all = await trainLocally(ranks, given, wandering, { steps: 8, sizes: [70, 200], looks: () => false });
          for (const { seen } of all)
            for (const [step, { bytes, closed }] of seen.entries()) {
              const isRound = (step + 1) % (4 / fragments) === 0;
              if (isRound && ranks > 1) expect(closed).toBeGreaterThan(0);
              else expect(closed).toBe(0);
              expect(bytes).toBeGreaterThanOrEqual(closed); // headers come on top
              if (closed === 0) expect(bytes).toBe(0);
            }
        }
  });

  it("of low rank leaves the subspace that it began in, and loses nothing", async () => {
    // "LoRDO", https://arxiv.org/abs/2602.04396: a run may stay in its first subspace for ever.
    // Here it has rank 1, and from step 4 on the gradient is orthogonal to it, by rows and by columns.
    const [side, change, steps] = [8, 4, 16];
    const sign = (mask: number, i: number) => ((mask & i).toString(2).replaceAll("0", "").length % 2 ? -1 : 1);
    const of = (mask: number, element: number) => sign(mask, Math.floor(element / side)) * sign(mask, element % side);
    const turning: GradientOf = ({ step, element }) => of(step < change ? 3 : 5, element);
    const moved = async (useErrorFeedback: boolean) => {
      const outer = { algorithm: compressed(sgd(), powersgd({ minCompressionRate: 1, useErrorFeedback })) };
      const run = { steps, lr: 1, sizes: [side * side], shape: [side, side], start: 0 };
      const [first] = await trainLocally(2, { syncEvery: 2, outer }, turning, run);
      const shared = first!.seen.at(-1)!.shared[0]!;
      return shared.reduce((sum, value, element) => sum - value * of(5, element), 0) / side ** 2;
    };
    expect(await moved(true)).toBeCloseTo(steps - change, 4);
    expect(await moved(false)).toBeLessThan(steps - change - 1);
  });

  it("takes any optimizer outside, and refuses one inside that the model does not fit", async () => {
    const algorithms = [adamw({ weightDecay: 0 }), lionCub(), sgd({ momentum: 0.5 })];
    for (const algorithm of algorithms) {
      const given: Given = { syncEvery: 3, delay: 1, outer: { algorithm, compareEvery: 1 }, outerLr: 0.1 };
      const ranks = await trainLocally(3, given, wandering, { steps: 9, sizes: [65, 3] });
      for (const { seen } of ranks) expect(seen.at(-1)!.shared).toEqual(ranks[0]!.seen.at(-1)!.shared);
    }
    await expect(
      trainLocally(1, { syncEvery: 3, inner: { algorithm: muon() } }, wandering, { steps: 3 }),
    ).rejects.toThrow(/muon works on matrices/);
  });
});

describe("the bits of local steps", () => {
  const codec = compressed(sgd({ momentum: 0.9, nesterov: true }), anyCodec({ codec: "scaled-sign" }));
  const given = { syncEvery: 4, fragments: 2, delay: 1, alpha: 0.5, outer: { algorithm: codec }, outerLr: 0.7 };
  const run = { steps: 16, sizes: [70, 9, 33] };
  const rebasing = { ...given, syncEvery: 8, delay: 2, alpha: 0, rebase: true };

  it("do not depend on how fast ranks are, or on who looks", async () => {
    const plain = await trainLocally(3, given, wandering, run);
    const waits = (rank: number, step: number) => 4 * ((rank * 7 + step * 3) % 4);
    const slow = await trainLocally(3, given, wandering, { ...run, waits, looks: (step) => step === 15 });
    for (const [rank, { seen }] of slow.entries()) {
      expect(seen.map(({ own }) => own)).toEqual(plain[rank]!.seen.map(({ own }) => own));
      expect(seen.at(-1)!.shared).toEqual(plain[rank]!.seen.at(-1)!.shared);
    }
  });

  it("show a watch the updates of all steps, and messages and votes of rounds alone", async () => {
    const seen: [step: number, part: string][] = [];
    let now = 0;
    const watch = (rank: number) => ({
      bucket: () => ({
        wantsVotes: true,
        saw: (part: string) => void (rank === 0 && seen.push([now, part])),
        votes: () => void (rank === 0 && seen.push([now, "votes"])),
      }),
    });
    const voting = { inner: { algorithm: lionCub() }, outer: { algorithm: lionCub() } };
    const steps: GradientOf = (at) => {
      if (at.rank === 0) now = at.step;
      return wandering(at);
    };
    await trainLocally(2, { syncEvery: 3, ...voting }, steps, { steps: 6, looks: () => false, watch });
    const stepsWith = (part: string) => [...new Set(seen.flatMap(([step, each]) => (each === part ? [step] : [])))];
    expect(stepsWith("update")).toEqual([0, 1, 2, 3, 4, 5]);
    expect(stepsWith("wire")).toEqual([2, 5]);
    expect(stepsWith("votes")).toEqual([2, 5]);
  });

  it.each([given, rebasing])("are the same from a save after any step, also in a round: $syncEvery", async (given) => {
    const whole = await trainLocally(3, given, wandering, run);
    for (let at = 1; at <= given.syncEvery + 4; at++) {
      const begun = await trainLocally(3, given, wandering, { ...run, steps: at });
      const saves = (rank: number) => savesOf(rank, 3, begun[rank]!.save);
      const { shared } = begun[0]!.seen.at(-1)!;
      const resumed = await trainLocally(3, given, wandering, { ...run, from: { at, saves, shared } });
      for (const [rank, { seen }] of resumed.entries()) {
        const rest = whole[rank]!.seen.slice(at);
        expect(seen, `after step ${at}, rank ${rank}`).toEqual(rest);
      }
    }
  });

  it.each([0, 1])("are the same where a round is under way and the run goes on with delay %i", async (delay) => {
    const before = { syncEvery: 4, delay: 2, outer: nesterov, outerLr: 0.7 };
    const whole = await trainLocally(2, before, wandering, { ...run, steps: 8 });
    const begun = await trainLocally(2, before, wandering, { ...run, steps: 6 });
    const saves = (rank: number) => savesOf(rank, 2, begun[rank]!.save);
    const from = { at: 6, saves, shared: begun[0]!.seen.at(-1)!.shared };
    const resumed = await trainLocally(2, { ...before, delay }, wandering, { ...run, steps: 12, from });
    for (const [rank, { seen, save }] of resumed.entries()) {
      expect(seen.slice(0, 2)).toEqual(whole[rank]!.seen.slice(6));
      expect(save.scalars["local.rounds"]).toEqual([3]);
    }
  });

  it("lack the steps before a save alone where a run without rebase goes on with it beside a round", async () => {
    const constant = () => 1;
    const begun = await trainLocally(2, { ...rebasing, rebase: false }, constant, { ...run, steps: 3 });
    const saves = (rank: number) => savesOf(rank, 2, begun[rank]!.save);
    const from = { at: 3, saves, shared: begun[0]!.seen[2]!.shared };
    for (const { seen } of await trainLocally(2, rebasing, constant, { ...run, steps: 4, from })) {
      const { own, shared } = seen[0]!;
      expect(own[0]![0]! - shared[0]![0]!).toBeCloseTo(-0.1, 6); // one step of 0.1, of the two beside the round
    }
  });

  it.each([given, { ...given, rebase: true }])(
    "go on with other ranks, from the mean of what each had",
    async (given) => {
      const begun = await trainLocally(2, given, wandering, { ...run, steps: 7 });
      const saves = begun.map(({ save }) => save);
      const { shared } = begun[0]!.seen.at(-1)!;
      for (const ranks of [1, 3]) {
        const from = { at: 7, saves: () => saves, shared };
        const resumed = (await trainLocally(ranks, given, wandering, { ...run, steps: 7, from })).map(
          ({ save }) => save,
        );
        const mean = (name: string, of: typeof saves) => {
          const all = of.map(({ tensors }) => tensors.get(name) as Float32Array);
          return all[0]!.map((_, i) => all.reduce((sum, values) => sum + values[i]!, 0) / all.length);
        };
        const ofRound = [...saves[0]!.tensors.keys()].filter((name) => name.startsWith("sent."));
        expect(ofRound.length > 0).toBe("rebase" in given);
        for (const name of ["island.layers.0.weight", "island.layers.2.weight", ...ofRound])
          expect(resumed[0]!.tensors.get(name)).toEqual(mean(name, saves));
        expect(resumed[0]!.scalars).toEqual(saves[0]!.scalars);
        const errors = errorsOf(saves);
        const kept = errorsOf(resumed);
        for (const [i, value] of kept.entries()) expect(value).toBeCloseTo(errors[i]!, 6);
      }
    },
  );
});

/** Σ over the owners' errors + mean of the ranks' errors, element by element of all layers. */
function errorsOf(saves: readonly { tensors: ReadonlyMap<string, unknown> }[]): number[] {
  const names = [0, 1, 2].map((layer) => `layers.${layer}.weight`);
  return names.flatMap((name) => {
    const all = saves.map(({ tensors }) => tensors.get(`outer.gradientError.${name}`) as Float32Array);
    const sum = Array.from(all[0]!, (_, i) => all.reduce((total, values) => total + values[i]!, 0) / all.length);
    for (const { tensors } of saves)
      for (const [key, values] of tensors) {
        const [, range] = key.split(`outer.gradientOwnerError.${name}`);
        if (!range) continue;
        const [begin] = range.slice(1, -1).split(":").map(Number) as [number];
        for (const [i, value] of (values as Float32Array).entries()) sum[begin + i]! += value;
      }
    return sum;
  });
}

describe("a step that a rank refuses", () => {
  it("is refused by all in the next round, which changes nothing", async () => {
    const given = { syncEvery: 4, delay: 1 };
    const broken: GradientOf = (at) => (at.rank === 1 && at.step === 5 ? Number.NaN : wandering(at));
    const ranks = await trainLocally(3, given, broken, { steps: 12, looks: () => false });
    const sound = await trainLocally(3, given, wandering, { steps: 4 });
    for (const { seen, refused } of ranks) {
      expect(seen).toHaveLength(7); // the round of steps 4 to 7 is refused where it would be used
      expect(refused!.error).toBeInstanceOf(StepRefusedError);
      expect(refused!.error.message).toMatch(
        /^rank 1 refuses the step: the gradient is not finite\. What the ranks share is that of the round before\. Lower/,
      );
      expect(refused!.shared).toEqual(sound[0]!.seen.at(-1)!.shared);
    }
  });
});

describe("a save after a step that a rank has refused", () => {
  it.each([2, 3])("is refused in the next round too when %i ranks go on from it", async (ranks) => {
    const given = { syncEvery: 4 };
    const broken: GradientOf = (at) => (at.rank === 1 && at.step === 5 ? Number.NaN : wandering(at));
    const begun = await trainLocally(2, given, broken, { steps: 6 });
    const { shared } = begun[0]!.seen.at(-1)!;
    const all = begun.map(({ save }) => save);
    const saves = (rank: number) => (ranks === 2 ? savesOf(rank, 2, all[rank]!) : all);
    const resumed = await trainLocally(ranks, given, wandering, { steps: 12, from: { at: 6, saves, shared } });
    for (const { seen, refused } of resumed) {
      expect(seen).toHaveLength(1); // step 7 of 8
      expect(refused!.error.message).toMatch(/refuses the step: the gradient is not finite/);
    }
  });
});

describe("options that do not fit", () => {
  it.each([
    [{ syncEvery: 10, fragments: 3 }, /^local\.syncEvery: 10 is no multiple of local\.fragments, 3; take 9 or 12$/],
    [{ syncEvery: 4, delay: 4 }, /^local\.delay: a round leaves every 4 steps, .* from 0 to 3, got 4$/],
    [{ syncEvery: 6, fragments: 3 }, /^local\.fragments: 3 fragments need as many layers, and the model has 2/],
    [{ syncEvery: 4, alpha: 1 }, /^local\.alpha: with 1 a rank never uses what the others send/],
    [{ syncEvery: 0 }, /^local\.syncEvery: expected a whole number from 1 on/],
  ])("%j", async (given, message) => {
    await expect(trainLocally(2, given, wandering, { steps: 1 })).rejects.toThrow(message);
  });
});
