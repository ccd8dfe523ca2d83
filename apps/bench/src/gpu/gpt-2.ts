/**
 * `gpt-124m`: GPT-2's size on a GPU, forward and backward in bf16, beside PyTorch's eager and compiled: tokens in a
 * second, and the share of the GPU's peak that the model's own operations take (model FLOPs utilisation; Chowdhery et
 * al. 2022, Appendix B, https://arxiv.org/abs/2204.02311).
 */
import { loopback } from "@terse/collectives";
import { Gpt, type GptShape, gptPresets } from "@terse/models";
import { adamw, Optimizer } from "@terse/optimizers";
import { Arena, manualSeed, randint, scope } from "@terse/tensor";
import { forwardIn } from "@terse/train/precision";
import { type Measurement, median } from "../measurement.ts";
import { Peer } from "../peer.ts";
import { openGpu } from "./open-gpu.ts";

const [rows, rounds, stepsPerRound] = [16, 7, 4];

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
  const [group] = loopback(1);
  manualSeed(0);
  const model = new Gpt(shape).to({ device });
  const arena = new Arena(model);
  await using optimizer = new Optimizer(arena, group!, { algorithm: adamw(), compareEvery: 0 });
  const forward = forwardIn({ precision, device });
  const train = () =>
    scope(async () => {
      const tokens = randint(0, shape.vocabulary, [rows, shape.context + 1], { device });
      const from = (begin: number) => tokens.narrow(1, begin, shape.context).contiguous();
      arena.replaceGradients();
      const loss = forward(() => model.loss({ tokens: from(0), next: from(1) }));
      await loss.backward();
      await optimizer.step({ lr: 1e-4, loss: loss.item() }); // item waits for the device, as PyTorch's side does
    });

  interface Answer {
    readonly seconds: number;
    readonly parameters: number;
    readonly device: string;
  }
  const sides: Record<"ours" | "eager" | "compiled", number[]> = { ours: [], eager: [], compiled: [] };
  let name = device;
  for (let round = -1; round < rounds; round++) {
    const began = performance.now();
    for (let i = 0; i < stepsPerRound; i++) await train();
    const mine = (performance.now() - began) / 1000;
    const eager = await peer.ask<Answer>(`eager ${stepsPerRound}`);
    const compiled = await peer.ask<Answer>(`compiled ${stepsPerRound}`);
    name = eager.device;
    if (eager.parameters !== model.parameterCount())
      throw new Error(`PyTorch's model has ${eager.parameters} parameters, ours ${model.parameterCount()}`);
    if (round < 0) continue; // warm-up
    sides.ours.push(mine);
    sides.eager.push(eager.seconds);
    sides.compiled.push(compiled.seconds);
  }
  await group!.close();
  const operations = operationsPerToken(model.parameterCount(), shape);
  model.dispose();

  const inCase = { case: `gpt ${shape.layers}×${shape.width}, ${rows} rows of ${shape.context}, bf16, ${name}` };
  const tokens = stepsPerRound * rows * shape.context;
  const over = (others: readonly number[]) => median(others.map((seconds, i) => seconds / sides.ours[i]!));
  for (const [side, seconds] of Object.entries(sides)) {
    const rate = tokens / median(seconds);
    yield { ...inCase, metric: `tokens_per_second_${side}`, value: rate, unit: "tokens/s" };
    const peak = Object.entries(peaks).find(([part]) => name.includes(part))?.[1];
    if (peak) yield { ...inCase, metric: `mfu_${side}`, value: (rate * operations) / peak, unit: "fraction" };
  }
  yield { ...inCase, metric: "over_pytorch", value: over(sides.eager), unit: "ratio" };
  yield { ...inCase, metric: "over_compile", value: over(sides.compiled), unit: "ratio" };
}

/**
 * 6 for each weight, and 12 for each layer, dimension and token before it: products of queries with keys, and of
 * weights with values.
 */
export const operationsPerToken = (parameters: number, { layers, width, context }: GptShape): number =>
  6 * parameters + 12 * layers * width * context;
