/**
 * Our training step, compared with PyTorch's, eager and compiled, and our operator call: alternating in one run, with
 * as many threads.
 */

import { Gpt, gptPresets } from "@terse/models";
import { availableProcessors } from "@terse/native-loader";
import { lion } from "@terse/optimizers";
import { fromTypedArray, manualSeed, noGrad, ones, scope, setNumThreads } from "@terse/tensor";
import { textOf } from "../batches.ts";
import { inTurns, medianRatio } from "../in-turns.ts";
import { type Measurement, median } from "../measurement.ts";
import { OwnSteps } from "../own-steps.ts";
import { Peer } from "../peer.ts";

const batch = 4;
const steps = 4; // a round

/** The small GPT with Lion on one rank; a ratio above 1 means that we are faster. */
export async function* throughput(): AsyncGenerator<Measurement> {
  const shape = gptPresets.small;
  for (const threads of new Set([1, availableProcessors()])) {
    setNumThreads(threads);
    await using peer = await Peer.start("gpt_train.py", [JSON.stringify(shape), String(batch), String(threads)], {
      OMP_NUM_THREADS: String(threads),
    });
    manualSeed(0);
    await using own = new OwnSteps(new Gpt(shape), {
      optimizer: { algorithm: lion({ weightDecay: 0.1 }), clip: 1 },
      lr: 1e-3,
      batch: () => textOf(batch, shape),
    });
    const theirs = async (side: string) =>
      (await peer.askAtRest<{ seconds: number }>(`${side} ${steps}`)).seconds / steps;
    const { ours, eager, compiled } = await inTurns({
      ours: () => own.seconds(steps),
      eager: () => theirs("eager"),
      compiled: () => theirs("compiled"),
    });
    const name = `gpt small, batch ${batch}, ${threads} ${threads === 1 ? "thread" : "threads"}`;
    yield { case: name, metric: "step_ms", value: 1000 * median(ours), unit: "ms" };
    yield { case: name, metric: "pytorch_step_ms", value: 1000 * median(eager), unit: "ms" };
    yield { case: name, metric: "compiled_step_ms", value: 1000 * median(compiled), unit: "ms" };
    yield { case: name, metric: "over_pytorch", value: medianRatio(eager, ours), unit: "ratio" };
    yield { case: name, metric: "over_compile", value: medianRatio(compiled, ours), unit: "ratio" };
  }
}

/** One small add without gradient, from JavaScript and from Python. */
export async function* operatorOverhead(): AsyncGenerator<Measurement> {
  await using peer = await Peer.start("gpt_train.py", [JSON.stringify(gptPresets.nano), "1", "1"]);
  const calls = 200_000;
  const add = () => {
    const a = ones([4]);
    const b = fromTypedArray(new Float32Array(4));
    const began = performance.now();
    noGrad(() => {
      for (let done = 0; done < calls; done += 1000)
        scope(() => {
          for (let i = 0; i < 1000; i++) a.add(b);
        });
    });
    return ((performance.now() - began) / calls) * 1e6;
  };
  const { ours, theirs } = await inTurns({
    ours: add,
    theirs: async () => (await peer.ask<{ nanoseconds: number }>(`add ${calls}`)).nanoseconds,
  });
  const name = "small add, 4 floats";
  yield { case: name, metric: "op_overhead_ns", value: median(ours), unit: "ns" };
  yield { case: name, metric: "pytorch_op_overhead_ns", value: median(theirs), unit: "ns" };
  yield { case: name, metric: "op_overhead_over_pytorch", value: medianRatio(ours, theirs), unit: "ratio" };
}
