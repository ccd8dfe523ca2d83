/**
 * What a round of local steps costs a rank itself, over 64 Mi parameters: pseudo-gradient, encoding, the outer step,
 * mixing. One thread, two ranks in one process, whose messages are copies of memory. Measured in the time in which
 * memory delivers θ̄ and θ once (memory.ts).
 */
import { loopback } from "@terse/collectives";
import { useThreads } from "@terse/native-optimizers";
import { algorithms, compressed, gradientCompressions, LocalSteps } from "@terse/optimizers";
import { manualSeed, noGrad, randn, scope, setNumThreads } from "@terse/tensor";
import { arenaOfMatrices } from "../arena-of-matrices.ts";
import { type Measurement, median } from "../measurement.ts";
import { streamingSpeed } from "../memory.ts";

const wires = {
  f32: undefined,
  "8 bits": { codec: "int8" },
  "4 bits": { codec: "l1", bits: 4 },
  "1 bit": { codec: "scaled-sign" },
} as const;

/** `side` and `matrices`: 16 matrices of 2,048 × 2,048 are 64 Mi parameters. */
export async function* roundWork({ side = 2048, matrices = 16, rounds = 5 } = {}): AsyncGenerator<Measurement> {
  setNumThreads(1);
  useThreads(1);
  const n = matrices * side * side;
  for (const [name, wire] of Object.entries(wires)) {
    const groups = loopback(2);
    const outer = algorithms.sgd({});
    const gradient = wire && gradientCompressions.codec(wire);
    const ranks = groups.map((group) => {
      const arena = arenaOfMatrices(matrices, [side, side]);
      manualSeed(group.rank);
      noGrad(() => scope(() => arena.gradients.copy_(randn([arena.gradients.length]))));
      const options = { algorithm: gradient ? compressed(outer, gradient) : outer, compareEvery: 0 };
      const inner = { algorithm: algorithms.sgd({}) };
      return { arena, steps: new LocalSteps(arena, group, { inner, outer: options, outerLr: 0.7, syncEvery: 2 }) };
    });
    const step = async () => {
      const began = performance.now();
      await Promise.all(ranks.map(({ steps }) => steps.step({ lr: 1e-3 })));
      return (performance.now() - began) / 1000;
    };
    const streaming = streamingSpeed(n / 4);
    const ratios: number[] = [];
    const seconds: number[] = [];
    for (let round = -1; round < rounds; round++) {
      const read = (8 * n) / streaming();
      const alone = await step();
      const own = ((await step()) - alone) / ranks.length;
      if (round < 0) continue; // its memory was touched for the first time
      ratios.push(own / read);
      seconds.push(own);
    }
    for (const { steps } of ranks) await steps.close();
    const inCase = { case: `round, ${name}, ${n / 2 ** 20} Mi parameters` };
    yield { ...inCase, metric: "round_ms", value: 1000 * median(seconds), unit: "ms" };
    yield { ...inCase, metric: "round_over_stream", value: median(ratios), unit: "ratio" };
  }
}
