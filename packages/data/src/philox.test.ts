import { expect, it } from "vitest";
import { type Counter, type Key, philox, wordsOf } from "./philox.ts";

// The first three are the authors' own known answers (Random123, tests/kat_vectors: philox4x32 10); the others are
// PyTorch's at::Philox4_32(seed, subsequence, offset), whose counter is (offset, subsequence) and whose key is the seed.
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
