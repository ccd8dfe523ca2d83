/** The command line of `./terse cost`. */
import { readFileSync } from "node:fs";
import { parseLink } from "@terse/collectives";
import type { Network } from "@terse/exchange";
import { numberFrom, OptionsError, parseArguments, wholeNumberFrom } from "@terse/options";

/** A network and its name in tables and pictures. */
export interface NamedNetwork extends Network {
  readonly name: string;
}

export interface Arguments {
  readonly networks: readonly NamedNetwork[];
  readonly parameters: readonly number[];
  readonly ranks: number; // the most
  readonly wordBits: number;
  readonly valueBits: number;
  readonly json?: string; // file, or - for standard output
  readonly svg?: string; // file
}

/**
 * The paper's setting. Its machines have 200 Gbit/s of InfiniBand for each GPU. Its "Ethernet" is sockets over
 * InfiniBand: an all-reduce of 774 M parameters of 32 bits takes 756 ms on 4 GPUs (Table A.1), so 2 · 3/4 · 774 M · 32
 * bits travel at 49 Gbit/s. The paper gives no latencies; these are typical of such networks. The small vector stands
 * for one layer or bucket, the large one for a whole GPT.
 */
const paper = {
  networks: ["200gbit,2us", "49gbit,50us"],
  parameters: [1e6, 774e6],
  ranks: 4096,
};

export const usage = readFileSync(new URL("help.txt", import.meta.url), "utf8");

const flags = {
  link: { each: networkOf },
  alpha: numberFrom({ least: 0, most: 3600 }),
  beta: numberFrom({ least: 1e-12, most: 8 }), // down to 1 bit a second
  parameters: { each: wholeNumberFrom({ least: 1, most: 1e12, examples: "350k, 774M or 7G" }, countOf) },
  ranks: wholeNumberFrom({ least: 2, most: 1e6, examples: "12, 4k or 1M" }, countOf),
  wordBits: wholeNumberFrom({ least: 1, most: 64 }),
  valueBits: wholeNumberFrom({ least: 1, most: 64 }),
  json: String,
  svg: String,
} as const;

/** Reads the words of `./terse cost`. Throws `OptionsError` for what it cannot read. */
export function readArguments(argv: readonly string[]): Arguments | "help" {
  const { help, flags: given, words } = parseArguments(argv, { command: "./terse cost", flags });
  if (help) return "help";
  if (words.length > 0) throw new OptionsError([`${words[0] || '""'}: cost takes flags only; see ./terse cost --help`]);
  const { link: links = [], alpha, beta, ...others } = given;
  const networks = [...links];
  if (alpha !== undefined && beta !== undefined) networks.push({ name: `α ${alpha} s, β ${beta} s/byte`, alpha, beta });
  else if (alpha !== undefined || beta !== undefined)
    throw new OptionsError(["--alpha and --beta describe one network together: give both"]);
  const { wordBits = 32, valueBits = 1 } = others;
  if (valueBits > wordBits)
    throw new OptionsError([
      `--value-bits: a compressed value has no more bits than a word, and ${valueBits} is more than --word-bits ${wordBits}`,
    ]);
  return {
    networks: networks.length > 0 ? networks : paper.networks.map(networkOf),
    parameters: paper.parameters,
    ranks: paper.ranks,
    ...others,
    wordBits,
    valueBits,
  };
}

function networkOf(text: string): NamedNetwork {
  const { bitsPerSecond, latency } = parseLink(text);
  return { name: nameOf(text), alpha: latency, beta: 8 / bitsPerSecond };
}

/** "49gbit,50us" → "49 Gbit/s, 50 µs". */
const nameOf = (link: string) =>
  link
    .toLowerCase()
    .replace(/([kmg]?)bit/, (_, prefix: string) => ` ${prefix === "k" ? "k" : prefix.toUpperCase()}bit/s`)
    .replace(/,([\d.]+)(us|ms|s)$/, (_, value, unit) => `, ${value} ${unit.replace("u", "µ")}`);

/** "774M" → 774 000 000; NaN for what is no number. */
function countOf(text: string): number {
  const match = /^(\d+(?:\.\d*)?(?:e[-+]?\d+)?)([kMG]?)$/.exec(text.replaceAll("_", ""));
  return match ? Number(match[1]) * { "": 1, k: 1e3, M: 1e6, G: 1e9 }[match[2] as "" | "k" | "M" | "G"] : Number.NaN;
}
