/** The command line of `./terse eval`. */
import { OptionsError, parseArguments } from "@terse/options";
import { launcherFlagsIn, type Place, placeOf } from "../launcher/flags.ts";
import { worldFlags } from "../launcher/world-flags.ts";
import { dottedKeys } from "../recipe-schema.ts";

const evalFlags = {
  ...worldFlags,
  data: String, // the same as --data.path=PATH
  base: String, // the folder of an adapter's base, where it has moved
  json: "switch",
} as const;

/** The keys of a recipe that change what is evaluated, and how. */
const evalKeys = ["data", "evaluate", "device", "precision"];

/** An evaluation as the command line asks for it. */
export interface EvalArguments extends Place {
  readonly command: "eval";
  /** Its folder, or that of weights; the newest run where none is named. */
  readonly run: string | undefined;
  readonly base?: string;
  readonly json: boolean;
  readonly engine?: ReturnType<typeof worldFlags.engine>;
  readonly emulateLink?: string;
  readonly deadline: number;
  readonly outage?: number;
  readonly overrides: readonly string[]; // "data.batchSize=8"
}

/** Throws `OptionsError`. */
export function readEval(argv: readonly string[], env: NodeJS.ProcessEnv): EvalArguments | "help" {
  const dotted = () => dottedKeys().filter((key) => evalKeys.includes(key.split(".")[0]!));
  const syntax = { command: "./terse eval", flags: evalFlags, overrides: evalKeys, dotted };
  const { help, flags, words, overrides } = parseArguments(argv, syntax);
  if (help) return "help";
  if (words.length > 1)
    throw new OptionsError([`eval takes one run or folder, got "${words[1]}" too; data is named with --data PATH`]);
  if (overrides.some((override) => override.startsWith("evaluate.every=")))
    throw new OptionsError(["--evaluate.every: eval evaluates once, and takes evaluate.windows alone; drop it"]);
  const { data, json = false, ...given } = flags;
  const path = data === undefined ? [] : [`data.path=${JSON.stringify(data)}`];
  return {
    command: "eval",
    run: words[0],
    json,
    deadline: 60,
    ...given,
    ...placeOf({ ...launcherFlagsIn(env), ...given }, env, 1),
    overrides: [...path, ...overrides],
  };
}
