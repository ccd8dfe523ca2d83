/**
 * `gpt-124m`: GPT-2's size on a GPU, forward and backward in bf16, beside PyTorch's eager and compiled: tokens in a
 * second, and the share of the GPU's peak that the model's own operations take (model FLOPs utilisation; Chowdhery et
 * al. 2022, Appendix B, https://arxiv.org/abs/2204.02311).
 */
import { Gpt, type GptShape, gptPresets } from "@terse/models";
import { adamw } from "@terse/optimizers";
import { manualSeed } from "@terse/tensor";
import { forwardIn } from "@terse/train/precision";
import { textOf } from "../batches.ts";
import { inTurns, medianRatio } from "../in-turns.ts";
import { type Measurement, median } from "../measurement.ts";
import { OwnSteps } from "../own-steps.ts";
import { Peer } from "../peer.ts";
import { openGpu } from "./open-gpu.ts";

const [rows, stepsPerRound] = [16, 4];

/** Operations a second in bf16 with dense matrices, by a part of the device's name, from NVIDIA's data sheets. */
const peaks: Readonly<Record<string, number>> = { H100: 989e12, H200: 989e12, A100: 312e12 };

export async function* gpt2(): AsyncGenerator<Measurement> {
  const device = openGpu("gpt-124m");
  if (device !== undefined) yield* beside(device, gptPresets["124M"]);
}

/** Exported for processors without a GPU: device "cpu" tries the same code with a small shape. */
export async function* beside(device: string, shape: GptShape): AsyncGenerator<Measurement> {
  const precision = "bf16";
  const peerOptions = JSON.stringify({ rows, ...shape });
  await using peer = await Peer.start("model_steps.py", ["gpt", peerOptions, "1", device, precision]);
  manualSeed(0);
  await using own = new OwnSteps(new Gpt(shape).to({ device }), {
    optimizer: { algorithm: adamw() },
    lr: 1e-4,
    batch: () => textOf(rows, shape, device),
    forward: forwardIn({ precision, device }),
  });
  const parameters = own.model.parameterCount();

  interface Answer {
    readonly seconds: number;
    readonly parameters: number;
    readonly device: string;
  }
  let name = device;
  const theirs = async (side: string) => {
    const answer = await peer.ask<Answer>(`${side} ${stepsPerRound}`);
    if (answer.parameters !== parameters)
      throw new Error(`PyTorch's model has ${answer.parameters} parameters, ours ${parameters}`);
    name = answer.device;
    return answer.seconds / stepsPerRound;
  };
  const sides = await inTurns({
    ours: () => own.seconds(stepsPerRound),
    eager: () => theirs("eager"),
    compiled: () => theirs("compiled"),
  });
  const operations = operationsPerToken(parameters, shape);

  const inCase = { case: `gpt ${shape.layers}×${shape.width}, ${rows} rows of ${shape.context}, bf16, ${name}` };
  for (const [side, seconds] of Object.entries(sides)) {
    const rate = (rows * shape.context) / median(seconds);
    yield { ...inCase, metric: `tokens_per_second_${side}`, value: rate, unit: "tokens/s" };
    const peak = Object.entries(peaks).find(([part]) => name.includes(part))?.[1];
    if (peak) yield { ...inCase, metric: `mfu_${side}`, value: (rate * operations) / peak, unit: "fraction" };
  }
  yield { ...inCase, metric: "over_pytorch", value: medianRatio(sides.eager, sides.ours), unit: "ratio" };
  yield { ...inCase, metric: "over_compile", value: medianRatio(sides.compiled, sides.ours), unit: "ratio" };
}

/**
 * 6 for each weight, and 12 for each layer, dimension and token before it: products of queries with keys, and of
 * weights with values.
 */
export const operationsPerToken = (parameters: number, { layers, width, context }: GptShape): number =>
  6 * parameters + 12 * layers * width * context;
