/**
 * The contract of vote schemes, tested on up to nine ranks of one process. The oracle counts plain numbers, and packs
 * and unpacks by itself.
 */
import { type Group, loopback } from "@terse/collectives";
import { describe, expect, it } from "vitest";
import { openExchange, PackedBits, StepRefusedError, Tally } from "../index.ts";
import { Ternary } from "../packed-bits.ts";
import { Scratch, scratchOf } from "../scratch.ts";
import type { Outcome, Result } from "../votes/outcome.ts";
import type { VoteScheme } from "../votes/vote-scheme.ts";
import { vote } from "./alone.ts";

export interface VoteContract {
  /** The scheme for a number of ranks. */
  scheme: (ranks: number) => VoteScheme;
  /**
   * The outcome of the ranks' votes (±1, one for each rank) on one element: −1, 0 or 1, or the number of plus votes.
   */
  oracle?: (votes: readonly number[], outcome: Outcome) => number;
}

const worlds = [1, 2, 3, 4, 5, 6, 7, 8, 9];
const lengths = [0, 1, 63, 64, 65, 1000, 100_003];

export function voteContract(name: string, { scheme: schemeFor, oracle = outcomeOf }: VoteContract): void {
  describe(`the contract of ${name}`, () => {
    describe.each(worlds)("on %i ranks", (ranks) => {
      const scheme = schemeFor(ranks);

      it.each(scheme.outcomes)(
        "gives the outcome of the counted votes, the same on every rank, and sends and holds as many bytes as its closed form, outcome %s",
        async (outcome) => {
          // The outcome of each pattern of votes, one bit for each rank: there are fewer patterns than elements.
          const outcomes = Array.from({ length: 2 ** ranks }, (_, pattern) =>
            oracle(
              Array.from({ length: ranks }, (_, r) => ((pattern >> r) & 1 ? 1 : -1)),
              outcome,
            ),
          );
          const planesOf = await onRanks(ranks, scheme, async (group) => {
            const all: Buffer[][] = []; // of each length
            let before = { bytes: 0, messages: 0 };
            for (const n of lengths) {
              const guarded = new Guarded();
              scratchOf(group).peak = 0;
              const result = await vote(scheme, group, packed(group.rank, n, guarded), { outcome });
              const after = sentBy([group, ...(await scheme.opened(group))]);
              const cost = {
                bytes: after.bytes - before.bytes,
                messages: after.messages - before.messages,
                peakBytes: scratchOf(group).peak,
              };
              expect(cost, `n = ${n}, rank ${group.rank}`).toEqual(scheme.cost(n, ranks, group.rank, outcome));
              before = after;
              expect(guarded.intact()).toBe(true);
              if (group.rank === 0) {
                const got = unpacked(result, n);
                const wrong = patterns(ranks, n).findIndex((of, i) => outcomes[of] !== got[i]);
                expect(wrong, `n = ${n}: the first element that is not the outcome`).toBe(-1);
              }
              for (const plane of planesIn(result)) expect(padOf(plane)).toBe(0);
              all.push(planesIn(result).map(({ wire }) => Buffer.from(wire)));
              result[Symbol.dispose]();
              expect(scratchOf(group).live).toBe(0);
            }
            return all;
          });
          for (const [k, n] of lengths.entries())
            for (const [j, plane] of planesOf[0]![k]!.entries())
              for (const of of planesOf) expect(of[k]![j]!.equals(plane), `n = ${n}`).toBe(true);
        },
      );

      it("sends every rank's refusal to every rank, and keeps no memory", async () => {
        const hows = ["before the vote", "while encoding"] as const;
        const cases = Array.from({ length: ranks }, (_, refusing) => hows.map((how) => ({ refusing, how }))).flat();
        const errorsOf = await onRanks(ranks, scheme, async (group) => {
          const all: { error: unknown; live: number }[] = []; // of each case; a refused vote leaves the group as it was
          for (const { refusing, how } of cases) {
            const bad = group.rank === refusing;
            const u = new PackedBits(1000, undefined, (bits, from, to) => {
              if (bad && how === "while encoding" && to === 1000) bits.firstNonFinite = Math.max(from, 999);
              bits.wire.fill(0x55, from / 8, Math.ceil(to / 8));
            });
            const refusal = bad && how === "before the vote" ? "the loss is not finite" : undefined;
            const outcome = scheme.outcomes.at(-1)!; // of the most planes
            const error = await vote(scheme, group, u, { outcome, refusal }).catch((error: unknown) => error);
            all.push({ error, live: scratchOf(group).live });
          }
          return all;
        });
        for (const [k, { refusing, how }] of cases.entries()) {
          const reason = how === "before the vote" ? "the loss is not finite" : "the gradient is not finite";
          for (const errors of errorsOf) {
            const { error, live } = errors[k]!;
            expect(error).toBeInstanceOf(StepRefusedError);
            expect((error as StepRefusedError).message).toContain(`rank ${refusing} refuses the step: ${reason}`);
            expect(live).toBe(0);
          }
        }
      });

      it("encodes every element once, in order, before it is sent", async () => {
        await onRanks(ranks, scheme, async (group) => {
          let next = 0;
          const given = packed(group.rank, 1000);
          const u = new PackedBits(1000, undefined, (bits, from, to) => {
            expect(from).toBe(next);
            expect(from % 64).toBe(0);
            next = to;
            bits.wire.set(given.signs.subarray(from / 8, Math.ceil(to / 8)), from / 8);
          });
          const lazy = await vote(scheme, group, u, { outcome: "minus" });
          expect(next).toBe(1000);
          const eager = await vote(scheme, group, packed(group.rank, 1000), { outcome: "minus" });
          expect((lazy as PackedBits).wire).toEqual((eager as PackedBits).wire);
        });
      });

      it.each(["a second group", "the same group"])(
        "keeps apart the votes of several concurrent steps, with outcomes over %s",
        async (over) => {
          const tie = "plus";
          const alone = await onRanks(ranks, scheme, async (group) => {
            const wires: number[][] = [];
            for (let k = 0; k < 4; k++) {
              const v = await vote(scheme, group, packed(group.rank + k, 1700 + k), { outcome: tie });
              wires.push([...(v as PackedBits).wire]);
            }
            return wires;
          });
          const together = await onRanks(ranks, scheme, async (group) => {
            const gather = over === "the same group" ? group : (await group.split(0))!;
            const outcomes: Promise<PackedBits>[] = [];
            for (let k = 0; k < 4; k++) {
              // Ranks request votes at different times.
              for (let i = 0; i < (group.rank * 7 + k) % 5; i++) await new Promise((done) => setImmediate(done));
              const exchange = openExchange(group, { down: gather, schemes: { votes: scheme } });
              outcomes.push(exchange.majority(packed(group.rank + k, 1700 + k), { tie }));
            }
            const wires = (await Promise.all(outcomes)).map(({ wire }) => [...wire]);
            if (gather !== group) await gather.close();
            return wires;
          });
          expect(together).toEqual(alone);
        },
      );
    });
  });
}

const most = Math.max(...lengths);

/** The votes of every rank on every element: a hash, so that every pattern occurs. */
const votesByRank = Array.from({ length: Math.max(...worlds) + 3 }, (_, r) =>
  Uint8Array.from({ length: most }, (_, i) => {
    let h = Math.imul(i + 1, 0x9e3779b1) ^ Math.imul(r + 1, 0x85ebca6b);
    h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d);
    return (h ^ (h >>> 12)) & 1;
  }),
);

/** For each element the ranks that voted plus, one bit for each rank. */
function patterns(ranks: number, n: number): Int32Array {
  const of = new Int32Array(n);
  for (let r = 0; r < ranks; r++) for (let i = 0; i < n; i++) of[i]! |= votesByRank[r]![i]! << r;
  return of;
}

/** The definition of the outcomes. */
export function outcomeOf(votes: readonly number[], outcome: Outcome): number {
  const sum = votes.reduce((a, b) => a + b, 0);
  if (outcome === "tally") return (sum + votes.length) / 2;
  if (sum !== 0) return sum > 0 ? 1 : -1;
  return outcome === "zero" ? 0 : outcome === "plus" ? 1 : -1;
}

export function packed(rank: number, n: number, scratch?: Scratch): PackedBits {
  const u = new PackedBits(n, scratch);
  u.wire.fill(0);
  for (let i = 0; i < n; i++) if (votesByRank[rank]![i]) u.wire[i >> 3]! |= 1 << (i & 7);
  return u;
}

const bitOf = ({ wire }: PackedBits, i: number) => (wire[i >> 3]! >> (i & 7)) & 1;

function unpacked(result: Result, n: number): Int32Array {
  const values = new Int32Array(n);
  for (let i = 0; i < n; i++) {
    if (result instanceof Tally) values[i] = result.planes.reduce((c, plane, k) => c + bitOf(plane, i) * 2 ** k, 0);
    else if (result instanceof Ternary) values[i] = bitOf(result.nonzero, i) * (2 * bitOf(result.plus, i) - 1);
    else values[i] = 2 * bitOf(result, i) - 1;
  }
  return values;
}

function planesIn(result: Result): readonly PackedBits[] {
  if (result instanceof Tally) return result.planes;
  return result instanceof Ternary ? [result.plus, result.nonzero] : [result];
}

/** The bits after the last element. */
function padOf(plane: PackedBits): number {
  let set = 0;
  for (let i = plane.length; i < 8 * plane.wire.length; i++) set += bitOf(plane, i);
  return set;
}

/** Memory with guard bytes on both sides, which show a write out of bounds. */
class Guarded extends Scratch {
  readonly #given: Uint8Array[] = [];

  override take(bytes: number): Uint8Array {
    const memory = new Uint8Array(bytes + 128).fill(0xa5);
    this.#given.push(memory);
    return memory.subarray(64, 64 + bytes);
  }

  override give(): void {}

  intact(): boolean {
    const untouched = (edge: Uint8Array) => edge.every((byte) => byte === 0xa5);
    return this.#given.every((memory) => untouched(memory.subarray(0, 64)) && untouched(memory.subarray(-64)));
  }
}

function sentBy(groups: readonly Group[]): { bytes: number; messages: number } {
  const all = groups.map((group) => group.sent());
  return {
    bytes: all.reduce((sum, { bytes }) => sum + bytes, 0),
    messages: all.reduce((sum, { messages }) => sum + messages, 0),
  };
}

async function onRanks<T>(size: number, scheme: VoteScheme, task: (group: Group) => Promise<T>): Promise<T[]> {
  const groups = loopback(size);
  try {
    return await Promise.all(
      groups.map(async (group) => {
        const result = await task(group);
        await scheme.close(group);
        return result;
      }),
    );
  } finally {
    await Promise.all(groups.map((group) => group.close()));
  }
}
