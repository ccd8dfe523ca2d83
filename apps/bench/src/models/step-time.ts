/**
 * A training step (forward, backward, AdamW) of each model beside PyTorch's, eager and compiled: the same shapes, batch
 * and number of threads, alternating in one run. A ratio above 1 means that we are faster.
 */

import { loopback } from "@terse/collectives";
import {
  Bert,
  bertPresets,
  Gpt,
  gptPresets,
  Llama,
  llamaPresets,
  type Model,
  ResNet,
  resnetPresets,
  Vit,
  vitPresets,
} from "@terse/models";
import { availableProcessors } from "@terse/native-loader";
import { adamw, Optimizer, useThreads } from "@terse/optimizers";
import { Arena, full, manualSeed, ones, rand, randint, randn, scope, setNumThreads, where } from "@terse/tensor";
import { type Measurement, median } from "../measurement.ts";
import { Peer } from "../peer.ts";

export interface Compared {
  /** What the case is called, and how many rows a step has. */
  readonly name: string;
  readonly create: () => Model;
  readonly batch: () => object;
  /** The constructor of peers/model_steps.py, and its options. */
  readonly peer: readonly [constructor: string, options: object];
  readonly stepsPerRound: number;
}

const labels = (count: number, classes: number) => randint(0, classes, [count]);

/** A batch of a language model. */
function textOf(rows: number, { vocabulary, context }: { vocabulary: number; context: number }) {
  const tokens = randint(0, vocabulary, [rows, context + 1]);
  const from = (begin: number) => tokens.narrow(1, begin, context).contiguous();
  return { tokens: from(0), next: from(1) };
}

function gpt(): Compared {
  const [shape, rows] = [gptPresets.small, 4];
  return {
    name: `gpt small, ${rows} rows of ${shape.context} bytes`,
    create: () => new Gpt(shape),
    batch: () => textOf(rows, shape),
    peer: ["gpt", { rows, ...shape }],
    stepsPerRound: 4,
  };
}

function llama(): Compared {
  const [shape, rows] = [llamaPresets.small, 4];
  return {
    name: `llama small, ${rows} rows of ${shape.context} bytes`,
    create: () => new Llama(shape),
    batch: () => textOf(rows, shape),
    peer: ["llama", { rows, config: new Llama(shape).config }],
    stepsPerRound: 4,
  };
}

function resnet18(): Compared {
  const [rows, size, classes] = [8, 32, 10];
  return {
    name: `resnet18 for CIFAR, ${rows} images of ${size} × ${size}`,
    create: () => new ResNet(resnetPresets["resnet18-cifar"]),
    batch: () => ({ images: randn([rows, 3, size, size]), labels: labels(rows, classes) }),
    peer: ["resnet18", { rows, size, classes }],
    stepsPerRound: 2,
  };
}

function deitTiny(): Compared {
  const [rows, size, classes] = [4, 224, 1000];
  return {
    name: `deit-tiny, ${rows} images of ${size} × ${size}`,
    create: () => new Vit(vitPresets["deit-tiny"]),
    batch: () => ({ images: randn([rows, 3, size, size]), labels: labels(rows, classes) }),
    peer: ["vit", { rows, name: "deit_tiny_patch16_224", size, classes }],
    stepsPerRound: 2,
  };
}

function bertTiny(): Compared {
  const rows = 8;
  const { dropout: _, ...shape } = { ...bertPresets.tiny, context: 128 };
  const { context, vocabulary } = shape;
  return {
    name: `bert-tiny, ${rows} rows of ${context} word pieces`,
    create: () => new Bert(shape),
    batch: () => {
      const tokens = randint(0, vocabulary, [rows, context]);
      const predicted = rand([rows, context]).lt(0.15);
      return {
        tokens,
        segments: randint(0, 2, [rows, context]),
        mask: ones([rows, context], { dtype: "i64" }),
        labels: where(predicted, tokens, full([], -100, { dtype: "i64" })),
        nextSentence: labels(rows, 2),
      };
    },
    peer: ["bert", { rows, ...shape }],
    stepsPerRound: 4,
  };
}

export const compared = { gpt, llama, resnet18, "deit-tiny": deitTiny, "bert-tiny": bertTiny };

const rounds = 7;

export async function* stepTime(of: Compared): AsyncGenerator<Measurement> {
  for (const threads of new Set([1, availableProcessors()])) yield* withThreads(of, threads);
}

async function* withThreads({ name, create, batch, peer: given, stepsPerRound }: Compared, threads: number) {
  setNumThreads(threads);
  useThreads(threads);
  await using peer = await Peer.start("model_steps.py", [given[0], JSON.stringify(given[1]), String(threads)], {
    OMP_NUM_THREADS: String(threads),
  });
  const [group] = loopback(1);
  manualSeed(0);
  const model = create();
  const arena = new Arena(model);
  await using optimizer = new Optimizer(arena, group!, { algorithm: adamw(), compareEvery: 0 });
  const train = () =>
    scope(async () => {
      arena.replaceGradients();
      const loss = model.loss(batch());
      await loss.backward();
      await optimizer.step({ lr: 1e-4, loss: loss.item() });
    });

  const [ours, eager, compiled]: number[][] = [[], [], []];
  const ask = (side: string) => peer.askAtRest<{ seconds: number; parameters: number }>(`${side} ${stepsPerRound}`);
  for (let round = -1; round < rounds; round++) {
    const began = performance.now();
    for (let i = 0; i < stepsPerRound; i++) await train();
    const mine = (performance.now() - began) / 1000;
    const asEager = await ask("eager");
    if (asEager.parameters !== model.parameterCount())
      throw new Error(`${name}: PyTorch's model has ${asEager.parameters} parameters, ours ${model.parameterCount()}`);
    const asCompiled = await ask("compiled");
    if (round < 0) continue; // warm-up
    ours!.push(mine / stepsPerRound);
    eager!.push(asEager.seconds / stepsPerRound);
    compiled!.push(asCompiled.seconds / stepsPerRound);
  }
  await group!.close();
  model.dispose();

  const inCase = { case: `${name}, ${threads} ${threads === 1 ? "thread" : "threads"}` };
  const over = (others: readonly number[]) => median(others.map((t, i) => t / ours![i]!));
  yield { ...inCase, metric: "step_ms", value: 1000 * median(ours!), unit: "ms" };
  yield { ...inCase, metric: "pytorch_step_ms", value: 1000 * median(eager!), unit: "ms" };
  yield { ...inCase, metric: "compiled_step_ms", value: 1000 * median(compiled!), unit: "ms" };
  yield { ...inCase, metric: "over_pytorch", value: over(eager!), unit: "ratio" };
  yield { ...inCase, metric: "over_compile", value: over(compiled!), unit: "ratio" };
}
