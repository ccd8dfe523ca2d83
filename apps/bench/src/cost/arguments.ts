/** What `./terse cost` is asked. */
import { parseLink } from "@terse/collectives";
import type { Network } from "@terse/exchange";
import { nearest, OptionsError } from "@terse/options";

/** A network with the name it goes by in a picture. */
export interface NamedNetwork extends Network {
  readonly name: string;
}

export interface Arguments {
  help: boolean;
  networks: NamedNetwork[];
  parameters: number[];
  ranks: number; // up to so many
  wordBits: number;
  valueBits: number;
  json?: string; // file, or - for standard output
  svg?: string;
}

/**
 * The paper's setting. Its machines have 200 Gbit/s of InfiniBand a GPU, and its "Ethernet", which is sockets over it, adds up 774 M
 * parameters of 32 bits on 4 GPUs in 756 ms (Table A.1): 2 · 3/4 · 774 M · 32 bits, 49 Gbit/s. It tells no latencies: these are what
 * such networks have. Its small vector stands for one of many layers or buckets, its large one for a whole GPT.
 */
const paper = {
  networks: ["200gbit,2us", "49gbit,50us"],
  parameters: [1e6, 774e6],
  ranks: 4096,
};

export const usage = `usage: ./terse cost [options]     what a majority vote costs by the Lion Cub paper's model (Table 1, Figure 2), up to thousands of ranks

  --link RATE,LATENCY   a network: 10gbit,50us (${paper.networks.join(" and ")}; may be repeated)
  --alpha S --beta S    the same in the model's own terms: seconds a message, seconds a byte
  --parameters N        values of a vote: 1000000, 350k, 774M, 7G (1M and 774M; may be repeated)
  --ranks N             up to so many (${paper.ranks}), 2 to a million
  --word-bits N         bits of a word that is not compressed (32)
  --value-bits N        bits of a value that is (1)
  --svg FILE            draw it
  --json FILE           all numbers (- for standard output)

What your own network costs, measured: ./terse bench cost-model
`;

const flags = [
  "--link",
  "--alpha",
  "--beta",
  "--parameters",
  "--ranks",
  "--word-bits",
  "--value-bits",
  "--json",
  "--svg",
];

interface Range {
  readonly least: number;
  readonly most: number;
  readonly whole?: boolean;
}

export function readArguments(argv: readonly string[]): Arguments {
  const given = new Map<string, string[]>();
  const refuse = (why: string) => new OptionsError([`${why} See ./terse cost --help.`]);
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i]!;
    if (word === "--help" || word === "-h") return { ...defaults(), help: true };
    const equals = word.indexOf("=");
    const name = equals < 0 ? word : word.slice(0, equals);
    if (!flags.includes(name)) {
      const near = nearest(name, flags);
      throw refuse(`${name}: unknown flag${near ? `; did you mean ${near}?` : "."}`);
    }
    const value = equals < 0 ? argv[++i] : word.slice(equals + 1);
    if (!value || (equals < 0 && value.startsWith("--"))) throw refuse(`${name} needs a value.`);
    given.set(name, [...(given.get(name) ?? []), value]);
  }

  const number = (name: string, text: string, { least, most, whole = true }: Range) => {
    const value = countOf(text);
    if (!(value >= least && value <= most) || (whole && !Number.isInteger(value)))
      throw refuse(`${name}: expected a ${whole ? "whole " : ""}number from ${least} to ${most}, got "${text}".`);
    return value;
  };
  const last = (name: string, range: Range) => {
    const text = given.get(name)?.at(-1);
    return text === undefined ? undefined : number(name, text, range);
  };
  const args: Arguments = { ...defaults() };
  const alpha = last("--alpha", { least: 0, most: 3600, whole: false });
  const beta = last("--beta", { least: 1e-12, most: 8, whole: false }); // down to 1 bit a second
  if ((alpha === undefined) !== (beta === undefined)) throw refuse("--alpha and --beta make one network together.");
  const links = given.get("--link") ?? [];
  if (links.length > 0 || alpha !== undefined) args.networks = links.map((link) => networkOf(link, refuse));
  if (alpha !== undefined && beta !== undefined)
    args.networks.push({ name: `α ${alpha} s, β ${beta} s/byte`, alpha, beta });
  if (given.has("--parameters"))
    args.parameters = given.get("--parameters")!.map((text) => number("--parameters", text, { least: 1, most: 1e12 }));
  args.ranks = last("--ranks", { least: 2, most: 1e6 }) ?? args.ranks;
  args.wordBits = last("--word-bits", { least: 1, most: 64 }) ?? args.wordBits;
  args.valueBits = last("--value-bits", { least: 1, most: 64 }) ?? args.valueBits;
  const [json, svg] = [given.get("--json")?.at(-1), given.get("--svg")?.at(-1)];
  return { ...args, ...(json !== undefined && { json }), ...(svg !== undefined && { svg }) };
}

function defaults(): Arguments {
  const networks = paper.networks.map((link) => networkOf(link, (why) => new OptionsError([why])));
  return { help: false, networks, parameters: paper.parameters, ranks: paper.ranks, wordBits: 32, valueBits: 1 };
}

function networkOf(text: string, refuse: (why: string) => Error): NamedNetwork {
  try {
    const { bitsPerSecond, latency } = parseLink(text);
    return { name: nameOf(text), alpha: latency, beta: 8 / bitsPerSecond };
  } catch (error) {
    throw refuse(`--link: ${(error as Error).message}.`);
  }
}

/** "49gbit,50us" → "49 Gbit/s, 50 µs". */
const nameOf = (link: string) =>
  link
    .toLowerCase()
    .replace(/([kmg]?)bit/, (_, prefix: string) => ` ${prefix === "k" ? "k" : prefix.toUpperCase()}bit/s`)
    .replace(/,([\d.]+)(us|ms|s)$/, (_, value, unit) => `, ${value} ${unit.replace("u", "µ")}`);

/** "774M" → 774 000 000; NaN where it is no number. */
function countOf(text: string): number {
  const match = /^(\d+(?:\.\d*)?(?:e[-+]?\d+)?)([kMG]?)$/.exec(text.replaceAll("_", ""));
  return match ? Number(match[1]) * { "": 1, k: 1e3, M: 1e6, G: 1e9 }[match[2] as "" | "k" | "M" | "G"] : Number.NaN;
}
