/**
 * Our training step, compared with PyTorch's, eager and compiled, and our operator call: alternating in one run, with
 * as many threads.
 */

import { loopback } from "@terse/collectives";
import { Gpt, gptPresets } from "@terse/models";
import { availableProcessors } from "@terse/native-loader";
import { lion, Optimizer } from "@terse/optimizers";
import { Arena, fromTypedArray, manualSeed, noGrad, ones, randint, scope, setNumThreads } from "@terse/tensor";
import { type Measurement, median } from "../measurement.ts";
import { Peer } from "../peer.ts";

const batch = 4;
const rounds = 7;
const steps = 4; // a round

/** The small GPT with Lion on one rank; a ratio above 1 means that we are faster. */
export async function* throughput(): AsyncGenerator<Measurement> {
  const shape = gptPresets.small;
  for (const threads of new Set([1, availableProcessors()])) {
    setNumThreads(threads);
    await using peer = await Peer.start("gpt_train.py", [JSON.stringify(shape), String(batch), String(threads)], {
      OMP_NUM_THREADS: String(threads),
    });
    const [group] = loopback(1);
    manualSeed(0);
    const model = new Gpt(shape);
    const arena = new Arena(model);
    const optimizer = new Optimizer(arena, group!, { algorithm: lion({ weightDecay: 0.1 }), clip: 1, compareEvery: 0 });

    const train = async () => {
      await scope(async () => {
        arena.replaceGradients();
        const tokens = randint(0, shape.vocabulary, [batch, shape.context + 1]);
        const loss = model.loss({
          tokens: tokens.narrow(1, 0, shape.context).contiguous(),
          next: tokens.narrow(1, 1, shape.context).contiguous(),
        });
        await loss.backward();
        await optimizer.step({ lr: 1e-3, loss: loss.item() });
      });
    };
    const ours: number[] = [];
    const eager: number[] = [];
    const compiled: number[] = [];
    for (let round = -1; round < rounds; round++) {
      const began = performance.now();
      for (let i = 0; i < steps; i++) await train();
      const seconds = (performance.now() - began) / 1000;
      const asEager = await peer.askAtRest<{ seconds: number }>(`eager ${steps}`);
      const asCompiled = await peer.askAtRest<{ seconds: number }>(`compiled ${steps}`);
      if (round < 0) continue; // warm-up
      ours.push(seconds / steps);
      eager.push(asEager.seconds / steps);
      compiled.push(asCompiled.seconds / steps);
    }
    await group!.close();
    const name = `gpt small, batch ${batch}, ${threads} ${threads === 1 ? "thread" : "threads"}`;
    yield { case: name, metric: "step_ms", value: 1000 * median(ours), unit: "ms" };
    yield { case: name, metric: "pytorch_step_ms", value: 1000 * median(eager), unit: "ms" };
    yield { case: name, metric: "compiled_step_ms", value: 1000 * median(compiled), unit: "ms" };
    yield { case: name, metric: "over_pytorch", value: median(eager.map((t, i) => t / ours[i]!)), unit: "ratio" };
    yield { case: name, metric: "over_compile", value: median(compiled.map((t, i) => t / ours[i]!)), unit: "ratio" };
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
  const ours: number[] = [];
  const theirs: number[] = [];
  add();
  for (let round = 0; round < 7; round++) {
    ours.push(add());
    theirs.push((await peer.ask<{ nanoseconds: number }>(`add ${calls}`)).nanoseconds);
  }
  const name = "small add, 4 floats";
  yield { case: name, metric: "op_overhead_ns", value: median(ours), unit: "ns" };
  yield { case: name, metric: "pytorch_op_overhead_ns", value: median(theirs), unit: "ns" };
  yield {
    case: name,
    metric: "op_overhead_over_pytorch",
    value: median(ours.map((t, i) => t / theirs[i]!)),
    unit: "ratio",
  };
}
