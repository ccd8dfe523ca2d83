/** What a method computes by itself in a step, measured on this machine: its arithmetic, and its codecs. */
import { loopback } from "@terse/collectives";
import { matrixShape } from "@terse/optimizers";
import { parseOptions } from "@terse/options";
import {
  Arena,
  Linear,
  ModuleList,
  noGrad,
  numThreads,
  scope,
  setNumThreads,
  type Tensor,
  withDevice,
  zeros,
} from "@terse/tensor";
import { buildModel, makeOptimizer } from "../build.ts";
import { StepMeter } from "../measures/step-meter.ts";
import type { PartTimes } from "../measures/step-parts.ts";
import { parameterCounts } from "../parameter-counts.ts";
import type { Recipe } from "../recipe.ts";
import { recipeSchema } from "../recipe-schema.ts";

const [warmUp, steps] = [2, 5];
const leastElements = 2 ** 19; // of the parameters
const mostLayers = 16;
const mostRows = 1024; // and columns of a matrix
const enough = 0.2; // seconds for the steps of a slow method, of which three are measured all the same
const mostBetween = 2 ** 24; // floats that are read between two steps: no processor's caches hold so many
const mostRanks = 4; // that measure a codec; an owner reads n elements of wires in all, with any number of ranks

const measurements = new Map<string, Promise<LocalWork>>();

/** What a method computes by itself: seconds, or seconds ÷ those of another measurement. */
export interface LocalWork {
  readonly update: number; // its arithmetic
  readonly codecs: number;
}

export interface RanksOfRun {
  readonly ranks: number;
  /** Threads of one operator, on each rank. */
  readonly threads: number;
}

/**
 * Seconds an element of the parameters, a step: the least of a few steps, because other work only adds to it. Measured
 * once for each method. Of local steps it is a rank's own work and its share of a round's.
 */
export async function localWork(recipe: Recipe, run: RanksOfRun): Promise<LocalWork> {
  const { local } = recipe;
  if (!local) return await measuredOnce(recipe, run);
  const last = warmUp + steps + 1; // of a run that ends with a round, before which it is measured
  const every = (syncEvery: number, of: Recipe, ranks: number) =>
    measuredOnce({ ...of, steps: last, local: { ...local, syncEvery, fragments: 1, delay: 0 } }, { ...run, ranks });
  // What a round adds is the same after any steps: those of SGD take least, where Muon's would take half a minute.
  const quick = withSgd(recipe);
  const [withRounds, without] = [await every(1, quick, run.ranks), await every(last, quick, 1)];
  const alone = await every(last, recipe, 1);
  const of = (part: keyof LocalWork) => alone[part] + (withRounds[part] - without[part]) / local.syncEvery;
  return { update: of("update"), codecs: of("codecs") };
}

const withSgd = ({ optimizer: { lr }, ...rest }: Recipe): Recipe =>
  parseOptions(recipeSchema, { ...rest, optimizer: { name: "sgd", lr } }, "");

function measuredOnce(recipe: Recipe, run: RanksOfRun): Promise<LocalWork> {
  const { lr: _, ...method } = recipe.optimizer;
  const key = JSON.stringify([method, recipe.exchange, recipe.local, run, sizesOf(recipe)]);
  const work = measurements.get(key) ?? measure(recipe, run);
  measurements.set(key, work);
  return work;
}

async function measure(recipe: Recipe, { ranks, threads }: RanksOfRun): Promise<LocalWork> {
  const before = numThreads();
  setNumThreads(threads);
  try {
    // With other ranks a codec has other work: it adds their wires, and fields are wider. One rank alone measures
    // everything else.
    const alone = await partsOf(recipe, 1);
    const withOthers = ranks === 1 ? alone : await partsOf(recipe, Math.min(ranks, mostRanks));
    return { update: alone.update, codecs: withOthers.codecs };
  } finally {
    setNumThreads(before);
  }
}

/** What local work depends on in a model. */
interface Sizes {
  readonly trained: number; // elements
  /**
   * The shape of those matrices that hold most of them: what a method computes of a matrix grows with its rows. Of
   * larger ones than `mostRows` × `mostRows` it would take too long; they are cut. 512 × 512 where there are none.
   */
  readonly matrix: readonly [m: number, n: number];
}

export function sizesOf({ model, adapter, ...recipe }: Recipe): Sizes {
  const key = JSON.stringify([model, adapter]);
  const found = known.get(key);
  if (found) return found;
  const built = withDevice("meta", () => buildModel({ ...recipe, model, adapter }));
  const matrices = built.parameters().filter(({ requiresGrad, role }) => requiresGrad && role === "matrix");
  const byShape = Map.groupBy(matrices, ({ shape }) => String(matrixShape(shape)));
  const sum = ([, of]: readonly [string, typeof matrices]) => of.reduce((n, { length }) => n + length, 0);
  const [, [first] = []] = [...byShape].sort((a, b) => sum(b) - sum(a))[0] ?? [];
  const [m, n] = (first && matrixShape(first.shape)) ?? [512, 512];
  const sizes = { ...parameterCounts(built), matrix: [Math.min(m, mostRows), Math.min(n, mostRows)] } as const;
  known.set(key, sizes);
  return sizes;
}

const known = new Map<string, Sizes>();

/** Seconds an element, on the first of some ranks in this process. */
async function partsOf(recipe: Recipe, ranks: number): Promise<LocalWork> {
  const {
    trained,
    matrix: [m, n],
  } = sizesOf(recipe);
  const layers = Math.min(mostLayers, Math.max(2, Math.ceil(leastElements / (m * n))));
  await using closing = new AsyncDisposableStack();
  const groups = loopback(ranks).map((group) => closing.use(group));
  return await scope(async () => {
    const members = groups.map((group) => {
      const arena = new Arena(new ModuleList(Array.from({ length: layers }, () => new Linear(n, m, { bias: false }))));
      const here: Recipe = { ...withoutOtherRoles(recipe), device: "cpu", compareEvery: 0, overlap: "off" };
      return { arena, optimizer: closing.use(makeOptimizer(here, arena, group, {})) };
    });
    const noise = noiseFor(members);
    // A run has parameters, gradients and a method's state, and the activations.
    const between = noGrad(() => zeros([Math.min(mostBetween, 4 * trained)]));
    const [first] = members as [(typeof members)[number]];
    const meter = new StepMeter();
    first.optimizer.watch = meter;
    const seen: PartTimes[] = [];
    const end = performance.now() + 1000 * enough;
    for (let step = 0; step < warmUp + steps && (seen.length < 3 || performance.now() < end); step++) {
      for (const [rank, { arena }] of members.entries()) noGrad(() => arena.gradients.copy_(noise(rank, step)));
      noGrad(() => between.add_(1)); // as after backward, no cache holds what the method reads
      meter.begin(step);
      await Promise.all(members.map(({ optimizer }) => optimizer.step({ lr: 1e-4 })));
      meter.end();
      const parts = meter.take(1);
      if (step >= warmUp) seen.push(parts);
    }
    const least = (seconds: (times: PartTimes) => number) =>
      Math.min(...seen.map(seconds)) / first.arena.parameters.length;
    return { update: least(({ update }) => update), codecs: least(({ encode, decode }) => encode + decode) };
  });
}

/**
 * Gradients of each rank and step: other windows of the same random numbers. To draw them anew would take longer than
 * most methods' steps.
 */
function noiseFor(members: readonly { readonly arena: Arena }[]): (rank: number, step: number) => Tensor {
  const { length } = members[0]!.arena.gradients;
  const apart = 101; // elements between two windows: no multiple of a matrix's width
  const all = noGrad(() => zeros([length + apart * members.length * (warmUp + steps)]).normal_());
  return (rank, step) => all.narrow(0, apart * (rank + members.length * step), length);
}

/** The layers here are matrices, as most of a model is. Parts of a recipe without matrices are left out. */
const withoutOtherRoles = (recipe: Recipe): Recipe => ({
  ...recipe,
  optimizer: {
    ...recipe.optimizer,
    groups: recipe.optimizer.groups.filter(({ roles = ["matrix"] }) => roles.includes("matrix")),
  },
});
