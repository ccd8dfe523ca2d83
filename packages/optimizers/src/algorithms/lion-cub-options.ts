/** The options of Lion Cub, and which of them exclude each other. */
import { type Conflict, nonNegativeFloat, oneOf, positiveInteger, unitIntervalFloat, v } from "@terse/options";
import { momentumSyncOptions } from "../momentum-sync-options.ts";
import { seed } from "./draws.ts";
import { maskEvery } from "./seen-mask.ts";

export const lionCubOptions = v.object({
  beta1: v.optional(unitIntervalFloat, 0.9), // β₁: weight of the momentum in the vote
  beta2: v.optional(unitIntervalFloat, 0.99), // β₂: weight of the momentum in itself
  weightDecay: v.optional(nonNegativeFloat, 0), // λ
  bits: v.optional(v.union([v.pipe(positiveInteger, v.maxValue(8)), oneOf(["auto"])]), 1), // p: bits of a rank's vote
  // In place of bits: as many levels as leave the sum in these bits, s = ⌊127/P⌋ for 8.
  sumBits: v.optional(v.pipe(v.number(), v.integer(), v.minValue(2), v.maxValue(8))),
  // Only with more than one bit; l1 if absent.
  quantizer: v.optional(oneOf(["l1", "linf", "linf-without-zero", "linf-logarithmic"])),
  sum: v.optional(oneOf(["owners", "direct"])), // only with more than one bit: who adds the levels; owners if absent
  seed, // of the draws of linf
  // Only with one bit: the vote of an exact 0; alternate if absent; hold: 0, in two bits.
  zero: v.optional(oneOf(["hold", "plus", "minus", "alternate"])),
  // Only with signs: the outcome where both signs have as many votes; alternate if absent.
  tie: v.optional(oneOf(["plus", "minus", "alternate"])),
  // Only with signs: steps between two counts of the elements that have had a gradient; the others do not move; 0 is
  // never (seen-mask.ts).
  maskEvery,
  momentumSync: v.optional(momentumSyncOptions, {}), // which layers' m is averaged, and when (§5.1); none
});

export type LionCubOptions = v.InferOutput<typeof lionCubOptions>;

/** Whether a vote is levels, and not signs. */
const hasLevels = ({ bits, sumBits }: LionCubOptions) => bits !== 1 || sumBits !== undefined;
const levels = ({ bits, sumBits }: LionCubOptions) => (sumBits === undefined ? `bits: ${bits}` : `sumBits: ${sumBits}`);
const oneBit = ({ sumBits }: LionCubOptions) => (sumBits === undefined ? "take one bit" : "leave sumBits out");
const holds = (options: LionCubOptions) => !hasLevels(options) && options.zero === "hold";
const drawsAtRandom = (options: LionCubOptions) => hasLevels(options) && (options.quantizer ?? "l1").startsWith("linf");

export const lionCubConflicts: readonly Conflict<LionCubOptions>[] = [
  {
    option: "sumBits",
    when: ({ bits, sumBits }) => bits !== 1 && sumBits !== undefined,
    because: ({ bits }) => `it chooses the bits, and bits is ${bits}`,
    remedy: "leave one of them out",
  },
  ...(["zero", "tie"] as const).map((option) => ({
    option,
    when: (options: LionCubOptions) => hasLevels(options) && options[option] !== undefined,
    because: (options: LionCubOptions) =>
      `with ${levels(options)} levels can be 0, which does not move, and ${option} is ${options[option]}`,
    remedy: (options: LionCubOptions) => `leave ${option} out, or ${oneBit(options)}`,
  })),
  ...(["quantizer", "sum"] as const).map((option) => ({
    option,
    when: (options: LionCubOptions) => !hasLevels(options) && options[option] !== undefined,
    because: (options: LionCubOptions) => `one bit is a vote, which has no levels, and ${option} is ${options[option]}`,
    remedy: `take more bits, or leave ${option} out`,
  })),
  {
    option: "seed",
    when: (options) => options.seed > 0 && !drawsAtRandom(options),
    because: (options) => `only linf draws at random, and seed is ${options.seed}`,
    remedy: "leave it out, or take quantizer: linf",
  },
  {
    option: "maskEvery",
    when: (options) => hasLevels(options) && options.maskEvery > 0,
    because: (options) => `with ${levels(options)} a level can be 0, which does not move`,
    remedy: (options) => `leave maskEvery out, or ${oneBit(options)}`,
  },
  {
    option: "tie",
    when: (options) => holds(options) && options.tie !== undefined,
    because: ({ tie }) => `with zero: hold a sum of 0 does not move, and tie is ${tie}`,
    remedy: "leave tie out, or take another zero",
  },
  {
    option: "maskEvery",
    when: (options) => holds(options) && options.maskEvery > 0,
    because: () => "with zero: hold elements without a gradient do not move",
    remedy: "leave maskEvery out, or take another zero",
  },
  {
    option: "quantizer",
    when: ({ bits, sumBits, quantizer = "l1" }) => quantizer !== "l1" && (bits === "auto" || sumBits !== undefined),
    because: (options) => `${levels(options)} chooses the levels of l1, and quantizer is ${options.quantizer}`,
    remedy: ({ sumBits }) => `${sumBits === undefined ? "" : "leave sumBits out, and "}give bits as a number`,
  },
  {
    option: "sum",
    when: ({ quantizer, sum }) => quantizer === "linf-logarithmic" && sum === "direct",
    because: () => "logarithmic levels are no whole numbers, whose fields could be added",
    remedy: "leave sum out, or take another quantizer",
  },
];
