/**
 * What a recipe would need, on any number of ranks, without its memory: the model and the state of its optimizer are
 * made on libtorch's device "meta", where tensors have shapes only, and the other ranks do not exist. Parameters,
 * memory and bytes are then counted by the code that a training runs; only times are predictions.
 */

import { elements } from "@terse/checkpoint";
import { type Group, type Link, linkText } from "@terse/collectives";
import { datasets } from "@terse/data";
import { type Measured, memoryOfRound, noComputing } from "@terse/exchange";
import type { Model } from "@terse/models";
import { type HostGroups, LocalSteps, layoutOf, type TrainingOptimizer } from "@terse/optimizers";
import { Arena, type Segment, withDevice } from "@terse/tensor";
import { buildModel, makeOptimizer, remarksOnModel } from "../build.ts";
import { hostsOf } from "../hosts-of-ranks.ts";
import { methodsInRun } from "../methods-in-run.ts";
import { withOwnDataPath } from "../own-data-path.ts";
import { parameterCounts } from "../parameter-counts.ts";
import type { Recipe } from "../recipe.ts";
import { absentRanks } from "./absent-ranks.ts";
import { matrixSpeed } from "./matrix-speed.ts";
import { measuredOf } from "./measured-of.ts";
import { type Phase, phasesOf } from "./phases.ts";
import { type StepTime, timeOf } from "./step-time.ts";

export interface Plan {
  /** The recipe with all that it leaves open; and a line for each assumption and for each key without an effect. */
  readonly recipe: Recipe;
  readonly remarks: readonly string[];
  readonly parameters: number;
  readonly trained: number;
  readonly byRole: ReadonlyMap<Segment["role"], number>;
  /** Bytes on each rank, without activations and what the optimizer computes in a step. */
  readonly memory: {
    readonly parameters: number; // that are trained
    readonly frozen: number; // weights beside an adapter
    readonly gradients: number;
    readonly state: number;
    readonly average: number;
    readonly exchange: number; // at most, while all buckets are under way; besides the vectors that are exchanged
  };
  /** Payload that a rank sends; and what 32-bit data parallel would send. */
  readonly phases: readonly (Phase & { readonly time?: StepTime })[];
  readonly denseBytes: number;
  /** Rows and tokens of a step, of all ranks. */
  readonly rows: number;
  readonly tokens: number | undefined;
  /** Undefined without a link: no time is predicted then. */
  readonly speed: Speed | undefined;
  /** The link, or the one by which the recipe chooses its vote scheme. */
  readonly measured: Measured | undefined;
  readonly buckets: number;
  /** Why no message leaves while backward runs. */
  readonly obstacle: string | undefined;
}

/**
 * Operations per second of a rank; `measured`: on this machine. Others stand for another machine, so times are without
 * codecs then, whose speed is that of this machine.
 */
export interface Speed {
  readonly flops: number;
  readonly measured: boolean;
}

// Operations for each weight and token, or place of a filter: 2 forward, 4 backward. Kaplan et al. 2020, §2.1,
// https://arxiv.org/abs/2001.08361
const operationsPerWeight = 6;
const operationsPerFrozenWeight = 4; // which has no gradient of its own

/** Operations for each token in the products with the weights of a model, and with those of its adapter. */
function operationsOf(model: Model): number {
  const [trained, frozen] = [true, false].map((isTrained) => {
    const all = model.parameters().filter(({ requiresGrad }) => requiresGrad === isTrained);
    const count = (role: Segment["role"]) =>
      all.reduce((sum, parameter) => sum + (parameter.role === role ? parameter.length : 0), 0);
    return count("matrix") + (count("head") || count("embedding"));
  }) as [number, number];
  return operationsPerWeight * trained + operationsPerFrozenWeight * frozen;
}

const unknownLink: Link = { bitsPerSecond: 1e9, latency: 50e-6 };

/** `link` is every rank's. Throws `OptionsError` where the recipe cannot run on so many ranks. */
export async function planOf(
  given: Recipe,
  ranks: number,
  { link, speed: known }: { link?: Link; speed?: Speed } = {},
): Promise<Plan> {
  const { planned, assumptions, periods } = methodsInRun(given);
  const recipe = { ...given, ...planned, device: "cpu" } as const;
  const assumed = assumptions.map(({ path, problem }) => `${path} ${problem}`);
  const chosen = recipe.exchange.vote === "auto"; // by the link
  if (chosen && link === undefined)
    assumed.push(`exchange.vote is auto: chosen for a link of ${linkText(unknownLink)}; give --link`);
  const measured = chosen || link ? await measuredOf(link ?? unknownLink) : undefined;
  const { model, arena, optimizer } = shapesOf(recipe, absentRanks(ranks, link), measured);
  const { segments } = arena;
  const counts = parameterCounts(model);
  const byRole = new Map<Segment["role"], number>();
  for (const { role, length } of segments) byRole.set(role, (byRole.get(role) ?? 0) + length);

  const rows = ranks * recipe.accumulate * recipe.data.batchSize;
  const { blockSize = model.context, ...dataOptions } = withOwnDataPath(recipe).data as { blockSize?: number };
  const speed = link && (known ?? { flops: matrixSpeed(), measured: true });
  const multiplications = model.multiplications?.(datasets[recipe.data.name].facts(dataOptions));
  const operationsOfRow =
    multiplications === undefined
      ? operationsOf(model) * (blockSize ?? 1)
      : (recipe.adapter ? operationsPerFrozenWeight : operationsPerWeight) * multiplications;
  const operations = (operationsOfRow * rows) / ranks;
  const phases = phasesOf(recipe.steps, (step) => optimizer.bytesSent(step), periods).map((phase) => ({
    ...phase,
    ...(speed &&
      measured && {
        time: timeOf({ step: phase.from, bytes: phase.bytes }, optimizer, recipe, {
          ranks,
          measured: speed.measured ? measured : { ...measured, codec: noComputing },
          computing: operations / speed.flops,
        }),
      }),
  }));
  const firsts = phases.map(({ from }) => from);
  const sharing = Math.ceil(ranks / (recipe.local?.ranksPerHost ?? 1)); // ranks, or hosts that share a round
  return {
    recipe,
    remarks: [...remarksOnModel(recipe, arena, optimizer), ...assumed],
    ...counts,
    byRole,
    memory: await memoryOf(model, arena, optimizer, {
      ranks: sharing,
      steps: firsts,
      average: recipe.average !== undefined,
    }),
    phases,
    denseBytes: optimizer.denseBytes,
    rows,
    tokens: blockSize === undefined ? undefined : rows * blockSize,
    speed,
    measured,
    buckets: optimizer.requests(phases.findLast(({ bytes }) => bytes > 0)?.from ?? 0).length,
    obstacle: recipe.overlap === "off" ? "overlap is off" : optimizer.obstacle,
  };
}

/** Model and optimizer of a recipe, with shapes only. */
export function shapesOf(recipe: Recipe, group: Group, measured: Measured | undefined) {
  return withDevice("meta", () => {
    const model = buildModel(recipe);
    const arena = new Arena(model);
    const stepTogether = absentHosts(recipe, group);
    return { model, arena, optimizer: makeOptimizer(recipe, arena, group, { measured, stepTogether }) };
  });
}

/** The groups of rank 0 of local steps within hosts of so many ranks. */
function absentHosts({ local }: Recipe, { size, emulatedLink }: Group): HostGroups | undefined {
  if (local?.within !== "host" || local.ranksPerHost === undefined) return undefined;
  const layout = layoutOf(hostsOf(size, local.ranksPerHost), 0);
  const inside = absentRanks(layout.ranksHere);
  return { layout, inside, handOut: inside, between: absentRanks(layout.hosts, emulatedLink) };
}

/** The memory of a rank. Messages are those of `ranks`, and count as in the step of `steps` that takes most for them. */
export async function memoryOf(
  model: Model,
  arena: Arena,
  optimizer: TrainingOptimizer,
  { ranks, steps, average }: { ranks: number; steps: readonly number[]; average: boolean },
): Promise<Plan["memory"]> {
  const { tensors } = await optimizer.state();
  // A save has each rank's own parameters besides its state; in memory the model has them.
  const state = [...tensors].filter(([name]) => !name.startsWith("island."));
  const copies = optimizer instanceof LocalSteps ? optimizer.copyBytes : 0;
  return {
    parameters: 4 * arena.parameters.length,
    frozen: model
      .parameters()
      .reduce((sum, { requiresGrad, length, dtype }) => sum + (requiresGrad ? 0 : length * elements[dtype].bytes), 0),
    gradients: 4 * arena.gradients.length,
    average: average ? 4 * arena.parameters.length : 0,
    state: copies + state.reduce((sum, [, { length }]) => sum + 4 * length, 0),
    exchange: ranks === 1 ? 0 : Math.max(...steps.map((step) => memoryOfMessages(optimizer, step, ranks))),
  };
}

function memoryOfMessages(optimizer: TrainingOptimizer, step: number, ranks: number): number {
  const parts = optimizer
    .requests(step)
    .map(({ rounds }) => Math.max(0, ...rounds.map((round) => memoryOfRound(round, ranks, 0, optimizer.schemes))));
  return parts.reduce((sum, bytes) => sum + bytes, 0);
}
