import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { EncodeCall, Parameters } from "./index.ts";

interface CodecCase {
  parameters: Parameters;
  call: Omit<EncodeCall, "hold"> & { hold?: string };
  x: number[];
  wire: string;
  scale: number;
  sum: number[];
}

interface VoteCase {
  n: number;
  votes: (string | null)[];
  majorityPlus: string;
  majorityMinus: string;
  plus: string;
  nonzero: string;
  planes: string[];
}

const source = `${import.meta.dirname}/../../../packages/codecs/src`;
const golden = readdirSync(source)
  .filter((codec) => existsSync(`${source}/${codec}/vectors.json`))
  .map((codec) => ({ codec, cases: JSON.parse(readFileSync(`${source}/${codec}/vectors.json`, "utf8")).cases }));
const fp32 = (values: number[]): string => Buffer.from(new Float32Array(values).buffer).toString("hex");

/** As native/codecs/check_vectors.h describes it. */
function textOf(codec: string, vector: CodecCase | VoteCase): string {
  const lines = "votes" in vector ? voteLines(vector) : codecLines(vector);
  return `${[`codec ${codec}`, ...lines, "done"].join("\n")}\n`;
}

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
  if (name === "levels") return String(["uniform", "without-zero", "logarithmic"].indexOf(value as string));
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

function check(input: string) {
  return spawnSync(`${import.meta.dirname}/../build/Release/codecs_check`, ["--vectors"], { input, encoding: "utf8" });
}

describe("every C implementation, without JavaScript", () => {
  it.each(golden)("writes and reads the golden bytes of $codec", ({ codec, cases }) => {
    const { status, stdout, stderr } = check(cases.map((vector: CodecCase) => textOf(codec, vector)).join(""));
    const [, compared, comparisons] = stdout.match(/(\d+) golden cases, (\d+) comparisons, 0 different/) ?? [];
    expect(Number(compared), stdout + stderr).toBe(cases.length);
    expect(Number(comparisons)).toBeGreaterThanOrEqual(cases.length);
    expect(status).toBe(0);
  });

  it.each(golden)("is caught when it writes anything else: $codec", ({ codec, cases }) => {
    const text = textOf(codec, cases.at(-1));
    const line = codec === "vote" ? /^(nonzero .*)(.)$/m : /^(wire .*)(.)$/m;
    const wrong = text.replace(line, (_, most, last) => most + (Number.parseInt(last, 16) ^ 1).toString(16));
    expect(wrong).not.toBe(text);
    const { status, stdout } = check(wrong);
    expect(status).toBe(1);
    expect(stdout).toMatch(/is not the golden one/);
  });

  it("does not pass over what it does not understand", () => {
    expect(check("codec sign\nwidht 3\n").stdout).toContain("line 2 is not understood: widht");
    expect(check("codec sign\nx 00000000\ndone\n").stdout).toContain("line 3 is not understood: done");
    expect(check("codec sing\nx \nwire \nscale 00000000\nsum \ndone\n").stdout).toContain("there is no codec sing");
  });
});
