import { algorithms, gradientCompressions, type InRun } from "@terse/optimizers";
import type { Problem } from "@terse/options";
import { optimizersOf } from "./parameter-groups.ts";
import type { Recipe } from "./recipe-schema.ts";

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

type Sections = Pick<Recipe, "optimizer" | "exchange">;

interface Entry {
  readonly inRun?: (options: object, steps: number) => InRun<object>;
  readonly under?: (options: object, algorithm: { name: string; options: object }) => Problem[];
}

export function methodsInRun({
  optimizer,
  exchange,
  steps,
}: Pick<Recipe, "optimizer" | "exchange" | "steps">): MethodsInRun {
  const { gradient } = exchange;
  const compression = gradient && (gradientCompressions[gradient.name] as Entry);
  const methods: (readonly [key: string, entry: Entry, section: object])[] = optimizersOf(optimizer).map(
    ([key, section]) => [key, algorithms[section.name] as Entry, section],
  );
  if (compression) methods.push(["exchange.gradient", compression, gradient]);

  const found = new Map(methods.map(([key, { inRun }, section]) => [key, inRun?.(section, steps) ?? {}]));
  const at = (key: string) => (problem: Problem) => ({ ...problem, path: `${key}.${problem.path}` });
  const all = (of: (found: InRun<object>) => readonly Problem[]) =>
    [...found].flatMap(([key, each]) => of(each).map(at(key)));
  const beside = optimizersOf(optimizer).flatMap(
    ([, { name, ...options }]) => compression?.under?.(gradient!, { name, options }).map(at("exchange.gradient")) ?? [],
  );

  const sections = changed({ optimizer, exchange }, (key) => found.get(key)?.options);
  return {
    sections,
    planned: changed(sections, (key) => found.get(key)?.assumed?.options),
    problems: all(({ problems = [] }) => problems),
    remarks: [...all(({ remarks = [] }) => remarks), ...beside],
    assumptions: all(({ assumed }) => (assumed?.remark ? [assumed.remark] : [])),
    periods: [...found.values()].flatMap(({ periods = [] }) => periods),
  };
}

/** The sections with some of their options changed, by the sections' keys. */
function changed({ optimizer, exchange }: Sections, changes: (key: string) => object | undefined): Sections {
  const groups = optimizer.groups.map((group, i) => ({ ...group, ...changes(`optimizer.groups.${i}`) }));
  const { gradient } = exchange;
  return {
    optimizer: { ...optimizer, ...changes("optimizer"), groups },
    exchange: gradient ? { ...exchange, gradient: { ...gradient, ...changes("exchange.gradient") } } : exchange,
  };
}
