/** What both of Dion's algorithms read: the options, and the sizes of a matrix's factors. */
import {
  flag,
  fraction,
  nonNegativeFloat,
  nonNegativeInteger,
  OptionsError,
  oneOf,
  positiveFloat,
  positiveInteger,
  unitIntervalFloat,
  v,
} from "@terse/options";
import type { Vector } from "./algorithm.ts";
import { orthonormalizations } from "./orthonormalize.ts";

export const dionOptions = v.object({
  momentum: v.optional(unitIntervalFloat, 0.95), // μ
  // r, or a fraction of min(m, n), rounded up.
  rank: v.optional(v.union([positiveInteger, fraction, oneOf(["full"])]), 0.25),
  orientation: v.optional(oneOf(["rows", "longer"]), "rows"),
  orthonormalize: v.optional(orthonormalizations, "householder-qr"),
  errorFeedback: v.optional(v.union([flag, oneOf(["own"])]), true),
  approximate: v.optional(oneOf(["power-iteration", "svd"]), "power-iteration"),
  weightDecay: v.optional(nonNegativeFloat, 0.01), // λ; the default of the authors' code, microsoft/dion
  eps: v.optional(positiveFloat, 1e-5), // ε
  seed: v.optional(nonNegativeInteger, 0), // of the first Q
});

/** The options, and what stands before them in errors. */
export type DionSettings = v.InferOutput<typeof dionOptions> & { readonly where: string };

/**
 * The sizes of X (m, n) and of its factors. rows, columns: of P and of Q, that is m and n, or n and m where X is
 * transposed.
 */
export function sizesOf({ segments: [segment] }: Vector, { rank, orientation, where }: DionSettings) {
  const { name, shape } = segment!;
  const [m, n] = shape as readonly [number, number];
  const transposed = orientation === "longer" && m < n;
  const [rows, columns] = transposed ? [n, m] : [m, n];
  const smaller = Math.min(m, n);
  const r = rank === "full" ? smaller : rank < 1 ? Math.ceil(rank * smaller) : rank;
  if (r > smaller)
    throw new OptionsError([
      {
        path: `${where}.rank`,
        problem: `${r} is more than the rank of ${name}, which is [${m}, ${n}]`,
        remedy: `take at most ${smaller}, or a fraction such as 0.25, or give such parameters another algorithm, by optimizer.groups in a recipe`,
      },
    ]);
  return { m, n, rows, columns, r, transposed };
}
