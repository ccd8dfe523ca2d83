import { expect, it } from "vitest";
import { type Counter, draws, type Key, philox, wordsOf } from "./random.ts";

// The first three are the authors' own known answers (Random123, tests/kat_vectors: philox4x32 10). The others are
// those of PyTorch's at::Philox4_32(seed, subsequence, offset): its counter is (offset, subsequence), and its key is
// the seed.
const knownAnswers: [Counter, Key, number[]][] = [
  [
    [0, 0, 0, 0],
    [0, 0],
    [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8],
  ],
  [
    [0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff],
    [0xffffffff, 0xffffffff],
    [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
  ],
  [
    [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
    [0xa4093822, 0x299f31d0],
    [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
  ],
  [
    [3, 0, 2, 0],
    [1, 0],
    [0xde08bf52, 0x663eff4f, 0x8759c4e2, 0xbdd5e548],
  ],
  [
    [9, 1 << 8, 5, 7],
    [42, 0],
    [0x4c05886e, 0x42fa8e4b, 0x45105fba, 0x40e15fc5],
  ],
];

it.each(knownAnswers)("gives the known answer at counter %j, key %j", (counter, key, answer) => {
  expect(philox(counter, key)).toEqual(answer);
});

it("cuts an integer into its words", () => {
  expect(wordsOf(0)).toEqual([0, 0]);
  expect(wordsOf(2 ** 32 + 5)).toEqual([5, 1]);
  expect(wordsOf(Number.MAX_SAFE_INTEGER)).toEqual([0xffffffff, 0x1fffff]);
});

it.each([
  { i: 0, counter: [0, 0], word: 0 },
  { i: 21, counter: [5, 0], word: 1 },
  { i: 64 + 2 * 16 + 3, counter: [16 + 3, 0], word: 2 },
  { i: 2 ** 40 + 63, counter: [15, 2 ** (40 - 2 - 32)], word: 3 },
])("draws for element $i from word $word at counter $counter", ({ i, counter, word }) => {
  const [seed, step] = [2 ** 45 + 7, 2 ** 33 + 11];
  const words = philox([counter[0]!, counter[1]!, ...wordsOf(step)], wordsOf(seed));
  const r = (words[word]! >>> 1) / 2 ** 31;
  const below = draws({ seed, step, index: Math.floor(i / 64) * 64 });
  expect(below(i % 64, r)).toBe(false);
  expect(below(i % 64, r + 2 ** -31)).toBe(true);
});

it("draws the same for the same seed, step and place, and something else for any other", () => {
  const some = (call: { seed: number; step: number; index?: number }, from: number) => {
    const below = draws(call);
    return Array.from({ length: 200 }, (_, i) => below(from + i, 0.5));
  };
  const here = some({ seed: 1, step: 2 }, 128);
  expect(some({ seed: 1, step: 2, index: 128 }, 0)).toEqual(here);
  for (const elsewhere of [
    { seed: 2, step: 2, index: 128 },
    { seed: 1, step: 3, index: 128 },
    { seed: 1, step: 2, index: 192 },
  ])
    expect(some(elsewhere, 0)).not.toEqual(here);
});

it.each([0, 2 ** -10, 0.3, 0.5, 1 - 2 ** -10, 1])("is true with probability %d, within 4σ of 100 000 draws", (p) => {
  const n = 100_000;
  const below = draws({ seed: 20_260, step: 7 });
  let count = 0;
  for (let i = 0; i < n; i++) count += below(i, p) ? 1 : 0;
  expect(Math.abs(count - n * p)).toBeLessThanOrEqual(4 * Math.sqrt(n * p * (1 - p)));
});
