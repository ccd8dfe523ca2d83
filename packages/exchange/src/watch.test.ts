import { int8, l1, scaledSign, topK } from "@terse/codecs";
import { expect, it } from "vitest";
import { type Exchange, openExchange } from "./exchange.ts";
import { ownedElements } from "./kinds/mean-error-compensated.ts";
import { dense } from "./means/dense.ts";
import { PackedBits } from "./packed-bits.ts";
import { onRanks } from "./testing/on-ranks.ts";
import { type VoteSchemeName, voteSchemes } from "./votes/vote-schemes.ts";
import type { Watch } from "./watch.ts";
import type { Part } from "./watched.ts";

const n = 1000;

interface Seen {
  readonly part: Part;
  readonly began: number;
  readonly ended: number;
}

class Recorder implements Watch {
  readonly seen: Seen[] = [];
  readonly wantsVotes: boolean;
  signs: number[] = [];

  constructor(wantsVotes = false) {
    this.wantsVotes = wantsVotes;
  }

  saw(part: Part, began: number, ended: number): void {
    this.seen.push({ part, began, ended });
  }

  votes(u: PackedBits): void {
    this.signs = [...u.signs];
  }
}

const floats = (rank: number) => Float32Array.from({ length: n }, (_, i) => Math.sin(i * (rank + 1)));

/**
 * Votes that are encoded when the scheme asks for them: plus where the bit pattern 0b0101 has a 1, shifted by the rank.
 */
const votes = (rank: number) =>
  new PackedBits(n, undefined, (bits, from, to) => bits.signs.fill(0x55 << rank, from / 8, Math.ceil(to / 8)));

const requests: Record<string, (exchange: Exchange, rank: number, ranks: number) => Promise<unknown>> = {
  sum: (exchange, rank) => exchange.sum(floats(rank), { into: new Float32Array(n), codec: scaledSign() as never }),
  sumOfFields: (exchange, rank) =>
    exchange.sumOfFields(floats(rank), { into: new Float32Array(n), codec: int8({ block: 512 }) as never }),
  sumOfLevelsDirect: (exchange, rank) =>
    exchange.sumOfLevelsDirect(floats(rank), {
      into: new Float32Array(n),
      codec: l1({ bits: 4, unscaled: true }) as never,
    }),
  sparse: (exchange, rank) =>
    exchange.sparse(floats(rank), { into: new Float32Array(n), codec: topK({ k: 10 }) as never }),
  meanErrorCompensated: (exchange, rank, ranks) =>
    exchange.meanErrorCompensated(floats(rank), {
      into: new Float32Array(n),
      workerError: new Float32Array(n),
      serverError: new Float32Array(ownedElements(n, ranks, rank)),
    }),
};

/** What each of three ranks sees of one request. */
async function watching(
  request: (exchange: Exchange, rank: number, ranks: number) => Promise<unknown>,
  options: object = {},
): Promise<Recorder[]> {
  return onRanks(3, async (group) => {
    const watch = new Recorder();
    await request(openExchange(group, { watch, ...options }), group.rank, group.size);
    await new Promise((done) => setImmediate(done));
    return watch;
  });
}

const schemes = Object.fromEntries(
  Object.keys(voteSchemes)
    .filter((name) => name !== "auto")
    .map((name) => {
      const create = voteSchemes[name as VoteSchemeName].create as (options: object) => unknown;
      return [`votes by ${name}`, create({ ranksPerHost: 2 })];
    }),
);

it.each([
  ...Object.entries(requests).map(([name, request]) => [name, request, {}] as const),
  [
    "means in bf16",
    (exchange: Exchange, rank: number) => exchange.mean(floats(rank)),
    { schemes: { means: dense("bf16") } },
  ] as const,
  ...Object.entries(schemes).map(
    ([name, scheme]) =>
      [
        name,
        (exchange: Exchange, rank: number) => exchange.majority(votes(rank), { tie: "plus" }),
        { schemes: { votes: scheme } },
      ] as const,
  ),
])("sees %s encoded, carried and decoded, in this order, on some rank", async (_, request, options) => {
  const watches = await watching(request, options);
  for (const { seen } of watches) {
    for (const { began, ended } of seen) expect(ended).toBeGreaterThanOrEqual(began);
    const first = (part: Part) => seen.filter((one) => one.part === part).sort((a, b) => a.began - b.began)[0];
    expect(first("encode")!.ended).toBeLessThanOrEqual(seen.filter(({ part }) => part === "wire").at(-1)!.ended);
    expect(first("wire")).toBeDefined();
    expect(first("update")).toBeDefined();
  }
  const decodes = watches.flatMap(({ seen }) => seen.filter(({ part }) => part === "decode"));
  expect(decodes.length).toBeGreaterThan(0);
});

it("shows a watch that wants them this rank's own votes, and the outcome is the same bits", async () => {
  const outcomes = async (wantsVotes: boolean) =>
    onRanks(3, async (group) => {
      const watch = new Recorder(wantsVotes);
      using outcome = await openExchange(group, { watch }).majority(votes(group.rank), { tie: "plus" });
      return { outcome: [...outcome.signs], signs: watch.signs };
    });
  const [shown, hidden] = [await outcomes(true), await outcomes(false)];
  for (const [rank, { outcome, signs }] of shown.entries()) {
    expect(outcome).toEqual(hidden[rank]!.outcome);
    expect(signs).toEqual(new Array(125).fill((0x55 << rank) & 0xff));
    expect(hidden[rank]!.signs).toEqual([]);
  }
});
