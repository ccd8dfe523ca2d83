import { readFileSync } from "node:fs";
import { numberFrom, OptionsError, parseArguments, wholeNumberFrom } from "@terse/options";
import { type Address, parseAddress } from "@terse/page/address";
import { type EvalArguments, readEval } from "./eval/eval-arguments.ts";
import { type launcherFlags, launcherFlagsIn, type Place, placeOf } from "./launcher/flags.ts";
import { link, worldFlags } from "./launcher/world-flags.ts";
import { dottedKeys, recipeKeys } from "./recipe-schema.ts";

export const trainFlags = {
  ...worldFlags,
  recipe: String, // file
  data: String, // the same as --data.path=PATH
  out: String, // the run's folder
  resume: String, // a run's folder, or that of one of its saves; auto: the folder of `out`, if it has a save
  initFrom: String, // a folder with weights
  base: String, // the folder of an adapter's base, where it has moved
  newHead: "switch", // with initFrom: all but the head, which stays random
  dashboard: { optional: parseAddress }, // shows the run in a browser
  tensorboard: "switch", // also writes events for TensorBoard
  prometheus: address, // also serves the last numbers: "9464", "0.0.0.0:9464"
  trace: "switch", // the same as --trace.steps=20
  dryRun: "switch", // says what the run would need, and ends
  worldSize: wholeNumberFrom({ least: 1, most: 1e6 }), // ranks of a dry run
  link, // of each rank in a dry run
  flops: numberFrom({ least: 1e6 }), // of each rank in a dry run
} as const;

const sampleFlags = {
  prompt: String,
  bytes: wholeNumberFrom({ least: 1 }),
  temperature: numberFrom({ least: 0 }),
  topK: wholeNumberFrom({ least: 0 }), // 0: all tokens
  topP: numberFrom({ least: 0, most: 1 }), // 1: all tokens
  seed: wholeNumberFrom({ least: 0 }),
};

const chatFlags = {
  chat: "switch", // the prompt is a user's message, and the model answers it
  template: String, // of --chat: chatml, one of the tokenizer's by its name, or a file
} as const;

/** The folder of an adapter's base, where it has moved. */
const baseFlag = { base: String };

type Flag = "switch" | ((text: string) => unknown) | { readonly optional: (text: string) => unknown };
type Values<Flags extends Record<string, Flag>> = {
  [Name in keyof Flags]?: Flags[Name] extends (text: string) => infer T ? T : true;
};

/** A training run as the command line asks for it. */
export interface TrainArguments
  extends Place,
    Omit<Values<Omit<typeof trainFlags, keyof typeof launcherFlags>>, "data" | "trace" | "dashboard"> {
  readonly command: "train";
  readonly deadline: number;
  readonly dashboard?: Address;
  readonly overrides: readonly string[]; // "optimizer.lr=3e-4"
}

/** A text to write, as the command line asks for it. */
export interface SampleArguments
  extends Required<Values<typeof sampleFlags>>,
    Values<typeof chatFlags & typeof baseFlag> {
  readonly command: "sample";
  readonly run: string | undefined; // its folder; the newest run where none is named
}

/** The help of these commands, as `./terse` prints it without Node. */
export const usage = ["help.txt", "recipe-keys.txt"]
  .map((file) => readFileSync(new URL(file, import.meta.url), "utf8"))
  .join("\n");

/**
 * Throws `OptionsError` with a line per problem. What the command line does not say of the machines may be in the
 * environment.
 */
export function readArguments(
  [command, ...argv]: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): TrainArguments | SampleArguments | EvalArguments | "help" {
  if (command === "train") return readTrain(argv, env);
  if (command === "sample") return readSample(argv);
  if (command === "eval") return readEval(argv, env);
  throw new OptionsError([`${command ?? "nothing"}: the commands are train, sample and eval; see ./terse help`]);
}

function readTrain(argv: readonly string[], env: NodeJS.ProcessEnv): TrainArguments | "help" {
  const syntax = { command: "./terse train", flags: trainFlags, overrides: recipeKeys, dotted: dottedKeys };
  const { help, flags, words, overrides } = parseArguments(argv, syntax);
  if (help) return "help";
  const [recipe, ...more] = words;
  const isRecipe = recipe === undefined || (more.length === 0 && /\.(ya?ml|json)$|^[\w-]+$/.test(recipe));
  if (!isRecipe || (recipe !== undefined && flags.recipe !== undefined))
    throw new OptionsError([
      `train takes one plain argument, the recipe, got "${words.join(" ")}"; a data path is --data PATH`,
    ]);
  const { data, trace, ...given } = { ...flags, ...(recipe !== undefined && { recipe }) };
  const goesOn = given.resume !== undefined && given.resume !== "auto";
  if (given.resume === "auto" && given.out === undefined)
    throw new OptionsError([
      "--resume auto: goes on from the last save in the run's folder, or starts; name that folder with --out FOLDER",
    ]);
  for (const other of ["out", "recipe"] as const)
    if (goesOn && given[other] !== undefined)
      throw new OptionsError([
        `--${other} and --resume exclude each other: a resumed run keeps its folder and its recipe`,
      ]);
  if (goesOn && given.initFrom !== undefined)
    throw new OptionsError(["--init-from and --resume exclude each other: a resumed run has its own weights"]);
  if (given.base !== undefined && given.initFrom === undefined && given.resume === undefined)
    throw new OptionsError([
      "--base: is where the base of an adapter is, that --init-from or --resume names; a run with a new adapter begins with --init-from FOLDER",
    ]);
  if (given.newHead && given.initFrom === undefined)
    throw new OptionsError(["--new-head: is for --init-from, whose weights it takes without their head; add that"]);
  const dry = [
    ["--world-size", given.worldSize, "ranks on this machine are --nproc-per-node"],
    ["--link", given.link, "a training on a slow link is --emulate-link"],
    ["--flops", given.flops, "add it, or drop this flag"],
  ] as const;
  for (const [flag, value, instead] of dry)
    if (value !== undefined && !given.dryRun) throw new OptionsError([`${flag} is for --dry-run; ${instead}`]);
  const path = data === undefined ? [] : [`data.path=${JSON.stringify(data)}`];
  const traced = trace ? ["trace.steps=20"] : [];
  return {
    command: "train",
    deadline: 60,
    ...given,
    ...placeOf({ ...launcherFlagsIn(env), ...given }, env),
    overrides: [...path, ...traced, ...overrides],
  };
}

function readSample(argv: readonly string[]): SampleArguments | "help" {
  const { help, flags, words } = parseArguments(argv, {
    command: "./terse sample",
    flags: { ...sampleFlags, ...chatFlags, ...baseFlag },
  });
  if (help) return "help";
  if (words.length > 1)
    throw new OptionsError([`sample takes one run, got "${words[1]}" too; a text to continue is --prompt TEXT`]);
  if (flags.template !== undefined && !flags.chat)
    throw new OptionsError(["--template: is for --chat, which asks for an answer by it; add that, or leave it out"]);
  return {
    command: "sample",
    run: words[0],
    prompt: "\n",
    bytes: 400,
    temperature: 0.8,
    topK: 0,
    topP: 1,
    seed: 0,
    ...flags,
  };
}

/** A port of this machine, or a host and a port. */
function address(text: string): { host: string; port: number } {
  const [, host = "127.0.0.1", port] = /^(?:\[?([^\]]+?)\]?:)?(\d+)$/.exec(text) ?? [];
  if (port === undefined || Number(port) > 65535) throw new OptionsError([`expected PORT or HOST:PORT, got "${text}"`]);
  return { host, port: Number(port) };
}
