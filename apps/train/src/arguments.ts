import { OptionsError } from "@terse/options";

/** What the command line says. Everything that is not a flag below is an override of the recipe. */
export interface Arguments {
  command: "train" | "sample";
  help: boolean;
  recipe?: string; // file
  processes: number; // ranks on this machine
  masterPort: number; // 0: any free port
  deadline: number; // seconds a rank may take to arrive, or to answer
  out?: string; // the run's folder
  resume?: string; // a run's folder
  overrides: string[]; // "optimizer.lr=3e-4"
  positional: string[];
  prompt: string;
  bytes: number;
  temperature: number;
  seed: number;
}

export const usage = `usage:
  ./terse train [options] [--KEY=VALUE …]    train, by default a small GPT with 1-bit Lion Cub on two processes
  ./terse sample [RUN] [options]             let the model of a run continue a text (the newest run if none is named)

train:
  --nproc-per-node N    rank processes on this machine (2)
  --recipe FILE         the run as YAML (apps/train/recipes/gpt-small.yaml)
  --data PATH           a file or folder of text, the same as --data.path=PATH
  --out FOLDER          where the run's files go (runs/NAME-TIME)
  --resume RUN          go on where that run was saved last
  --master-port PORT    port of the rendezvous (any free one)
  --deadline SECONDS    how long a rank may take to arrive (60)
  --KEY=VALUE           any key of the recipe: --optimizer.lr=3e-4 --optimizer.name=lion --steps=100

sample:
  --prompt TEXT         what to continue
  --bytes N             how many bytes (400)
  --temperature T       0 takes the likeliest byte every time (0.8)
  --seed N              (0)
`;

const flags = {
  "--nproc-per-node": "processes",
  "--recipe": "recipe",
  "--data": "data",
  "--out": "out",
  "--resume": "resume",
  "--master-port": "masterPort",
  "--deadline": "deadline",
  "--prompt": "prompt",
  "--bytes": "bytes",
  "--temperature": "temperature",
  "--seed": "seed",
} as const;

const numbers: Record<string, { least: number; whole: boolean }> = {
  processes: { least: 1, whole: true },
  masterPort: { least: 0, whole: true },
  deadline: { least: 1, whole: false },
  bytes: { least: 1, whole: true },
  temperature: { least: 0, whole: false },
};

export function readArguments(argv: readonly string[]): Arguments {
  const args: Arguments = {
    command: argv[0] === "sample" ? "sample" : "train",
    help: false,
    processes: 2,
    masterPort: 0,
    deadline: 60,
    overrides: [],
    positional: [],
    prompt: "\n",
    bytes: 400,
    temperature: 0.8,
    seed: 0,
  };
  const rest = argv[0] === "train" || argv[0] === "sample" ? argv.slice(1) : [...argv];

  for (let i = 0; i < rest.length; i++) {
    const word = rest[i]!;
    const [name, inline] = word.split(/=(.*)/s, 2) as [string, string | undefined];
    const key = flags[name as keyof typeof flags] as (typeof flags)[keyof typeof flags] | undefined;
    // A recipe has a seed of its own, and `--seed=1` in training means that one.
    const isFlag = key !== undefined && !(key === "seed" && args.command === "train");
    if (word === "--help" || word === "-h") args.help = true;
    else if (isFlag) {
      const value = inline ?? rest[++i];
      if (value === undefined || value === "")
        throw new OptionsError([`${name} needs a value; see ./terse train --help`]);
      if (key === "data") args.overrides.push(`data.path=${JSON.stringify(value)}`);
      else
        (args as unknown as Record<string, unknown>)[key] =
          numbers[key] || key === "seed" ? number(name, key, value) : value;
    } else if (word.startsWith("--") && inline !== undefined) args.overrides.push(word.slice(2));
    else if (word.startsWith("-"))
      throw new OptionsError([`${word}: unknown flag; overrides are written --KEY=VALUE (see ./terse train --help)`]);
    else args.positional.push(word);
  }
  if (args.command === "train" && args.positional.length > 0)
    throw new OptionsError([
      `train takes no plain arguments, got "${args.positional[0]}"; a data path is --data PATH, a recipe --recipe FILE`,
    ]);
  return args;
}

function number(name: string, key: string, text: string): number {
  const value = Number(text);
  const { least, whole } = numbers[key] ?? { least: 0, whole: true };
  if (!Number.isFinite(value) || value < least || (whole && !Number.isInteger(value)))
    throw new OptionsError([`${name}: expected a ${whole ? "whole " : ""}number ≥ ${least}, got "${text}"`]);
  return value;
}
