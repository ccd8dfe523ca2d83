/**
 * Does one bit train as well? The small GPT on real text, four virtual workers in one process, the same tokens for every
 * method. Writes docs/results/convergence.{json,svg} when asked for the record.
 */
import { type Group, loopback } from "@terse/collectives";
import { type TextData, textData } from "@terse/data";
import { Gpt, gptPresets } from "@terse/models";
import { type Algorithm, distributedLion, lion, lionCub, Optimizer } from "@terse/optimizers";
import { Arena, manualSeed, noGrad, scope } from "@terse/tensor";
import type { Measurement } from "../measurement.ts";
import { lossCurves } from "./loss-curves.ts";

const workers = 4;
const shape = gptPresets.small;
const settings = { steps: 400, batchSize: 2, lr: 5e-4, warmup: 40, final: 0.1, clip: 1, weightDecay: 0.1 };

const methods: Record<string, () => Algorithm> = {
  "lion, 32 bit": () => lion({ weightDecay: settings.weightDecay }),
  "lion-cub, 1 bit": () => lionCub({ weightDecay: settings.weightDecay }),
  "distributed-lion, majority": () => distributedLion({ weightDecay: settings.weightDecay }),
  "distributed-lion, average": () => distributedLion({ weightDecay: settings.weightDecay, vote: "average" }),
};

export interface Curve {
  readonly method: string;
  readonly bytesPerStep: number; // sent by one worker
  readonly points: readonly { step: number; loss: number }[]; // validation, nats per byte
}

export async function* convergence(): AsyncGenerator<Measurement> {
  const curves: Curve[] = [];
  for (const [method, create] of Object.entries(methods)) {
    const curve = await run(method, create);
    curves.push(curve);
    const last = curve.points.at(-1)!.loss;
    yield { case: method, metric: "validation_loss", value: last, unit: "nats/byte" };
    yield { case: method, metric: "sent_per_step", value: curve.bytesPerStep, unit: "bytes" };
    yield { case: method, metric: "loss_over_lion", value: last / curves[0]!.points.at(-1)!.loss, unit: "ratio" };
  }
  lossCurves(curves, { workers, ...settings });
}

async function run(method: string, create: () => Algorithm): Promise<Curve> {
  const groups = loopback(workers);
  const [first] = await Promise.all(groups.map((group) => worker(method, create(), group)));
  await Promise.all(groups.map((group) => group.close()));
  return first!;
}

async function worker(method: string, algorithm: Algorithm, group: Group): Promise<Curve> {
  const { steps, batchSize, lr, clip } = settings;
  manualSeed(0);
  const model = new Gpt(shape);
  const arena = new Arena(model);
  const data = await textData({ blockSize: shape.context, batchSize, rank: group.rank, ranks: group.size });
  const optimizer = new Optimizer(arena, group, { algorithm, clip, compareEvery: 100 });
  const points: { step: number; loss: number }[] = [];
  for (let step = 0; step < steps; step++) {
    if (step % 20 === 0) points.push({ step, loss: await evaluate(model, data, group) });
    await scope(async () => {
      arena.zeroGradients();
      const [batch] = await data.next();
      const loss = model.loss(batch!.tokens, batch!.next);
      await loss.backward();
      await optimizer.step({ lr: lr * factor(step), loss: loss.item() });
    });
    if (group.rank === 0 && process.stderr.isTTY)
      process.stderr.write(`\r\x1b[2K${method}: step ${step + 1} of ${steps}`);
  }
  if (group.rank === 0 && process.stderr.isTTY) process.stderr.write("\r\x1b[2K");
  points.push({ step: steps, loss: await evaluate(model, data, group) });
  return { method, bytesPerStep: optimizer.bytesSent, points };
}

/** Linear warm-up, then a cosine to `final`. */
function factor(t: number): number {
  const { steps, warmup, final } = settings;
  if (t < warmup) return (t + 1) / warmup;
  return final + ((1 - final) * (1 + Math.cos((Math.PI * (t - warmup)) / (steps - 1 - warmup)))) / 2;
}

async function evaluate(model: Gpt, data: TextData, group: Group): Promise<number> {
  const sum = new Float64Array(2);
  for (const { tokens, next } of data.validation({ windows: 128, sharded: true }))
    scope(() => {
      const rows = tokens.shape[0]!;
      sum[0]! += rows * noGrad(() => model.loss(tokens, next).item());
      sum[1]! += rows;
      tokens.dispose();
      next.dispose();
    });
  await group.allReduce(sum);
  return sum[0]! / sum[1]!;
}
