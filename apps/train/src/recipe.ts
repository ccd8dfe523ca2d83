/** Recipes: the schema, the YAML file, and overrides from the command line. */
import { readdirSync, readFileSync } from "node:fs";
import { basename, extname } from "node:path";
import { pathToFileURL } from "node:url";
import { datasets } from "@terse/data";
import { denseTypes, type VoteSchemeName, voteSchemes } from "@terse/exchange";
import { models } from "@terse/models";
import { algorithms, clipBys, gradientCompressions, refusedOptions } from "@terse/optimizers";
import {
  applyOverrides,
  dropUntaken,
  flag,
  lineOf,
  nearest,
  nonNegative,
  nonNegativeInteger,
  OptionsError,
  oneOf,
  parseOptions,
  parseYaml,
  positive,
  positiveFloat,
  positiveInteger,
  show,
  text,
  v,
} from "@terse/options";
import { methodsInRun } from "./methods-in-run.ts";
import { checkGradients, groupOptions, noDecay, optimizersOf, problemsOfOptimizers } from "./parameter-groups.ts";
import { scheduleOptions, schedules, warmupWithin } from "./schedules/schedules.ts";

/** A section whose `name` chooses an entry of a registry; it takes the entry's options, and `shared` ones. `fallback`: without a name. */
function section<Name extends string, const Shared extends v.ObjectEntries>(
  registry: Readonly<Record<Name, { readonly options: { readonly entries: object } }>>,
  shared: Shared,
  fallback?: Name,
) {
  const names = Object.keys(registry) as Name[];
  const nameOf = (name: Name) => (name === fallback ? v.optional(v.literal(name), () => name) : v.literal(name));
  return v.variant(
    "name",
    names.map((name) => v.object({ name: nameOf(name), ...shared, ...(registry[name].options.entries as object) })),
  );
}

const model = section(models, {});

const dataOptions = {
  batchSize: v.optional(positiveInteger, 4), // rows a rank and micro-batch
};
const data = section(datasets, dataOptions);

const optimizerOptions = {
  lr: positiveFloat, // η at the schedule's top
  clip: v.optional(nonNegative, 0), // 0: no clipping
  clipBy: v.optional(oneOf(clipBys), "global"), // whose norm; with "previous" and "bucket" votes leave while backward runs
  noDecay,
  groups: v.optional(
    v.pipe(
      v.array(section(algorithms, groupOptions)),
      v.description("a list of groups, each with roles or parameters, name, lr, and the options of that optimizer"),
    ),
    [],
  ),
};
const optimizer = section(algorithms, optimizerOptions);

const schedule = section(schedules, scheduleOptions, "cosine");

/** "cuda": each rank takes the GPU with its local rank's number; "cuda:0": all ranks of a machine share its first GPU. */
const device = v.optional(
  v.pipe(
    text,
    v.regex(/^(cpu|cuda(:\d+)?)$/, 'must be "cpu", "cuda" or, for example, "cuda:0"'),
    v.description("cpu, cuda or, for example, cuda:0"),
  ),
  "cpu",
);

/** The type of means on the wire, how gradients are compressed in place of their mean, and the vote scheme. */
const exchange = v.object({
  gradient: v.optional(section(gradientCompressions, {})), // under an optimizer that takes a mean; not compressed if absent or null
  dense: v.optional(oneOf(denseTypes), "f32"),
  vote: v.optional(oneOf(Object.keys(voteSchemes) as VoteSchemeName[]), "all-to-all"),
  ranksPerHost: v.optional(positiveInteger), // of vote: hierarchical
  inside: v.optional(oneOf(["signs", "dense"])), // of vote: hierarchical, what ranks of one host send to each other; signs if absent
  width: v.optional(positiveInteger), // of vote: count, bits of a field; the narrowest possible if absent
  chunk: v.optional(positiveInteger), // of vote: all-to-all, parameters on the wire at once
  buffers: v.optional(oneOf(["local", "mean"]), "local"), // running statistics: each rank's own, or their means from each evaluation and save on
});

/** The ranks as data × weight. Along the weight axis they share the state of optimizers that can be sharded. */
const parallel = v.object({
  data: v.optional(positiveInteger), // the ranks divided by weight if absent
  weight: v.optional(positiveInteger, 1), // shards of each matrix's state
});

export const recipeSchema = v.object({
  seed: v.optional(nonNegativeInteger, 0),
  steps: positiveInteger,
  accumulate: v.optional(positiveInteger, 1),
  device, // of model and optimizer; votes are counted on the CPU
  precision: v.optional(oneOf(["f32", "bf16"]), "f32"), // of forward and backward; parameters, gradients and optimizer state are f32
  activationCheckpointing: v.optional(flag, false), // backward computes each block again and keeps only its input: less memory, a third more computing
  overlap: v.optional(oneOf(["auto", "on", "off"]), "auto"), // send messages while backward runs
  bucket: v.optional(v.union([v.literal("auto"), positiveInteger])), // smallest number of parameters in a message; auto: chosen from the times of the first steps
  exchange: v.optional(exchange, {}),
  parallel: v.optional(parallel, {}),
  model,
  data,
  optimizer,
  schedule: v.optional(schedule, { name: "cosine" }),
  evaluate: v.optional(
    v.object({ every: v.optional(nonNegativeInteger, 0), windows: v.optional(positiveInteger, 64) }),
    {},
  ),
  save: v.optional(
    v.object({
      every: v.optional(nonNegativeInteger), // steps between saves; evaluate.every if absent, and 0 for none but the last
      keep: v.optional(positiveInteger, 2), // saves that stay
    }),
    {},
  ),
  sample: v.optional(
    v.object({
      bytes: v.optional(nonNegativeInteger, 400),
      temperature: v.optional(positive, 0.8),
      topK: v.optional(nonNegativeInteger, 0), // only the k most likely tokens; 0: all
      topP: v.optional(v.pipe(positive, v.maxValue(1)), 1), // only the most likely tokens that sum to p
    }),
    {},
  ),
  logEvery: v.optional(positiveInteger, 10),
  compareEvery: v.optional(nonNegativeInteger, 100),
  trace: v.optional(
    v.object({
      steps: v.optional(nonNegativeInteger, 0), // of which trace.json says what happened when, on all ranks; 0: none
      from: v.optional(nonNegativeInteger, 5), // the first of them, counted from where this process began
    }),
    {},
  ),
  advise: v.optional(flag, true), // say at the end what the network costs, and what other methods would cost; runs of 50 steps and more
  measureEvery: v.optional(nonNegativeInteger, 100), // steps between two samples of how far the ranks agree (docs/metrics.md); 0: none
});

/** What the command line may override: --KEY=VALUE. */
export const recipeKeys: readonly string[] = Object.keys(recipeSchema.entries);

export type Recipe = v.InferOutput<typeof recipeSchema>;

/** The default recipe. */
export const defaultRecipe: URL = new URL("../recipes/gpt-small.yaml", import.meta.url);

/** The choices that a resumed run must keep, because its saved state depends on them, and all keys that it must keep with them. */
const keptNames = ["model.name", "data.name", "optimizer.name", "exchange.gradient.name"];
const keptChoices = [...keptNames, "optimizer.groups"];
const kept = ["seed", "model", "data", ...keptChoices];

/**
 * What a run keeps of a key: of groups only which parameters have which optimizer, of the data all but how many samples may be damaged, which rows do
 * not depend on. Takes any tree, because an override may have put anything there.
 */
function keptOf(tree: unknown, key: string): unknown {
  const value = key.split(".").reduce<unknown>((inside, part) => (inside as Tree | null | undefined)?.[part], tree);
  if (key === "data" && isTree(value))
    return Object.fromEntries(Object.entries(value).filter(([option]) => option !== "maxCorrupt"));
  if (key !== "optimizer.groups") return value;
  const groups = value ?? [];
  const takers = (group: Tree | null) => ["name", "roles", "parameters"].map((option) => [option, group?.[option]]);
  return Array.isArray(groups) ? groups.map((group) => Object.fromEntries(takers(group))) : groups;
}

/** What is read, or `OptionsError` where it cannot be read because of another choice, which takes other options. */
function keepingChoices<T>(before: unknown, after: unknown, read: () => T): T {
  try {
    return read();
  } catch (error) {
    checkKept(before, after, keptChoices);
    throw error;
  }
}

/** Throws `OptionsError` where a resumed run would not keep one of these keys. Of a section with another name the name alone is named. */
function checkKept(before: unknown, after: unknown, keys: readonly string[]): void {
  const all = keys.flatMap((key) => differences(keptOf(before, key), keptOf(after, key), [key]));
  const renamed = all.filter(({ key }) => keptNames.includes(key)).map(({ key }) => key.replace(/name$/, ""));
  const changed = all.filter(
    ({ key }) => !renamed.some((section) => key.startsWith(section) && key !== `${section}name`),
  );
  const once = new Map(changed.map((difference) => [difference.key, difference]));
  throwRefusals([...once.values()].map((difference) => ({ ...difference, why: "a resumed run keeps it" })));
}

/**
 * The recipe of a run that goes on from a save, that of the save, and the one before the overrides: that of the run's recipe.json (`text`), else
 * the save's. Throws `OptionsError` for keys and options that must stay, and for fewer steps than the run has taken.
 */
export function resumedRecipe(
  save: { readonly step: number; readonly recipe: unknown },
  text: string | undefined,
  overrides: readonly string[],
  run: string,
): { saved: Recipe; before: Recipe; recipe: Recipe } {
  const tree = text === undefined ? (save.recipe as Tree) : (parseYaml(text, `${run}/recipe.json`) as Tree);
  const saved = parseWritten(save.recipe, `the save of ${run}`);
  const before = parseWritten(tree, `${run}/recipe.json`);
  checkKept(saved, before, kept); // recipe.json may have been edited
  const recipe = keepingChoices(before, applyOverrides(tree, overrides), () =>
    checked(parsed(withOverrides(tree, overrides).tree)),
  );
  checkKept(before, recipe, kept);
  throwRefusals(refusedOptionsOf(saved, recipe, save.step));
  if (recipe.steps < save.step)
    throw new OptionsError([
      `steps: ${run} is saved after step ${save.step}, and a run does not go back: give --steps=${save.step} or more, or start a new run`,
    ]);
  return { saved, before, recipe };
}

/** The recipe that a run has written to `where`, its recipe.json. Throws `OptionsError`, as `parseWritten`. */
export const writtenRecipe = (text: string, where: string): Recipe => parseWritten(parseYaml(text, where), where);

/** A recipe that a run has written. Throws `OptionsError` that names `where`, and what may have happened to it. */
function parseWritten(tree: unknown, where: string): Recipe {
  checkTree(tree, where);
  try {
    return parsed(tree);
  } catch (error) {
    if (!(error instanceof OptionsError)) throw error;
    throw new OptionsError([`${where} was written by another version of terse, or changed: ${error.lines.join("; ")}`]);
  }
}

/** Options of an optimizer, or of what compresses its gradients, that are kept because the state depends on them or their work is done. */
function refusedOptionsOf(saved: Recipe, recipe: Recipe, step: number): Refusal[] {
  const sections = ({ optimizer, exchange: { gradient } }: Recipe) => [
    ...optimizersOf(optimizer).map(([key, section]) => ({ key, section, entry: algorithms[section.name] })),
    ...(gradient ? [{ key: "exchange.gradient", section: gradient, entry: gradientCompressions[gradient.name] }] : []),
  ];
  const now = sections(recipe);
  return sections(saved).flatMap(({ key, section: before, entry }, i) => {
    const reasons = refusedOptions(entry, { before, after: now[i]!.section, step });
    return differences(before, now[i]!.section, []).flatMap(({ key: option, ...values }) => {
      const why = reasons.get(option);
      return why === undefined ? [] : [{ key: `${key}.${option}`, ...values, why }];
    });
  });
}

interface Refusal extends Difference {
  readonly why: string;
}

/** Throws `OptionsError`, unless there are none. */
export function throwRefusals(refusals: readonly Refusal[]): void {
  const remedy = (from: string) => (from === none ? "leave it out" : `take ${from} again`);
  const problems = refusals.map(
    ({ key, from, to, why }) => `${key}: ${to}, and the save has ${from}: ${why}; ${remedy(from)}, or start a new run`,
  );
  if (problems.length > 0) throw new OptionsError(problems);
}

/** What is different in a recipe, a line for each key: "steps: 30 → 60". */
export const changesOf = (before: unknown, after: unknown): string[] =>
  differences(before, after, []).map(({ key, from, to }) => `${key}: ${from} → ${to}`);

interface Difference {
  readonly key: string;
  readonly from: string; // JSON, or none
  readonly to: string;
}

const none = "none";

function differences(before: unknown, after: unknown, path: readonly string[]): Difference[] {
  const isTree = (value: unknown): value is Tree => typeof value === "object" && value !== null;
  if (isTree(before) && isTree(after) && Array.isArray(before) === Array.isArray(after))
    return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) =>
      differences(before[key], after[key], [...path, key]),
    );
  const [from, to] = [before, after].map((value) => JSON.stringify(value) ?? none) as [string, string];
  return from === to ? [] : [{ key: path.join("."), from, to }];
}

/**
 * The recipe of a file with dotted overrides, checked, and with all defaults filled in. `between` gives what comes on top of the file and below
 * the overrides.
 */
export function readRecipe(
  file: string | URL,
  overrides: readonly string[],
  between: (file: Tree) => Tree = () => ({}),
): Recipe {
  const { tree } = readTree(file);
  const base = extended(tree, between(tree), "the recipe's").tree;
  return checked(parsed(withOverrides(base, overrides).tree));
}

/** The recipe of a tree. Throws `OptionsError`, also where a compression of gradients is given as an optimizer. */
function parsed(tree: unknown): Recipe {
  const { optimizer } = { ...(tree as Tree | null) } as { optimizer?: Tree | null };
  const groups = optimizer?.["groups"];
  const sections = [optimizer, ...(Array.isArray(groups) ? (groups as (Tree | null)[]) : [])];
  const problems = sections.flatMap((section, i) => {
    const name = String(section?.["name"]);
    const key = i === 0 ? "optimizer" : `optimizer.groups.${i - 1}`;
    return Object.hasOwn(gradientCompressions, name)
      ? [
          `${key}.name: ${name} compresses the gradients of an optimizer, such as sgd, adamw, lion, lamb or muon; name that here, and give --exchange.gradient.name=${name}`,
        ]
      : [];
  });
  problems.push(...problemsOfSections(tree));
  if (problems.length > 0) throw new OptionsError(problems);
  return parseOptions(recipeSchema, withoutNull(tree), "");
}

/** `exchange.gradient: null` takes back the compression of another recipe, and is the same as none. */
function withoutNull(tree: unknown): unknown {
  const { exchange } = { ...(tree as Tree | null) };
  if (!isTree(exchange) || exchange["gradient"] !== null) return tree;
  const { gradient, ...others } = exchange;
  return { ...(tree as Tree), exchange: others };
}

/** A section that is a word where its name was meant: a line for each. */
function problemsOfSections(tree: unknown): string[] {
  const { exchange, ...sections } = { ...(tree as Tree | null) };
  const gradient = (exchange as Tree | null | undefined)?.["gradient"];
  const all = [
    ...Object.entries(choices).map(([key, registry]) => [key, sections[key], registry] as const),
    ["exchange.gradient", gradient, gradientCompressions] as const,
  ];
  return all.flatMap(([key, value, registry]) => {
    if (typeof value !== "string") return [];
    const name = nearest(value, Object.keys(registry)) ?? "NAME";
    return [
      `${key}: expected a group of options with name, got ${JSON.stringify(value)}; write --${key}.name=${name}, or in YAML name: ${name} below ${key.split(".").at(-1)}:`,
    ];
  });
}

/** The same recipe, with shares of the run in steps. Throws `OptionsError` where keys of two sections contradict each other. */
function checked(read: Recipe): Recipe {
  const { sections, problems } = methodsInRun(read);
  const all = [...problemsOfOptimizers(read), ...problems];
  if (all.length > 0) throw new OptionsError(all);
  const recipe = { ...read, ...sections };
  checkGradients(recipe);
  return recipe;
}

/** What of a recipe does not hold to the letter, a line each. */
export function remarksOn(recipe: Recipe): string[] {
  const { warmup } = recipe.schedule;
  const within = warmupWithin(warmup, recipe.steps);
  const cut = within === warmup ? [] : [`schedule.warmup: ${warmup} steps are cut to ${within}, half of the run`];
  return [...cut, ...methodsInRun(recipe).remarks.map(lineOf)];
}

/** The options of the file, and of recipes that it extends, that do not count, because what was given on top chooses something that does not take them: a line for each choice. */
export function droppedOptions(file: string | URL, overrides: readonly string[]): readonly string[] {
  const { tree, dropped } = readTree(file);
  return [...dropped, ...withOverrides(tree, overrides).dropped];
}

/** What a section's `name` chooses from. */
const choices = { model: models, data: datasets, optimizer: algorithms, schedule: schedules } as const;

type Tree = Readonly<Record<string, unknown>>;

const isTree = (value: unknown): value is Tree => typeof value === "object" && value !== null && !Array.isArray(value);

function checkTree(value: unknown, where: string): asserts value is Tree {
  if (!isTree(value))
    throw new OptionsError([`${where}: expected the keys of a recipe, such as steps: 500, got ${show(value)}`]);
}

interface Changed {
  readonly tree: Tree;
  readonly dropped: readonly string[]; // a line for each choice
}

/** A recipe with overrides of the command line. */
function withOverrides(before: Tree, overrides: readonly string[]): Changed {
  const given = overrides.map((override) => override.replace(/^--/, "").split("=")[0]!);
  return changed(before, applyOverrides(before, overrides), { given, whose: "the recipe's" });
}

/** A recipe on top of the one that it extends, `base`. */
function extended(base: Tree, own: Tree, whose: string): Changed {
  return changed(base, merged(base, own), { given: namesIn(own, []), whose });
}

/**
 * `after` is `before` with what was `given` on top. Where that chooses another name, options of the old choice that the new one does not take are
 * dropped; where it chooses another optimizer, also how the gradients were compressed for the old one.
 */
function changed(
  before: Tree,
  after: Tree,
  { given, whose }: { readonly given: readonly string[]; readonly whose: string },
): Changed {
  const { tree, dropped } = dropUntaken(recipeSchema, { before, after, given });
  const lines = dropped.map(
    ({ group, key, from, to, options }) =>
      `${group}.${key} is ${to}, which does not take ${options.join(", ")}: ${whose} value for ${from} does not count`,
  );
  const [from, to] = [before, tree].map(({ optimizer }) => (optimizer as Tree | undefined)?.["name"]);
  const exchange = tree["exchange"];
  if (from === undefined || from === to || !isTree(exchange) || !isTree(exchange["gradient"]))
    return { tree, dropped: lines };
  if (given.some((name) => /^exchange(\.gradient(\.|$)|$)/.test(name))) return { tree, dropped: lines };
  const { gradient, ...others } = exchange;
  const line = `optimizer.name is ${to}: ${whose} exchange.gradient, ${gradient["name"]}, is for ${from} and does not count`;
  return { tree: { ...tree, exchange: others }, dropped: [...lines, line] };
}

/** The tree of a recipe's file, on top of that of the recipe that it extends, which may extend another. */
function readTree(file: string | URL, extending: readonly string[] = []): Changed {
  const url = urlOf(file);
  if (extending.includes(url.href))
    throw new OptionsError([
      `${String(file)}: extends goes in a circle: ${[...extending, url.href].map(nameOfFile).join(" → ")}`,
    ]);
  let source: string;
  try {
    source = readFileSync(url, "utf8");
  } catch (error) {
    const by =
      extending.length === 0
        ? "name a YAML file with --recipe"
        : `${nameOfFile(extending.at(-1)!)} extends it: name a YAML file`;
    const near = nearest(basename(String(file), extname(String(file))), recipeNames());
    const meant = near === undefined ? "" : `; did you mean ${near}?`;
    throw new OptionsError([
      `recipe ${String(file)} cannot be read (${(error as NodeJS.ErrnoException).code}); ${by}, or one of apps/train/recipes without its .yaml${meant}`,
    ]);
  }
  const written = parseYaml(source, String(file)) ?? {}; // an empty file is null
  if (!isTree(written))
    throw new OptionsError([
      `${String(file)}: expected the keys of a recipe, such as steps: 500, got ${show(written)}`,
    ]);
  const { extends: base, ...own } = written;
  if (base === undefined) return { tree: own, dropped: [] };
  if (typeof base !== "string")
    throw new OptionsError([`${String(file)}: extends: expected the name or the file of a recipe`]);
  const below = readTree(isName(base) ? base : new URL(base, url), [...extending, url.href]);
  const { tree, dropped } = extended(below.tree, own, `${base}'s`);
  return { tree, dropped: [...below.dropped, ...dropped] };
}

/** A word without a dot or slash is the name of a recipe in apps/train/recipes. */
const isName = (file: string) => /^[\w-]+$/.test(file);

function urlOf(file: string | URL): URL {
  if (typeof file !== "string") return file;
  return isName(file) ? new URL(`${file}.yaml`, defaultRecipe) : pathToFileURL(file);
}

const recipeNames = () => readdirSync(new URL(".", defaultRecipe)).map((file) => basename(file, ".yaml"));

const nameOfFile = (href: string) => href.slice(href.lastIndexOf("/") + 1);

function merged(base: Tree, own: Tree): Tree {
  const both = Object.entries(own).map(([key, value]) => {
    const below = base[key];
    return [key, isTree(value) && isTree(below) ? merged(below, value) : value];
  });
  return { ...base, ...Object.fromEntries(both) };
}

/** The dotted names of all values of a tree. */
function namesIn(value: unknown, path: readonly string[]): string[] {
  if (!isTree(value)) return [path.join(".")];
  return Object.entries(value).flatMap(([key, inner]) => namesIn(inner, [...path, key]));
}
