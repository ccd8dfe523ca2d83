import { readFileSync } from "node:fs";
import { votes as nativeVotes, type Vote, type VoteKernel } from "@terse/native-codecs";
import { describe, expect, it } from "vitest";
import { implementations } from "../implementation.ts";
import { majority, majorityOrZero, tally, tallyPlanes } from "../index.ts";
import { fromHex, toHex } from "../testing/hex.ts";
import { anyBytes, random } from "../testing/inputs.ts";
import { askNumpy, needsPython, python } from "../testing/python.ts";
import { vote as definition } from "./vote.ts";

interface Vectors {
  cases: {
    n: number;
    votes: (string | null)[];
    majorityPlus: string;
    majorityMinus: string;
    plus: string;
    nonzero: string;
    planes: string[];
  }[];
}
const vectors: Vectors = JSON.parse(readFileSync(new URL("vectors.json", import.meta.url), "utf8"));

const { kernels, missing } = implementations(definition, nativeVotes);

/** The results of one election by one implementation, each inside a larger buffer of sentinels. */
function elect(kernel: VoteKernel, votes: readonly Vote[], n: number) {
  const bytes = Math.ceil(n / 8);
  const rooms: Uint8Array[] = [];
  const wire = () => {
    const room = new Uint8Array(bytes + 8).fill(0xa5);
    rooms.push(room);
    return room.subarray(5, 5 + bytes);
  };
  const majorityPlus = wire();
  const majorityMinus = wire();
  const plus = wire();
  const nonzero = wire();
  const planes = Array.from({ length: tallyPlanes(votes.length) }, wire);
  kernel.majority(majorityPlus, votes, n, { tie: "plus" });
  kernel.majority(majorityMinus, votes, n, { tie: "minus" });
  kernel.majorityOrZero(plus, nonzero, votes, n);
  kernel.tally(planes, votes, n);
  const clean = rooms.every((room) =>
    [...room.subarray(0, 5), ...room.subarray(5 + bytes)].every((byte) => byte === 0xa5),
  );
  return { clean, results: { majorityPlus, majorityMinus, plus, nonzero, planes } };
}

/**
 * Plain counting, one element at a time: the oracle. Who is absent is not counted, but the planes have room for
 * everybody.
 */
function counted(votes: readonly Vote[], n: number) {
  const present = votes.filter((wire) => wire !== null);
  const counts = Array.from({ length: n }, (_, i) => present.reduce((count, wire) => count + bit(wire, i), 0));
  const ranks = present.length;
  return {
    majorityPlus: packed(counts.map((c) => 2 * c >= ranks)),
    majorityMinus: packed(counts.map((c) => 2 * c > ranks)),
    plus: packed(counts.map((c) => 2 * c > ranks)),
    nonzero: packed(counts.map((c) => 2 * c !== ranks)),
    planes: Array.from({ length: votes.length.toString(2).length }, (_, k) =>
      packed(counts.map((c) => Math.floor(c / 2 ** k) % 2 === 1)),
    ),
  };
}

const bit = (wire: Uint8Array, i: number): number => Math.floor(wire[Math.floor(i / 8)]! / 2 ** (i % 8)) % 2;

function packed(elements: readonly boolean[]): Uint8Array {
  const wire = new Uint8Array(Math.ceil(elements.length / 8));
  elements.forEach((plus, i) => {
    if (plus) wire[Math.floor(i / 8)]! += 2 ** (i % 8);
  });
  return wire;
}

describe("vote", () => {
  it.skipIf(missing)(`runs natively here${missing ? ` (skipped: ${missing})` : ""}`, () => {
    expect(kernels.map((k) => k.implementation)).toContain("scalar");
  });

  describe.each(kernels.map((kernel) => ({ by: kernel.implementation, kernel })))("$by", ({ kernel }) => {
    it("elects the golden bytes", () => {
      for (const { n, votes, ...expected } of vectors.cases) {
        const { clean, results } = elect(kernel, votes.map(fromHexOrAbsent), n);
        expect({ ...hexed(results), clean }, `${votes.length} ranks, ${n} elements`).toEqual({
          ...expected,
          clean: true,
        });
      }
    });

    it.each([1, 2, 3, 4, 5, 6, 7, 8])("counts every one of the 2^%i patterns, ties by every policy", (ranks) => {
      const n = 2 ** ranks; // element i is pattern i: rank r votes with bit r of i
      const votes = Array.from({ length: ranks }, (_, r) =>
        packed(Array.from({ length: n }, (_, i) => Math.floor(i / 2 ** r) % 2 === 1)),
      );
      const { clean, results } = elect(kernel, votes, n);
      expect(hexed(results)).toEqual(hexed(counted(votes, n)));
      expect(clean).toBe(true);
    });

    it.each([1, 2, 3, 8, 15, 16, 17, 64, 255, 256, 1023, 1024])("counts %i ranks, for any length", (ranks) => {
      for (const n of [0, 1, 7, 8, 9, 63, 64, 65, 70, 513, ...(ranks < 20 ? [4096, 5003] : [])]) {
        // Votes that lean more and more to plus, at odd offsets, with rubbish in the pads: every count occurs.
        const next = random(ranks + n);
        const votes = Array.from({ length: ranks }, () => {
          const wire = new Uint8Array(Math.ceil(n / 8) + 3).subarray(3);
          for (let i = 0; i < wire.length * 8; i++) if (next() < i / n) wire[i >> 3]! |= 1 << (i & 7);
          return wire;
        });
        const { clean, results } = elect(kernel, votes, n);
        expect(hexed(results), `${n} elements`).toEqual(hexed(counted(votes, n)));
        expect(clean, `${n} elements`).toBe(true);
      }
    });

    it.each([2, 3, 9, 17, 100, 1024])("does not count absent ranks, whichever of %i ranks they are", (ranks) => {
      const next = random(ranks);
      for (const chance of [0, 0.1, 0.5, 0.95]) {
        const n = 777;
        const votes: Vote[] = Array.from({ length: ranks }, (_, r) =>
          next() < chance ? null : anyBytes(98, 7000 + r),
        );
        if (!votes.some((wire) => wire)) votes[ranks - 1] = anyBytes(98, ranks);
        const { clean, results } = elect(kernel, votes, n);
        expect(hexed(results)).toEqual(hexed(counted(votes, n)));
        expect(clean).toBe(true);
      }
    });

    it("elects into one of the votes", () => {
      const votes = Array.from({ length: 9 }, (_, r) => anyBytes(1000, r));
      const expected = counted(votes, 8000).majorityPlus;
      kernel.majority(votes[4]!, votes, 8000, { tie: "plus" });
      expect(toHex(votes[4]!)).toBe(toHex(expected));
    });

    // C(P, P/2) / 2^P for P fair coins.
    it.each([
      [2, 0.5],
      [4, 0.375],
      [8, 0.273438],
      [16, 0.196381],
      [32, 0.13995],
      [64, 0.099347],
    ])("%i random ranks tie as often as coins do", (ranks, rate) => {
      const n = 80_000;
      const votes = Array.from({ length: ranks }, (_, r) => anyBytes(n / 8, 1000 * ranks + r));
      const plus = new Uint8Array(n / 8);
      const nonzero = new Uint8Array(n / 8);
      kernel.majorityOrZero(plus, nonzero, votes, n);
      const ties = nonzero.reduce((sum, byte) => sum + 8 - byte.toString(2).replaceAll("0", "").length, 0) / n;
      expect(Math.abs(ties - rate)).toBeLessThan(3 * Math.sqrt((rate * (1 - rate)) / n));
    });
  });

  describe("as people call it", () => {
    const votes = [new Uint8Array([0b011]), new Uint8Array([0b001])];

    it("says of ties what the policy says", () => {
      const out = new Uint8Array(1);
      majority(out, votes, 3, { tie: "plus" });
      expect(out[0]).toBe(0b011);
      majority(out, votes, 3, { tie: "minus" });
      expect(out[0]).toBe(0b001);
      const nonzero = new Uint8Array(1);
      majorityOrZero(out, nonzero, votes, 3);
      expect([out[0], nonzero[0]]).toEqual([0b001, 0b101]);
    });

    it("tallies the plus votes, one bit of the count a plane", () => {
      const planes = [new Uint8Array(1), new Uint8Array(1)];
      tally(planes, votes, 3);
      expect(planes.map((plane) => plane[0])).toEqual([0b010, 0b001]);
      tally(planes, [votes[0]!, null, votes[1]!], 3); // three ranks' planes, two ranks' votes
      expect(planes.map((plane) => plane[0])).toEqual([0b010, 0b001]);
      expect([1, 2, 3, 4, 7, 8, 1023, 1024].map(tallyPlanes)).toEqual([1, 2, 2, 3, 3, 4, 10, 11]);
    });

    it("does as if an absent rank were not there", () => {
      const out = new Uint8Array(1);
      majority(out, [null, ...votes, null], 3, { tie: "minus" }); // 1 of 2 is a tie, and would be too few of 4
      expect(out[0]).toBe(0b001);
      majority(out, [null, ...votes, null], 3, { tie: "plus" });
      expect(out[0]).toBe(0b011);
      const nonzero = new Uint8Array(1);
      majorityOrZero(out, nonzero, [votes[0]!, null], 3);
      expect([out[0], nonzero[0]]).toEqual([0b011, 0b111]);
      majority(new Uint8Array(0), [new Uint8Array(0), null], 0, { tie: "plus" });
      const nobody = "all 2 ranks are absent";
      expect(() => majority(out, [null, null], 3, { tie: "plus" })).toThrow(nobody);
      expect(() => majorityOrZero(out, nonzero, [null, null], 3)).toThrow(nobody);
      expect(() => tally([out, nonzero], [null, null], 3)).toThrow(nobody);
      expect([out[0], nonzero[0]]).toEqual([0b011, 0b111]);
    });

    it("refuses a result across a vote or another result, and writes nothing then", () => {
      const room = new Uint8Array(64).fill(0b1010_0101);
      const part = (begin: number) => room.subarray(begin, begin + 8);
      const some = [part(8), null, part(40)];
      expect(() => majority(part(9), some, 64, { tie: "plus" })).toThrow("majority: out overlaps votes[0]");
      expect(() => majority(part(33), some, 64, { tie: "plus" })).toThrow("out overlaps votes[2]");
      expect(() => majorityOrZero(part(7), part(24), some, 64)).toThrow("plus overlaps votes[0]");
      expect(() => majorityOrZero(part(24), part(31), some, 64)).toThrow("nonzero overlaps plus");
      expect(() => tally([part(0), part(0)], some, 64)).toThrow("planes[1] overlaps planes[0]");
      expect(() => tally([part(0), part(47)], some, 64)).toThrow("planes[1] overlaps votes[2]");
      expect(room.every((byte) => byte === 0b1010_0101)).toBe(true);
      tally([part(8), part(48)], some, 64);
      expect([...part(8), ...part(48)]).toEqual([...Array(8).fill(0), ...Array(8).fill(0b1010_0101)]);
    });

    it("refuses wrong lengths, ranks and policies in one sentence each", () => {
      const out = new Uint8Array(1);
      expect(() => majority(out, [], 3, { tie: "plus" })).toThrow("there are 0 votes, and 1 to 1024 are possible");
      expect(() => majority(out, Array(1025).fill(out), 3, { tie: "plus" })).toThrow("there are 1025 votes");
      expect(() => majority(out, votes, 9, { tie: "plus" })).toThrow("votes[0] has 1 bytes, and 9 elements take 2");
      expect(() => majority(out, [out, new Uint8Array(2)], 3, { tie: "plus" })).toThrow(
        "votes[1] has 2 bytes, and 3 elements take 1",
      );
      expect(() => majority(new Uint8Array(2), votes, 3, { tie: "plus" })).toThrow("out has 2 bytes");
      expect(() => majority(out, votes, 2.5, { tie: "plus" })).toThrow("n is 2.5");
      expect(() => majority(out, votes, 3, { tie: "zero" as "plus" })).toThrow("majorityOrZero");
      expect(() => majority(out, votes, 3, "plus" as never)).toThrow(
        "majority: options are an object, as in { tie: … }",
      );
      expect(() => majorityOrZero(out, new Uint8Array(0), votes, 3)).toThrow("nonzero has 0 bytes");
      expect(() => tally([out], votes, 3)).toThrow("a count of 2 votes takes 2 planes, not 1");
      expect(() => tally([out, new Uint8Array(2)], votes, 3)).toThrow("planes[1] has 2 bytes");
      expect(() => majority(out, new Set(votes) as never, 3, { tie: "plus" })).toThrow("votes must be an array");
      // biome-ignore lint/suspicious/noSparseArray: a hole is neither a vote nor an absent rank.
      expect(() => majority(out, [, out] as never, 3, { tie: "plus" })).toThrow("votes[0] must be a Uint8Array");
      expect(() => tally(out as never, votes, 3)).toThrow("planes must be an array");
      for (const ranks of [-1, 1.5, 2 ** 32]) expect(() => tallyPlanes(ranks)).toThrow(`ranks is ${ranks}`);
      structuredClone(out, { transfer: [out.buffer] });
      expect(() => majority(out, [out], 0, { tie: "plus" })).toThrow("votes[0] has lost its memory");
    });
  });

  it.skipIf(!python)(`equals numpy's counting on fresh votes${needsPython}`, () => {
    const requests = [2, 3, 8, 100].map((ranks) => ({
      codec: "vote",
      n: 3001,
      votes: Array.from({ length: ranks }, (_, r) => (r % 5 === 1 ? null : toHex(anyBytes(376, Date.now() + r)))),
    }));
    const answers = requests.map(({ votes, n }) => hexed(elect(kernels[0]!, votes.map(fromHexOrAbsent), n).results));
    expect(answers).toEqual(askNumpy(requests));
  });
});

const fromHexOrAbsent = (text: string | null): Vote => (text === null ? null : fromHex(text));

function hexed(results: { [name: string]: Uint8Array | Uint8Array[] }) {
  return Object.fromEntries(
    Object.entries(results).map(([name, wire]) => [name, Array.isArray(wire) ? wire.map(toHex) : toHex(wire)]),
  );
}
