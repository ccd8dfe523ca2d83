import { algorithms, gradientCompressions, type InRounds, type InRun, type RunOfRounds } from "@terse/optimizers";
import type { Problem } from "@terse/options";
import { methodsIn, optimizersOf } from "./parameter-groups.ts";
import type { Recipe } from "./recipe-schema.ts";
import { stepsBetweenRounds } from "./steps-between-rounds.ts";

/** What the optimizers of a recipe, and the compression of their gradients, say of its run. */
export interface MethodsInRun {
  /** The sections with shares of the run in steps. */
  readonly sections: Sections;
  /** The sections as a plan assumes them, where the run itself finds an option. */
  readonly planned: Sections;
  readonly problems: readonly Problem[];
  readonly remarks: readonly Problem[];
  readonly assumptions: readonly Problem[];
  readonly periods: readonly number[]; // see InRun
}

type Sections = Pick<Recipe, "optimizer" | "exchange" | "local">;

interface Entry {
  readonly inRun?: (options: object, steps: number) => InRun<object>;
  readonly under?: (options: object, algorithm: { name: string; options: object }) => Problem[];
}

export function methodsInRun({ optimizer, exchange, local, steps }: Sections & Pick<Recipe, "steps">): MethodsInRun {
  const given = { optimizer, exchange, local };
  const found = new Map(
    methodSections(given).map(({ key, entry, section, every }) => [
      key,
      { every, ...entry.inRun?.(section, Math.ceil(steps / every)) },
    ]),
  );
  const at =
    (key: string, every = 1) =>
    ({ path, problem, ...rest }: Problem) => ({
      ...rest,
      path: `${key}.${path}`,
      problem: every === 1 ? problem : `${problem} (a step of it is a round, every ${every} steps)`,
    });
  const all = (of: (found: InRun<object>) => readonly Problem[]) =>
    [...found].flatMap(([key, each]) => of(each).map(at(key, each.every)));
  const beside = methodsIn(given).flatMap(({ gradient, ...method }) =>
    optimizersOf(method).flatMap(([, { name, ...options }]) => {
      const compression = gradient && (gradientCompressions[gradient.name] as Entry);
      return compression?.under?.(gradient!, { name, options }).map(at("exchange.gradient")) ?? [];
    }),
  );

  const sections = changed(given, (key) => found.get(key)?.options);
  return {
    sections,
    planned: changed(sections, (key) => found.get(key)?.assumed?.options),
    problems: all(({ problems = [] }) => problems),
    remarks: [...all(({ remarks = [] }) => remarks), ...beside],
    assumptions: all(({ assumed }) => (assumed?.remark ? [assumed.remark] : [])),
    periods: [
      ...(local ? [local.syncEvery / local.fragments] : []),
      ...[...found.values()].flatMap(({ periods = [], every }) => periods.map((period) => every * period)),
    ],
  };
}

interface MethodSection {
  readonly key: string;
  readonly section: object;
  readonly entry: Entry; // of its name, in the registry
  readonly every: number; // steps between two of its method's own
}

/** The sections of a recipe's optimizers, and of the compression of their gradients. */
export const methodSections = (recipe: Sections): MethodSection[] =>
  methodsIn(recipe).flatMap(({ gradient, ...method }) => {
    const every = method.key === "local.optimizer" ? recipe.local!.syncEvery : 1;
    const entries = optimizersOf(method).map(([key, section]) => ({ key, section, entry: algorithms[section.name] }));
    const compression = gradient && { section: gradient, entry: gradientCompressions[gradient.name] };
    const all = [...entries, ...(compression ? [{ key: "exchange.gradient", ...compression }] : [])];
    return all.map((each) => ({ ...each, every }) as MethodSection);
  });

/**
 * The recipe with the options of its compression that follow from local steps, and what does not fit them. Of a run
 * that goes on, with the recipe of its save.
 */
export function methodInRounds<R extends Recipe>(
  recipe: R,
  goesOn?: { from: Recipe; step: number },
): { recipe: R; problems: readonly Problem[] } {
  const { gradient } = recipe.exchange;
  const inRounds = gradient && inRoundsOf(gradient);
  if (!gradient || !inRounds) return { recipe, problems: [] };
  const { name, ...given } = gradient;
  const toNext = goesOn && stepsBetweenRounds(goesOn.from, recipe, goesOn.step)?.toNext;
  const { options, problems = [] } = inRounds(given, { ...recipe, toNext });
  return { recipe: { ...recipe, exchange: { ...recipe.exchange, gradient: { ...gradient, ...options } } }, problems };
}

/** The options of the recipe's compression that have the values which follow from local steps. */
export function followingFromRounds(recipe: Recipe): string[] {
  const { gradient } = recipe.exchange;
  const following = gradient && inRoundsOf(gradient)?.({}, recipe).options;
  return Object.entries(following ?? {}).flatMap(([option, value]) =>
    (gradient as unknown as Record<string, unknown>)[option] === value ? [option] : [],
  );
}

const inRoundsOf = ({ name }: NonNullable<Recipe["exchange"]["gradient"]>) =>
  (gradientCompressions[name] as { inRounds?: (options: object, run: RunOfRounds) => InRounds<object> }).inRounds;

/** Why so many ranks cannot share a round with the recipe's compression, where they cannot. */
export function problemsAmongRanks({ exchange: { gradient } }: Pick<Recipe, "exchange">, ranks: number): Problem[] {
  const { amongRanks } = (gradient ? gradientCompressions[gradient.name] : {}) as {
    amongRanks?: (options: object, ranks: number) => Problem | undefined;
  };
  return [amongRanks?.(gradient!, ranks)].filter((problem) => problem !== undefined);
}

/** The sections with some of their options changed, by the sections' keys. */
function changed({ optimizer, exchange, local }: Sections, changes: (key: string) => object | undefined): Sections {
  const changedAt = <Section extends { readonly groups: readonly object[] }>(
    key: string,
    section: Section,
  ): Section => {
    const groups = section.groups.map((group, i) => ({ ...group, ...changes(`${key}.groups.${i}`) }));
    return { ...section, ...changes(key), groups };
  };
  const { gradient } = exchange;
  return {
    optimizer: changedAt("optimizer", optimizer),
    ...(local && { local: { ...local, optimizer: changedAt("local.optimizer", local.optimizer) } }),
    exchange: gradient ? { ...exchange, gradient: { ...gradient, ...changes("exchange.gradient") } } : exchange,
  };
}
