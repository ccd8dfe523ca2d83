/**
 * A training step (forward, backward, AdamW) of each model beside PyTorch's, eager and compiled, and one with LoRA
 * beside PEFT's: the same shapes, batch and number of threads, alternating in one run. A ratio above 1 means that we
 * are faster.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { saveModel } from "@terse/checkpoint";
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
import { adamw, useThreads } from "@terse/optimizers";
import { manualSeed, randn, setNumThreads, type Tensor } from "@terse/tensor";
import { labels, maskedTextOf, textOf } from "../batches.ts";
import { inTurns, medianRatio } from "../in-turns.ts";
import { type Measurement, median } from "../measurement.ts";
import { OwnSteps } from "../own-steps.ts";
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
  return {
    name: `bert-tiny, ${rows} rows of ${shape.context} word pieces`,
    create: () => new Bert(shape),
    batch: () => maskedTextOf(rows, shape),
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
  manualSeed(0);
  await using own = new OwnSteps(create(), { optimizer: { algorithm: adamw() }, lr: 1e-4, batch });
  const parameters = own.model.parameterCount();
  const ask = (side: string, steps: number) => peer.askAtRest<Answer>(`${side} ${steps}`);
  if (isSame) {
    const [ours, { loss }] = [await own.take(), await ask("eager", 1)];
    if (Math.abs(ours - loss) > 1e-4 * loss)
      throw new Error(`${name}: begins with a loss of ${ours}, PyTorch's ${loss}`);
  }
  const theirs = async (side: string) => {
    const answer = await ask(side, stepsPerRound);
    if (answer.parameters !== parameters)
      throw new Error(`${name}: PyTorch's model has ${answer.parameters} parameters, ours ${parameters}`);
    return answer.seconds / stepsPerRound;
  };
  const times = await inTurns<string>({
    ours: () => own.seconds(stepsPerRound),
    ...Object.fromEntries(Object.keys(sides.theirs).map((side) => [side, () => theirs(side)])),
  });

  const inCase = { case: `${name}, ${threads} ${threads === 1 ? "thread" : "threads"}` };
  const ours = times["ours"]!;
  yield { ...inCase, metric: sides.ours, value: 1000 * median(ours), unit: "ms" };
  for (const [side, { step }] of Object.entries(sides.theirs))
    yield { ...inCase, metric: step, value: 1000 * median(times[side]!), unit: "ms" };
  for (const [side, { over }] of Object.entries(sides.theirs))
    yield { ...inCase, metric: over, value: medianRatio(times[side]!, ours), unit: "ratio" };
}
