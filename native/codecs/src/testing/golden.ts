/** Golden vectors as `codecs_check --vectors` reads them; check/vectors.h describes the lines. */
import { globSync, readFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { EncodeCall, Parameters } from "../index.ts";

export interface CodecCase {
  parameters: Parameters;
  call: Omit<EncodeCall, "hold"> & { hold?: string };
  x: number[];
  wire: string;
  scale: number;
  sum: number[];
}

export interface VoteCase {
  n: number;
  votes: (string | null)[];
  majorityPlus: string;
  majorityMinus: string;
  plus: string;
  nonzero: string;
  planes: string[];
}

/** Parameters that are words in JavaScript, and numbers in C. */
const words: Readonly<Record<string, readonly string[]>> = {
  levels: ["uniform", "without-zero", "logarithmic"],
  indices: ["fixed", "elias-fano"],
  values: ["f32", "f16", "2bit", "sign"],
};

const source = `${import.meta.dirname}/../../../../packages/codecs/src`;
/** Every codec's vectors, and the vote's. */
export const golden: { codec: string; cases: (CodecCase | VoteCase)[] }[] = globSync("{codecs/*,vote}/vectors.json", {
  cwd: source,
})
  .sort()
  .map((file) => ({
    codec: basename(dirname(file)),
    cases: JSON.parse(readFileSync(`${source}/${file}`, "utf8")).cases,
  }));

interface UnitsCase {
  codec: string;
  parameters: Parameters;
  call: CodecCase["call"];
  units: number[];
  x: number[];
  wire: string;
  summed: string;
  sum: number[];
}

const fp32 = (values: number[]): string => Buffer.from(new Float32Array(values).buffer).toString("hex");

/** One case. */
export function textOf(codec: string, vector: CodecCase | VoteCase): string {
  const lines = "votes" in vector ? voteLines(vector) : codecLines(vector);
  return `${[`codec ${codec}`, ...lines, "done"].join("\n")}\n`;
}

/**
 * The cases of units that ranks agreed on: the wire of one rank, and what the fields of all of them added up stand for.
 */
export const goldenUnits: string[] = JSON.parse(readFileSync(`${source}/shared/levels/units.json`, "utf8")).cases.map(
  ({ codec, parameters, call, units, x, wire, summed, sum }: UnitsCase) => {
    const zeros = fp32(x.map(() => 0));
    const lines = codecLines({ parameters, call, x, wire, scale: 1, sum: sum.map((value) => value + 0) });
    return `${[`codec ${codec}`, ...lines, `units ${fp32(units)}`, `summed ${summed}`, `before ${zeros}`, "done"].join("\n")}\n`;
  },
);

function codecLines({ parameters, call, x, wire, scale, sum }: CodecCase): string[] {
  return Object.entries({ ...parameters, ...call })
    .map(([name, value]) => `${name} ${written(name, value)}`)
    .concat(`x ${fp32(x)}`, `wire ${wire}`, `scale ${fp32([scale])}`, `sum ${fp32(sum)}`);
}

function written(name: string, value: unknown): string {
  if (name === "segments") {
    let end = 0;
    const ends = (value as number[]).map((length) => (end += length));
    return [ends.length, ...ends].join(" ");
  }
  if (Object.hasOwn(words, name)) return String(words[name]!.indexOf(value as string));
  if (name === "clip") return String(new Uint32Array(new Float32Array([value as number]).buffer)[0]);
  return String(typeof value === "boolean" ? Number(value) : value);
}

function voteLines({ n, votes, majorityPlus, majorityMinus, plus, nonzero, planes }: VoteCase): string[] {
  return [
    `n ${n}`,
    ...votes.map((vote) => (vote === null ? "absent -" : `vote ${vote}`)),
    ...planes.map((plane) => `plane ${plane}`),
    `majority-plus ${majorityPlus}`,
    `majority-minus ${majorityMinus}`,
    `plus ${plus}`,
    `nonzero ${nonzero}`,
  ];
}
