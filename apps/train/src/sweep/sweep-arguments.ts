import { readFileSync } from "node:fs";
import { OptionsError, parseArguments, wholeNumberFrom } from "@terse/options";
import { trainFlags } from "../arguments.ts";
import { dottedKeys, recipeKeys } from "../recipe-schema.ts";

/** Those of ./terse train that each run of a sweep may have, too. */
const { nprocPerNode, maxRestarts, shutdownTimeout, initFrom, newHead, engine, emulateLink, deadline, outage } =
  trainFlags;
const ofTrain = { maxRestarts, shutdownTimeout, initFrom, newHead, engine, emulateLink, deadline, outage } as const;

const flagsOfSweep = {
  ...ofTrain,
  nprocPerNode,
  tensorboard: "switch",
  recipe: String,
  data: String, // the same as --data.path=PATH
  seeds: wholeNumberFrom({ least: 1, most: 1e4 }),
  jobs: wholeNumberFrom({ least: 1, most: 1024 }), // runs side by side
  out: String,
  resume: String, // a sweep's folder
  dryRun: "switch",
  json: "switch",
} as const;

/** A sweep as the command line asks for it. */
export interface SweepArguments {
  readonly recipe: string | undefined;
  readonly given: readonly string[]; // "optimizer.lr=1e-3,2e-3"
  readonly seeds: number | undefined;
  readonly jobs: number | undefined;
  readonly ranks: number;
  readonly flags: readonly string[]; // of ./terse train
  readonly out: string | undefined;
  readonly resume: string | undefined;
  readonly dryRun: boolean;
  readonly json: boolean;
}

export const usage = (): string => readFileSync(new URL("help.txt", import.meta.url), "utf8");

/** Throws `OptionsError` with a line per problem. */
export function readSweepArguments(argv: readonly string[]): SweepArguments | "help" {
  const syntax = { command: "./terse sweep", flags: flagsOfSweep, overrides: recipeKeys, dotted: dottedKeys };
  const { help, flags, words, overrides } = parseArguments(argv, syntax);
  if (help) return "help";
  if (words.length > 1 || (words.length === 1 && flags.recipe !== undefined))
    throw new OptionsError([
      `sweep takes one plain argument, the recipe, got "${words.join(" ")}"; values of one key are separated by commas, without blanks`,
    ]);
  const { recipe = words[0], data, seeds, jobs, out, resume, dryRun, json, nprocPerNode: ranks, ...passed } = flags;
  const given = [...(data === undefined ? [] : [`data.path=${JSON.stringify(data)}`]), ...overrides];
  if (resume !== undefined && (out ?? recipe ?? seeds ?? ranks ?? given[0] ?? Object.keys(passed)[0]) !== undefined)
    throw new OptionsError([
      "--resume: goes on with the plan of a sweep, and takes --jobs, --dry-run and --json alone; give the whole command again, with --out FOLDER, to add runs to it",
    ]);
  if (passed.newHead && passed.initFrom === undefined)
    throw new OptionsError(["--new-head: is for --init-from, whose weights it takes without their head; add that"]);
  if (seeds !== undefined && given.some((each) => /^seed=.*,/.test(each)))
    throw new OptionsError([
      "--seeds and several values of --seed exclude each other; --seeds N takes N seeds from --seed on",
    ]);
  return {
    recipe,
    given,
    seeds,
    jobs,
    ranks: ranks ?? 2,
    flags: Object.keys(passed).map((name) => flagText(name, argv)),
    out,
    resume,
    dryRun: dryRun === true,
    json: json === true,
  };
}

/** A flag as the command line has it, in one word: the last one counts. */
function flagText(name: string, argv: readonly string[]): string {
  const flag = `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  const at = argv.findLastIndex((word) => word === flag || word.startsWith(`${flag}=`));
  const word = argv[at]!;
  const isSwitch = (flagsOfSweep as Record<string, unknown>)[name] === "switch";
  return word !== flag || isSwitch ? word : `${flag}=${argv[at + 1]}`;
}
