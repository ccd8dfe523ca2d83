/**
 * A training step (forward, backward, AdamW) of each model beside PyTorch's, eager and compiled, and one with LoRA
 * beside PEFT's: the same shapes, batch and number of threads, alternating in one run. A ratio above 1 means that we
 * are faster.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { saveModel } from "@terse/checkpoint";
import { loopback } from "@terse/collectives";
import {
  Bert,
  bertPresets,
  Gpt,
  gptPresets,
  Llama,
  Lora,
  llamaPresets,
  type Model,
  ResNet,
  resnetPresets,
  Vit,
  vitPresets,
} from "@terse/models";
import { availableProcessors } from "@terse/native-loader";
import { adamw, Optimizer, useThreads } from "@terse/optimizers";
import {
  Arena,
  full,
  manualSeed,
  ones,
  rand,
  randint,
  randn,
  scope,
  setNumThreads,
  type Tensor,
  where,
} from "@terse/tensor";
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
  /** The peer's ways to take a step, and what the measurements are called. */
  readonly sides?: Sides;
  /** The peer has the same weights and rows, and so begins with the same loss. */
  readonly isSame?: boolean;
  dispose?(): void;
}

interface Sides {
  readonly ours: string;
  readonly theirs: Readonly<Record<string, { readonly step: string; readonly over: string }>>;
}

const eagerAndCompiled: Sides = {
  ours: "step_ms",
  theirs: {
    eager: { step: "pytorch_step_ms", over: "over_pytorch" },
    compiled: { step: "compiled_step_ms", over: "over_compile" },
  },
};

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

/** An adapter of the default targets on a base of random weights, which PEFT's side reads from a file. */
async function llamaWithLora(): Promise<Compared> {
  const [shape, rows, targets] = [llamaPresets.small, 4, ["q_proj", "v_proj"]];
  const [rank, alpha] = [8, 16];
  const folder = mkdtempSync(join(tmpdir(), "terse-bench-"));
  const create = () => {
    manualSeed(0);
    return new Llama(shape);
  };
  const base = create();
  await saveModel(folder, base.stateDict(), { model_type: "llama", ...base.config });
  base.dispose();
  const text = textOf(rows, shape);
  const valuesOf = async (tensor: Tensor) => [...((await tensor.toTypedArray()) as BigInt64Array)].map(Number);
  const [tokens, next] = [await valuesOf(text.tokens), await valuesOf(text.next)];
  return {
    name: `llama small with LoRA of rank ${rank} on ${targets.join(" and ")}, ${rows} rows of ${shape.context} bytes`,
    create: () => {
      const model = create();
      new Lora(model, { rank, alpha, rslora: false, dropout: 0, targets, modulesToSave: [] });
      return model;
    },
    batch: () => text,
    peer: ["lora", { folder, rows, tokens, following: next, rank, alpha, targets }],
    stepsPerRound: 4,
    sides: { ours: "lora_step_ms", theirs: { eager: { step: "peft_step_ms", over: "lora_over_peft" } } },
    isSame: true,
    dispose: () => rmSync(folder, { recursive: true, force: true }),
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

/** What each setting compares. */
export const compared: Readonly<Record<string, readonly (() => Compared | Promise<Compared>)[]>> = {
  gpt: [gpt],
  llama: [llama, llamaWithLora],
  resnet18: [resnet18],
  "deit-tiny": [deitTiny],
  "bert-tiny": [bertTiny],
};

const rounds = 7;

export async function* stepTime(
  settings: readonly (() => Compared | Promise<Compared>)[],
): AsyncGenerator<Measurement> {
  for (const setting of settings) {
    const of = await setting();
    try {
      for (const threads of new Set([1, availableProcessors()])) yield* withThreads(of, threads);
    } finally {
      of.dispose?.();
    }
  }
}

interface Answer {
  readonly seconds: number;
  readonly parameters: number;
  readonly loss: number;
}

async function* withThreads(
  { name, create, batch, peer: given, stepsPerRound, sides = eagerAndCompiled, isSame }: Compared,
  threads: number,
) {
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
      const value = loss.item();
      await optimizer.step({ lr: 1e-4, loss: value });
      return value;
    });
  const ask = (side: string, steps: number) => peer.askAtRest<Answer>(`${side} ${steps}`);
  if (isSame) {
    const [ours, { loss }] = [await train(), await ask("eager", 1)];
    if (Math.abs(ours - loss) > 1e-4 * loss)
      throw new Error(`${name}: begins with a loss of ${ours}, PyTorch's ${loss}`);
  }

  const ours: number[] = [];
  const theirs = Object.entries(sides.theirs).map(([side, metrics]) => ({ side, metrics, times: [] as number[] }));
  for (let round = -1; round < rounds; round++) {
    const began = performance.now();
    for (let i = 0; i < stepsPerRound; i++) await train();
    const mine = (performance.now() - began) / 1000;
    if (round >= 0) ours.push(mine / stepsPerRound); // the first is warm-up
    for (const { side, times } of theirs) {
      const { seconds, parameters } = await ask(side, stepsPerRound);
      if (parameters !== model.parameterCount())
        throw new Error(`${name}: PyTorch's model has ${parameters} parameters, ours ${model.parameterCount()}`);
      if (round >= 0) times.push(seconds / stepsPerRound);
    }
  }
  await group!.close();
  model.dispose();

  const inCase = { case: `${name}, ${threads} ${threads === 1 ? "thread" : "threads"}` };
  const over = (others: readonly number[]) => median(others.map((t, i) => t / ours[i]!));
  yield { ...inCase, metric: sides.ours, value: 1000 * median(ours), unit: "ms" };
  for (const { metrics, times } of theirs)
    yield { ...inCase, metric: metrics.step, value: 1000 * median(times), unit: "ms" };
  for (const { metrics, times } of theirs) yield { ...inCase, metric: metrics.over, value: over(times), unit: "ratio" };
}
