/**
 * `bench convergence`: compares training with one bit and with 32 bits. Trains the small GPT on real text with four workers in one process,
 * on the same tokens for every method. Writes docs/results/convergence.json and the picture beside it.
 */
import { type Group, loopback } from "@terse/collectives";
import { textData } from "@terse/data";
import { Gpt, gptPresets } from "@terse/models";
import { type Algorithm, type ClipBy, distributedLion, lion, lionCub, Optimizer } from "@terse/optimizers";
import { Arena, manualSeed, scope } from "@terse/tensor";
import { evaluate } from "@terse/train/evaluate";
import { learningRate } from "@terse/train/schedule";
import type { Measurement } from "../measurement.ts";
import { lossCurves } from "./loss-curves.ts";

const workers = 4;
const shape = gptPresets.small;
const windows = 128; // of the held-out text
const settings = { steps: 300, batchSize: 4, lr: 3e-4, warmup: 40, final: 0.1, clip: 1, weightDecay: 0.1 };

const { weightDecay } = settings;

/** The methods, with global clipping unless given. "previous" is that of the default recipe; messages then leave while backward runs. */
const methods: Record<string, { create: () => Algorithm; clipBy?: ClipBy }> = {
  "lion, 32 bit": { create: () => lion({ weightDecay }) },
  "lion-cub, 1 bit": { create: () => lionCub({ weightDecay }) },
  "lion-cub, 1 bit, clipped while backward runs": {
    create: () => lionCub({ weightDecay }),
    clipBy: "previous",
  },
  "distributed-lion, majority": { create: () => distributedLion({ weightDecay }) },
  "distributed-lion, average": { create: () => distributedLion({ weightDecay, vote: "average" }) },
};

export interface Curve {
  readonly method: string;
  readonly bytesPerStep: number; // sent by one worker
  readonly points: readonly { step: number; loss: number }[]; // validation, nats per byte
}

export async function* convergence(): AsyncGenerator<Measurement> {
  const curves: Curve[] = [];
  for (const method of Object.keys(methods)) {
    const curve = await run(method);
    curves.push(curve);
    const last = curve.points.at(-1)!.loss;
    yield { case: method, metric: "validation_loss", value: last, unit: "nats/byte" };
    yield { case: method, metric: "sent_per_step", value: curve.bytesPerStep, unit: "bytes" };
    yield { case: method, metric: "loss_over_lion", value: last / curves[0]!.points.at(-1)!.loss, unit: "ratio" };
  }
  lossCurves(curves, { workers, ...settings });
}

async function run(method: string): Promise<Curve> {
  const groups = loopback(workers);
  const [first] = await Promise.all(groups.map((group) => worker(method, group)));
  await Promise.all(groups.map((group) => group.close()));
  return first!;
}

async function worker(method: string, group: Group): Promise<Curve> {
  const { create, clipBy = "global" } = methods[method]!;
  const { steps, batchSize, clip } = settings;
  manualSeed(0);
  const model = new Gpt(shape);
  const arena = new Arena(model);
  const data = await textData({ blockSize: shape.context, batchSize, rank: group.rank, ranks: group.size });
  const optimizer = new Optimizer(arena, group, {
    algorithm: create(),
    clip,
    clipBy,
    overlap: "auto",
    compareEvery: 100,
  });
  const points: { step: number; loss: number }[] = [];
  for (let step = 0; step < steps; step++) {
    if (step % 20 === 0) points.push({ step, loss: (await evaluate(model, data, windows, group))["loss"]! });
    await scope(async () => {
      arena.zeroGradients();
      const [batch] = await data.next();
      const loss = model.loss(batch!);
      const lr = learningRate(step, settings);
      await optimizer.begin({ lr, loss: loss.item() });
      await loss.backward();
      await optimizer.step({ lr, loss: loss.item() });
    });
    if (group.rank === 0 && process.stderr.isTTY)
      process.stderr.write(`\r\x1b[2K${method}: step ${step + 1} of ${steps}`);
  }
  if (group.rank === 0 && process.stderr.isTTY) process.stderr.write("\r\x1b[2K");
  points.push({ step: steps, loss: (await evaluate(model, data, windows, group))["loss"]! });
  return { method, bytesPerStep: optimizer.bytesSent(), points };
}
