/**
 * What a recipe would need, on any number of ranks, without its memory: the model and the state of its optimizer are made on libtorch's
 * device "meta", where tensors have shapes only, and the other ranks do not exist. Parameters, memory and bytes are then counted by the
 * code that a training runs; only times are predictions.
 */
import { type Group, type Link, linkText, loopback } from "@terse/collectives";
import { datasets } from "@terse/data";
import {
  bytesOfRound,
  type CodecCost,
  type LinkCost,
  type Measured,
  measureLink,
  memoryOfRound,
  predictRound,
  returningShare,
} from "@terse/exchange";
import type { Optimizer } from "@terse/optimizers";
import { Arena, type Segment, withDevice } from "@terse/tensor";
import { buildModel, makeOptimizer, remarksOnModel } from "../build.ts";
import { methodsInRun } from "../methods-in-run.ts";
import { withOwnDataPath } from "../own-data-path.ts";
import type { Recipe } from "../recipe.ts";
import { absentRanks } from "./absent-ranks.ts";
import { matrixSpeed } from "./matrix-speed.ts";
import { type Phase, phasesOf } from "./phases.ts";

export interface Plan {
  /** The recipe with what it leaves open, and what is assumed for that or changes nothing, a line each. */
  readonly recipe: Recipe;
  readonly remarks: readonly string[];
  readonly parameters: number;
  readonly byRole: ReadonlyMap<Segment["role"], number>;
  /** Bytes on each rank, without activations and what the optimizer computes in a step. */
  readonly memory: {
    readonly parameters: number;
    readonly gradients: number;
    readonly state: number;
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

/** Operations that a rank does in a second; `measured`: on this machine. */
export interface Speed {
  readonly flops: number;
  readonly measured: boolean;
}

/** Seconds of a step, predicted. */
export interface StepTime {
  readonly computing: number; // forward and backward
  readonly messages: number; // all of them, one after the other
  readonly exposed: number; // of them, after backward has ended
}

const operationsPerWeight = 6; // and token, or place of a filter: 2 forward, 4 backward; Kaplan et al. 2020, §2.1, https://arxiv.org/abs/2001.08361

const unknownLink: Link = { bitsPerSecond: 1e9, latency: 50e-6 };

/** `link`: of every rank. Throws `OptionsError` where the recipe cannot run on so many ranks. */
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
  const parameters = model.parameterCount();
  const byRole = new Map<Segment["role"], number>();
  for (const { role, length } of segments) byRole.set(role, (byRole.get(role) ?? 0) + length);

  const rows = ranks * recipe.accumulate * recipe.data.batchSize;
  const { blockSize = model.context, ...dataOptions } = withOwnDataPath(recipe).data as { blockSize?: number };
  const speed = link && (known ?? { flops: matrixSpeed(), measured: true });
  const weights = (byRole.get("matrix") ?? 0) + (byRole.get("head") ?? byRole.get("embedding") ?? 0);
  const multiplications =
    model.multiplications?.(datasets[recipe.data.name].facts(dataOptions)) ?? weights * (blockSize ?? 1);
  const operations = (operationsPerWeight * multiplications * rows) / ranks;
  const phases = phasesOf(recipe.steps, (step) => optimizer.bytesSent(step), periods).map((phase) => ({
    ...phase,
    ...(speed &&
      measured && {
        time: timeOf({ step: phase.from, bytes: phase.bytes }, optimizer, recipe, {
          ranks,
          measured,
          computing: operations / speed.flops,
        }),
      }),
  }));
  const firsts = phases.map(({ from }) => from);
  return {
    recipe,
    remarks: [...remarksOnModel(recipe, arena, optimizer), ...assumed],
    parameters,
    byRole,
    memory: await memoryOf(arena, optimizer, { ranks, steps: firsts }),
    phases,
    denseBytes: optimizer.denseBytes,
    rows,
    tokens: blockSize === undefined ? undefined : rows * blockSize,
    speed,
    measured,
    buckets: optimizer.requests(0).length,
    obstacle: recipe.overlap === "off" ? "overlap is off" : optimizer.obstacle,
  };
}

/** Model and optimizer of a recipe, with shapes only. */
export function shapesOf(recipe: Recipe, group: Group, measured: Measured | undefined) {
  return withDevice("meta", () => {
    const model = buildModel(recipe);
    const arena = new Arena(model);
    return { model, arena, optimizer: makeOptimizer(recipe, arena, group, { measured }) };
  });
}

/** Of a rank; messages as in the one of `steps` that holds most. */
export async function memoryOf(
  arena: Arena,
  optimizer: Optimizer,
  { ranks, steps }: { ranks: number; steps: readonly number[] },
): Promise<Plan["memory"]> {
  const { tensors } = await optimizer.state();
  return {
    parameters: 4 * arena.parameters.length,
    gradients: 4 * arena.gradients.length,
    state: [...tensors.values()].reduce((sum, { length }) => sum + 4 * length, 0),
    exchange: ranks === 1 ? 0 : Math.max(...steps.map((step) => memoryOfMessages(optimizer, step, ranks))),
  };
}

/** The link as it is said to be, and this machine's codecs as they are measured. */
export async function measuredOf({ bitsPerSecond, latency: alpha }: Link): Promise<Measured> {
  const link: LinkCost = { alpha, alphaLong: alpha, perMessage: 0, perExchange: 0, beta: 8 / bitsPerSecond, burst: 0 };
  return { link, codec: await codecCost() };
}

/** Codecs that take no time. */
export const noTime: CodecCost = {
  encode: 0,
  decode: 0,
  vote: 0,
  setField: 0,
  compareField: 0,
  encodeHalf: 0,
  decodeHalf: 0,
  encodeInt8: 0,
  sumInt8: 0,
  decodeInt8: 0,
};

let measuring: Promise<CodecCost> | undefined;

/** Measured once. */
function codecCost(): Promise<CodecCost> {
  measuring ??= (async () => {
    const [alone] = loopback(1);
    const { codec } = await measureLink(alone!);
    await alone!.close();
    return codec;
  })();
  return measuring;
}

function memoryOfMessages(optimizer: Optimizer, step: number, ranks: number): number {
  const held = optimizer
    .requests(step)
    .map(({ rounds }) => Math.max(0, ...rounds.map((round) => memoryOfRound(round, ranks, 0, optimizer.schemes))));
  return sum(held);
}

export function timeOf(
  step: { readonly step: number; readonly bytes: number },
  optimizer: Optimizer,
  recipe: Recipe,
  { ranks, measured, computing }: { ranks: number; measured: Measured; computing: number },
): StepTime {
  const backward = hidingSeconds(optimizer, recipe, (2 / 3) * computing); // forward takes the other third
  return { computing, ...timeOfMessages(optimizer, step, { ranks, measured, backward }) };
}

/** Of a step's backward, the seconds in which messages leave: those of the last micro-batch, if its method sends any meanwhile. */
export function hidingSeconds(optimizer: Optimizer, { overlap, accumulate }: Recipe, backward: number): number {
  return overlap === "off" || optimizer.obstacle !== undefined ? 0 : backward / accumulate;
}

const stepsAtEnd = 16; // the most between two synchronisations of 0/1 Adam

/** Some of the last steps of a run, in which warm-ups have ended: one for each number of bytes, because steps that synchronise take turns with others. */
export function lastSteps(optimizer: Optimizer, steps: number): { step: number; bytes: number; share: number }[] {
  const last = Array.from({ length: Math.min(steps, stepsAtEnd) }, (_, i) => steps - 1 - i);
  return [...Map.groupBy(last, (step) => optimizer.bytesSent(step))].map(([bytes, [step, ...others]]) => ({
    step: step!,
    bytes,
    share: (1 + others.length) / last.length,
  }));
}

/** A mean of steps, which together are all. */
export const meanOf = <S extends { share: number }>(steps: readonly S[], value: (step: S) => number): number =>
  steps.reduce((sum, step) => sum + step.share * value(step), 0);

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

/**
 * Buckets leave one after the other, as the last micro-batch's backward completes them in `backward` seconds, 0 where they wait for its end;
 * the wire carries them one by one (packages/exchange/src/cost-model/bucket.ts), but votes to a server beside its answers. Messages that follow
 * from mean gradients, or belong to no bucket,
 * come at the end. `bytes`: all that rank 0 sends in the step.
 */
export function timeOfMessages(
  optimizer: Optimizer,
  { step: from, bytes }: { step: number; bytes: number },
  { ranks, measured, backward }: { ranks: number; measured: Measured; backward: number },
): Omit<StepTime, "computing"> {
  const all = optimizer.requests(from);
  const whole = all.reduce((sum, { elements }) => sum + elements, 0);
  let [complete, up, down, messages, after, left] = [0, 0, 0, 0, 0, bytes]; // up, down: when these directions of the wire are free
  for (const { elements, rounds, later } of all) {
    complete += elements;
    const seconds = rounds.map((round) => predictRound(round, ranks, optimizer.schemes, measured));
    const first = sum(seconds.slice(0, rounds.length - later));
    left -= sum(rounds.map((round) => bytesOfRound(round, ranks, 0, optimizer.schemes)));
    messages += sum(seconds);
    after += sum(seconds) - first;
    const returns = rounds.length === 1 ? first * returningShare(rounds[0]!, ranks, optimizer.schemes) : 0;
    const ready = Math.max(up, backward * (complete / whole), returns > 0 ? 0 : down);
    up = ready + first - returns;
    down = returns > 0 ? Math.max(up, down) + returns : up;
  }
  let end = Math.max(up, down) + after;
  const { alpha, beta } = measured.link;
  const beside = left > 0 ? alpha + left * beta : 0; // norms, and momenta that are averaged
  messages += beside;
  end += beside;
  return { messages, exposed: end - backward };
}
