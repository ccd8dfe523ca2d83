import { parseLink } from "@terse/collectives";
import { nearest, OptionsError } from "@terse/options";

/** What the command line says. In training, everything with an equals sign that is no flag overrides the recipe. */
export interface Arguments {
  command: "train" | "sample";
  help: boolean;
  recipe?: string; // file
  processes: number; // ranks on this machine
  masterPort: number; // 0: any free port
  deadline: number; // seconds a rank may take to arrive
  emulateLink?: string; // "100mbit,1ms"
  engine?: Engine; // what carries the ranks' messages
  out?: string; // the run's folder
  resume?: string; // a run's folder
  overrides: string[]; // "optimizer.lr=3e-4"
  run?: string; // to sample from
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
  --resume RUN          go on where that run was saved last, with its own recipe
  --master-port PORT    port of the rendezvous (any free one)
  --deadline SECONDS    how long a rank may take to arrive (60)
  --engine NAME         what carries the messages: tcp, gloo, mpi or nccl (TERSE_ENGINE, else tcp)
  --emulate-link LINK   every rank's link as slow as 100mbit or 100mbit,1ms (not slowed down)
  --KEY=VALUE           any key of the recipe: --optimizer.lr=3e-4 --optimizer.name=lion --steps=100

sample:
  --prompt TEXT         what to continue
  --bytes N             how many bytes (400)
  --temperature T       0 takes the likeliest byte every time (0.8)
  --seed N              (0)
`;

const engines = ["tcp", "gloo", "mpi", "nccl"] as const;
type Engine = (typeof engines)[number];

function checkEngine(name: string): void {
  if (!engines.includes(name as Engine))
    throw new TypeError(`there is no engine ${name}; there are ${engines.join(", ")}`);
}

interface Flag {
  key: keyof Arguments | "data";
  number?: { least: number; most?: number; whole: boolean };
  check?: (value: string) => unknown; // throws a sentence
}

const flags: Record<Arguments["command"], Record<string, Flag>> = {
  train: {
    "--nproc-per-node": { key: "processes", number: { least: 1, most: 1024, whole: true } },
    "--recipe": { key: "recipe" },
    "--data": { key: "data" },
    "--out": { key: "out" },
    "--resume": { key: "resume" },
    "--master-port": { key: "masterPort", number: { least: 0, most: 65535, whole: true } },
    "--engine": { key: "engine", check: checkEngine },
    "--emulate-link": { key: "emulateLink", check: parseLink },
    "--deadline": { key: "deadline", number: { least: 1, most: 1e6, whole: false } },
  },
  sample: {
    "--prompt": { key: "prompt" },
    "--bytes": { key: "bytes", number: { least: 1, whole: true } },
    "--temperature": { key: "temperature", number: { least: 0, whole: false } },
    "--seed": { key: "seed", number: { least: 0, whole: true } },
  },
};

export function readArguments(argv: readonly string[]): Arguments {
  const args: Arguments = {
    command: argv[0] === "sample" ? "sample" : "train",
    help: false,
    processes: 2,
    masterPort: 0,
    deadline: 60,
    overrides: [],
    prompt: "\n",
    bytes: 400,
    temperature: 0.8,
    seed: 0,
  };
  const known = flags[args.command];
  const rest = argv[0] === "train" || argv[0] === "sample" ? argv.slice(1) : [...argv];

  for (let i = 0; i < rest.length; i++) {
    const word = rest[i]!;
    const equals = word.indexOf("=");
    const name = equals < 0 ? word : word.slice(0, equals);
    const flag = Object.hasOwn(known, name) ? known[name] : undefined;
    if (word === "--help" || word === "-h") args.help = true;
    else if (flag) {
      const value = equals < 0 ? rest[++i] : word.slice(equals + 1);
      if (!value || (equals < 0 && value.startsWith("--")))
        throw new OptionsError([`${name} needs a value; see ./terse ${args.command} --help`]);
      if (flag.key === "data") args.overrides.push(`data.path=${JSON.stringify(value)}`);
      else if (flag.check) Object.assign(args, { [flag.key]: checked(name, value, flag.check) });
      else Object.assign(args, { [flag.key]: flag.number ? number(name, value, flag.number) : value });
    } else if (args.command === "train" && word.startsWith("--") && equals > 0) args.overrides.push(word.slice(2));
    else if (word.startsWith("-")) throw new OptionsError([unknownFlag(name, args.command)]);
    else if (args.command === "sample" && args.run === undefined) args.run = word;
    else
      throw new OptionsError([
        args.command === "train"
          ? `train takes no plain arguments, got "${word}"; a data path is --data PATH, a recipe --recipe FILE`
          : `sample takes one run, got "${word}" too; a text to continue is --prompt TEXT`,
      ]);
  }
  for (const other of ["--out", "--recipe"] as const)
    if (args.resume !== undefined && args[known[other]!.key as "out" | "recipe"] !== undefined)
      throw new OptionsError([
        `${other} and --resume exclude each other: a resumed run keeps its folder and its recipe`,
      ]);
  return args;
}

function unknownFlag(name: string, command: Arguments["command"]): string {
  const near = nearest(name, Object.keys(flags[command]));
  const meant = near ? `; did you mean ${near}?` : ".";
  const overrides = command === "train" ? " Overrides of the recipe are written --KEY=VALUE." : "";
  return `${name}: unknown flag${meant} See ./terse ${command} --help.${overrides}`;
}

function checked(name: string, text: string, check: (value: string) => unknown): string {
  try {
    check(text);
  } catch (error) {
    throw new OptionsError([`${name}: ${(error as Error).message}`]);
  }
  return text;
}

function number(name: string, text: string, { least, most, whole }: NonNullable<Flag["number"]>): number {
  const value = Number(text);
  const range = most === undefined ? `≥ ${least}` : `from ${least} to ${most}`;
  if (!Number.isFinite(value) || value < least || value > (most ?? value) || (whole && !Number.isInteger(value)))
    throw new OptionsError([`${name}: expected a ${whole ? "whole " : ""}number ${range}, got "${text}"`]);
  return value;
}
