import { describe, expect, it } from "vitest";
import { dgc } from "../index.ts";
import { floats, gradientContract, ledgerOf, type MeanOracle, meansOf, spanOf } from "../testing/gradient-contract.ts";
import { largestOf } from "../testing/largest.ts";
import { onRanks } from "../testing/on-ranks.ts";
import { layerRanges, mean } from "../testing/optimizer-contract.ts";

const vectors = [1]; // the second parameter

/** Algorithm 1 with μ 1/2. */
function oracle(n: number, ranks: number, ratioAt: (step: number) => number, options: Options): MeanOracle {
  const rows = () => Array.from({ length: ranks }, () => new Array<number>(n).fill(0));
  const [u, v] = [rows(), rows()];
  const { nesterov = false, factorMasking = true } = options;
  return (g, step) => {
    const sent = rows();
    for (const [layer, [begin, end]] of layerRanges().entries())
      for (let r = 0; r < ranks; r++) {
        const own = (vectors.includes(layer) ? mean(g) : g[r]!).slice(begin, end);
        for (const [j, value] of own.entries()) {
          const i = begin + j;
          u[r]![i] = 0.5 * u[r]![i]! + value;
          const change = nesterov ? value + 0.5 * u[r]![i]! : u[r]![i]!;
          if (vectors.includes(layer)) sent[r]![i] = change;
          else v[r]![i]! += change;
        }
        if (vectors.includes(layer)) continue;
        for (const j of largestOf(v[r]!.slice(begin, end), ratioAt(step))) {
          const i = begin + j;
          if (v[r]![i] === 0) continue;
          sent[r]![i] = v[r]![i]!;
          v[r]![i] = 0;
          if (factorMasking) u[r]![i] = 0;
        }
      }
    return mean(sent);
  };
}

type Options = NonNullable<Parameters<typeof dgc>[0]>;

gradientContract("dgc as in the paper", {
  create: () => dgc({ ratio: 1 / 64, momentum: 0.5, warmup: 4 }),
  oracle: (n, ranks) => oracle(n, ranks, (step) => [1 / 4, 1 / 16][step] ?? 1 / 64, {}),
});

const other = { nesterov: true, factorMasking: false };
gradientContract("dgc with nesterov, without factor masking", {
  create: () => dgc({ ratio: 1 / 8, momentum: 0.5, ...other }),
  oracle: (n, ranks) => oracle(n, ranks, () => 1 / 8, other),
});

const [n, ranks, steps] = [401, 2, 30];
const gradientsOf = (rank: number) =>
  Array.from({ length: steps }, (_, t) =>
    Float32Array.from({ length: n }, (_, i) => Math.sin(i * 1.7 + t * 2.3 + rank)),
  );

describe("dgc", () => {
  it("loses nothing: what was sent and what still waits add up to all velocities", async () => {
    for (const momentum of [0, 0.75]) {
      const create = () => dgc({ ratio: 0.02, momentum, factorMasking: false });
      const { sent, kept } = await ledgerOf(create, { error: "accumulated" });
      // A velocity is linear in the gradients: with all of them sent, it is the sum that is given.
      const all = await ledgerOf(() => dgc({ ratio: 1, momentum, factorMasking: false }), { error: "accumulated" });
      for (const [i, value] of all.sent.entries()) expect(sent[i]! + kept[i]!).toBeCloseTo(value, 4);
      if (momentum === 0) for (const [i, value] of all.given.entries()) expect(all.sent[i]!).toBeCloseTo(value, 4);
      expect(Math.max(...all.kept.map(Math.abs))).toBe(0);
    }
  });

  it("sends 25 %, 6.25 %, 1.5625 % and 0.4 % in the paper's warm-up, and in the authors' a sixth of the way each", () => {
    const kept = (options: Options) => {
      const compression = dgc({ warmup: 8, ...options });
      const { vector } = spanOf(compression, [1000, 100], { rank: 0, size: 2 });
      return Array.from({ length: 10 }, (_, step) => {
        const [message] = compression.messages(vector, step);
        return (message as unknown as { codec: { parameters: { k: number } } }).codec.parameters.k;
      });
    };
    expect(kept({})).toEqual([25_000, 25_000, 6250, 6250, 1563, 1563, 400, 400, 100, 100]);
    const ratios = [1, 2, 3, 4, 5].map((stage) => Math.ceil(100_000 * 0.001 ** (stage / 6)));
    expect(kept({ warmup: 5, warmupRatios: "exponential" })).toEqual([...ratios, 100, 100, 100, 100, 100]);
    expect(kept({ ratio: 0.1 })).toEqual([25_000, 25_000, ...new Array<number>(8).fill(10_000)]);
  });

  it("clips a rank's own layer to the limit divided by √P before it accumulates", async () => {
    const clipped = await onRanks(ranks, async (group) => {
      const { state } = await meansOf(group, dgc({ clip: 3, ratio: 1 / n }), gradientsOf(group.rank).slice(0, 1));
      const { accumulated, velocity } = state.elements as never as Record<string, never>;
      return { accumulated: await floats(accumulated!), velocity: await floats(velocity!) };
    });
    for (const [r, { accumulated, velocity }] of clipped.entries()) {
      const [g] = gradientsOf(r) as [Float32Array];
      const factor = 3 / Math.sqrt(ranks) / Math.hypot(...g);
      const [largest] = largestOf([...g], 1 / n);
      for (const [i, value] of [...g].entries())
        for (const got of [accumulated[i]!, velocity[i]!])
          expect(got).toBeCloseTo(i === largest ? 0 : value * factor, 6);
    }
  });
});
