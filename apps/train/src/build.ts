/** Makes what a recipe names: model, data, optimizer, schemes. */
import { mayExist } from "@terse/checkpoint";
import { SumTooWideError } from "@terse/codecs";
import { type Group, readWorldEnvironment } from "@terse/collectives";
import { DataError, type DataFacts, type Dataset, type DatasetName, datasets } from "@terse/data";
import {
  type ChosenSchemes,
  type DenseType,
  dense,
  type Measured,
  type Message,
  measureLink,
  UnsupportedOutcomeError,
  type VoteSchemeEntry,
  type VoteSchemeName,
  voteSchemes,
} from "@terse/exchange";
import { type Model, type ModelName, models } from "@terse/models";
import {
  type HostGroups,
  hostGroups,
  LocalSteps,
  meshOf,
  Optimizer,
  type OptimizerOptions,
  OverlapError,
  type TrainingOptimizer,
} from "@terse/optimizers";
import { OptionsError, print } from "@terse/options";
import type { Arena } from "@terse/tensor";
import { createWithAdapter } from "./adapter/add-adapter.ts";
import { openDeviceOf } from "./device.ts";
import { gatherTexts } from "./gather-texts.ts";
import { hostsOf, hostsOfRanks } from "./hosts-of-ranks.ts";
import { problemsAmongRanks } from "./methods-in-run.ts";
import { ownDataPathRemedy, withOwnDataPath } from "./own-data-path.ts";
import { definitionOf, groupsOf, methodName, methodsIn, remarkOnGradient } from "./parameter-groups.ts";
import { readsData } from "./reads-data.ts";
import type { Recipe } from "./recipe.ts";
import { skippedSamples } from "./skipped-samples.ts";

/**
 * Makes the model of a recipe. Its weights are drawn from the seed on the CPU, so they are the same on every rank and
 * every device. Throws `OptionsError`.
 */
export function buildModel(recipe: Recipe): Model {
  const { name, ...options } = recipe.model;
  const { name: dataName, batchSize: _, ...dataOptions } = withOwnDataPath(recipe).data; // which may be looked at
  const [entry, data] = [models[name], datasets[dataName]];
  const device = openDeviceOf(recipe);
  checkFields(name, dataName);
  const facts = data.facts(dataOptions);
  const model = createWithAdapter(() => inKeysOfRecipe(() => entry.create(options, facts)), recipe);
  checkLength(facts, model);
  if (recipe.activationCheckpointing) {
    if (model.activationCheckpointing === undefined)
      throw new OptionsError([
        `activationCheckpointing: ${name} has no blocks that can be computed again; leave it out`,
      ]);
    model.activationCheckpointing = true;
  }
  return device === "cpu" ? model : model.to({ device });
}

/** Throws `OptionsError` where the data does not have what the model reads. */
export function checkFields(model: ModelName, data: DatasetName): void {
  const [reads, has] = [models[model].fields, datasets[data].fields];
  if (!readsData(model, data))
    throw new OptionsError([
      `model.name: ${model} reads ${reads.join(", ")}, and data.name: ${data} has ${has.join(", ")}; choose data that fits the model`,
    ]);
}

/** Throws `OptionsError` where rows are longer than the model's context. */
export function checkLength({ length }: DataFacts, { context }: Pick<Model, "context">): void {
  if (length !== undefined && context !== undefined && length > context)
    throw new OptionsError([
      `data.blockSize: rows of ${length} tokens do not fit the model's context of ${context}; take at most ${context}, or leave it out`,
    ]);
}

/** A model names its options by itself, "gpt.heads: …"; recipes have them below "model". */
function inKeysOfRecipe<T>(create: () => T): T {
  try {
    return create();
  } catch (error) {
    throw error instanceof OptionsError ? error.inSection("model") : error;
  }
}

/**
 * Opens this rank's share of the data. With `holdOutAll` nothing is trained on. Where one rank finds it wrong, all
 * ranks throw the same error.
 */
export async function buildData(
  { data, seed, accumulate }: Pick<Recipe, "data" | "seed" | "accumulate">,
  model: Model,
  group: Group,
  { holdOutAll = false } = {},
): Promise<Dataset> {
  const { name, batchSize, ...options } = data;
  const { rank, size: ranks } = group;
  const progress = (words: string) =>
    void (rank === 0 && print(`data: ${words}`, holdOutAll ? process.stderr : process.stdout));
  const given = { batchSize, seed, rank, ranks, accumulate, length: model.context, thread: true, progress, holdOutAll };
  const opened = await datasets[name].open(options, given).catch((error: unknown) => {
    if (error instanceof DataError) return error;
    throw error;
  });
  const problems = await gatherTexts(group, opened instanceof DataError ? opened.message : "");
  const { path } = options as { path?: string };
  const isHere = await gatherTexts(group, path === undefined || mayExist(path) ? "yes" : "no");
  const first = problems.findIndex((each) => each !== "");
  const isElsewhere = isHere[first] === "no" && isHere.includes("yes");
  const problem = isElsewhere ? `Rank ${first}: ${problems[first]} ${ownDataPathRemedy}` : problems[first];
  if (opened instanceof DataError) throw new DataError(problem);
  try {
    if (problem !== undefined) throw new DataError(problem);
    await skippedSamples(opened, group);
    return opened;
  } catch (error) {
    await opened[Symbol.asyncDispose]();
    throw error;
  }
}

export async function buildOptimizer(recipe: Recipe, arena: Arena, group: Group): Promise<TrainingOptimizer> {
  const measured = needsMeasurements(recipe) ? await measureLink(group) : undefined;
  const hosts = needsHosts(recipe)
    ? await hostsOfRanks(group, readWorldEnvironment(), {
        choice: "exchange.vote: hierarchical",
        key: "exchange.ranksPerHost",
      })
    : undefined;
  // Rounds travel beside all other messages, so they have a group of their own.
  const carrying = recipe.local ? (await group.split(0))! : group;
  const stepTogether = recipe.local?.within === "host" ? await hostsThatStep(recipe.local, group) : undefined;
  return makeOptimizer(recipe, arena, carrying, { measured, hosts, stepTogether });
}

/** The groups of local steps within hosts. */
async function hostsThatStep({ ranksPerHost }: NonNullable<Recipe["local"]>, group: Group): Promise<HostGroups> {
  const asks = { choice: "local.within: host", key: "local.ranksPerHost" };
  const hostOf =
    ranksPerHost === undefined
      ? await hostsOfRanks(group, readWorldEnvironment(), asks)
      : hostsOf(group.size, ranksPerHost);
  return hostGroups(group, hostOf);
}

/**
 * Makes the optimizer where the surroundings are known. Sends nothing. With local steps the optimizer closes `group`,
 * which nothing else may use.
 */
export function makeOptimizer(
  recipe: Recipe,
  arena: Arena,
  group: Group,
  surroundings: Surroundings,
): TrainingOptimizer {
  const { optimizer, local, overlap, bucket, compareEvery } = recipe;
  const { clip, clipBy } = optimizer;
  const [own, ofRounds] = methodsIn(recipe).map((method) =>
    groupsOf(method, arena.segments, { frozen: recipe.adapter !== undefined }),
  );
  const ofRanks = problemsAmongRanks(recipe, surroundings.stepTogether?.layout.hosts ?? group.size);
  if (ofRanks.length > 0) throw new OptionsError(ofRanks);
  try {
    const schemes = schemesOf(recipe, surroundings);
    const { data, weight } = recipe.parallel;
    const parallel = { data: data ?? Math.floor(group.size / weight), weight };
    meshOf(group, parallel); // also where local steps need none
    const sending = { schemes, ...defined({ bucket, measured: surroundings.measured }) };
    const built =
      local && ofRounds
        ? localSteps({ ...local, steps: recipe.steps }, arena, group, {
            inner: { ...own!, clip, clipBy, overlap, compareEvery },
            outer: { ...ofRounds, ...sending, compareEvery: Math.ceil(compareEvery / local.syncEvery) },
            hosts: surroundings.stepTogether,
          })
        : new Optimizer(arena, group, { ...own!, parallel, clip, clipBy, overlap, compareEvery, ...sending });
    checkVotes(recipe, built);
    return built;
  } catch (error) {
    throw error instanceof OverlapError || error instanceof RangeError ? inKeys(error, optimizer) : error;
  }
}

function localSteps(
  { optimizer, within, ranksPerHost: _, ...options }: NonNullable<Recipe["local"]> & Pick<Recipe, "steps">,
  arena: Arena,
  group: Group,
  methods: { inner: OptimizerOptions; outer: OptimizerOptions; hosts: HostGroups | undefined },
): LocalSteps {
  if (within === "host" && !methods.hosts)
    throw new OptionsError([
      "local.within: host: local.ranksPerHost is missing: give the number of ranks on a host, which no launcher says here",
    ]);
  return new LocalSteps(arena, group, { ...options, ...methods, outerLr: optimizer.lr });
}

/** The error of an optimizer or its schemes, with the key that chooses it. */
function inKeys(error: RangeError | OverlapError, optimizer: Recipe["optimizer"]): OptionsError {
  const key =
    error instanceof UnsupportedOutcomeError
      ? "exchange.vote"
      : error instanceof SumTooWideError
        ? error.of === "count"
          ? "exchange.width"
          : `optimizer.${definitionOf(optimizer).widthOfSums ?? "name"}`
        : undefined;
  return new OptionsError([key ? { path: key, problem: error.message } : error.message]);
}

/** The keys of a recipe that change nothing with this model, a line each. */
export function remarksOnModel(recipe: Recipe, { segments }: Arena, optimizer: TrainingOptimizer): string[] {
  const { gradient, dense, computed } = recipe.exchange;
  const remark = gradient && remarkOnGradient(gradient, segments);
  const idle = (key: string, type: DenseType, what: string, kinds: readonly Message["kind"][]) =>
    type === "f32" || sends(recipe, optimizer, ...kinds)
      ? []
      : [`exchange.${key}: ${type} changes nothing: ${methodName(recipe)} with these options sends ${what}`];
  return [
    ...(remark ? [remark] : []),
    ...remarksOnHosts(optimizer),
    ...idle("dense", dense, "no mean that could have this type", ["mean", "meanAtOwner", "computedMean"]),
    ...idle("computed", computed, "nothing that one rank computes for all", ["fromOwner", "computedMean"]),
  ];
}

function remarksOnHosts(optimizer: TrainingOptimizer): string[] {
  const { hosts = 0, ranksHere = 0 } = (optimizer instanceof LocalSteps && optimizer.layout) || {};
  return hosts === 1 && ranksHere > 1
    ? [
        `local.within: host: all ${ranksHere} ranks share a host, so they step together and a round goes to no other; leave local.within out, or set local.ranksPerHost to fewer`,
      ]
    : [];
}

/** Whether the first step has such a message, or with local steps the first round of any fragment. */
function sends({ local }: Recipe, optimizer: TrainingOptimizer, ...kinds: readonly Message["kind"][]): boolean {
  const requests = Array.from({ length: local?.syncEvery ?? 1 }, (_, step) => optimizer.requests(step)).flat();
  return requests.some(({ rounds }) => rounds.flat().some(({ kind }) => kinds.includes(kind)));
}

/** A way to count votes has no effect where nothing votes. A rank that carries no rounds leaves it to those that do. */
function checkVotes(recipe: Recipe, optimizer: TrainingOptimizer): void {
  const { vote } = recipe.exchange;
  if (vote === "all-to-all" || !optimizer.voters || sends(recipe, optimizer, "vote")) return;
  throw new OptionsError([
    `exchange.vote: ${(recipe.local ?? recipe).optimizer.name} with these options sends no votes, and vote is ${vote}; leave exchange.vote out, or take an optimizer that votes, such as lion-cub with its defaults`,
  ]);
}

/** Whether the recipe leaves a choice to what the network costs. */
const needsMeasurements = ({ exchange, bucket }: Recipe) => takes(exchange.vote, "measured") || bucket === "auto";

/** Whether the recipe leaves to the launcher which ranks share a host. */
const needsHosts = ({ exchange }: Recipe) => takes(exchange.vote, "hosts") && exchange.ranksPerHost === undefined;

interface Surroundings {
  readonly measured?: Measured | undefined;
  readonly hosts?: readonly number[] | undefined;
  readonly stepTogether?: HostGroups | undefined; // of local.within: host
}

/**
 * The schemes for votes and means. `vote: auto` needs `measured`, and `vote: hierarchical` without ranksPerHost needs
 * `hosts`. Throws `OptionsError`.
 */
export function schemesOf({ exchange }: Pick<Recipe, "exchange">, surroundings: Surroundings = {}): ChosenSchemes {
  const { vote, dense: type, computed, gradient: _, buffers: __, ...given } = exchange;
  const options = defined(given);
  const problems = Object.keys(options)
    .filter((key) => !takes(vote, key))
    .map((key) => {
      const others = (Object.keys(voteSchemes) as VoteSchemeName[]).filter((name) => takes(name, key));
      return `exchange.${key}: only vote: ${others.join(" and ")} has it, and vote is ${vote}`;
    });
  if (takes(vote, "hosts") && exchange.ranksPerHost === undefined && surroundings.hosts === undefined)
    problems.push(`exchange.vote: ${vote}: exchange.ranksPerHost is missing: give the number of ranks on a host`);
  if (problems.length > 0) throw new OptionsError(problems);
  try {
    const { create }: VoteSchemeEntry = voteSchemes[vote];
    return { votes: create({ ...options, ...defined(surroundings) }), means: dense(type), computed };
  } catch (error) {
    throw error instanceof RangeError ? new OptionsError([`exchange.vote: ${error.message}`]) : error;
  }
}

/** Whether a vote scheme takes an option. */
const takes = (vote: VoteSchemeName, option: string) => (voteSchemes[vote].takes as readonly string[]).includes(option);

/** The options that have a value. */
function defined<T extends object>(options: T): { [K in keyof T]: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as never;
}
