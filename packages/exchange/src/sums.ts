/** What an optimizer's step may ask of the other ranks beside means and votes: sums of what codecs wrote. */
import type { Floats } from "@terse/codecs";
import type { Group } from "@terse/collectives";
import type { Ternary } from "./packed-bits.ts";
import { byOwners, type Delivery } from "./schemes/by-owners.ts";
import { checkFields, type FieldsRequest, fieldsTogether, type SumOfFieldsOptions } from "./schemes/fields.ts";
import { type LevelsOptions, levelsSummed, levelsVoted, type SumOfLevelsOptions } from "./schemes/levels.ts";
import { type ErrorCompensation, errorCompensated } from "./schemes/mean-error-compensated.ts";
import { checkSparse, type SparseOptions, sparseTogether } from "./schemes/sparse.ts";
import { type SumOptions, summed } from "./schemes/sum.ts";

/**
 * All of these add to `into`, the same bits on every rank, and leave as one message where they are asked for in one turn. x, `into` and
 * errors belong to the exchange until the promise settles. A NaN in x is a refusal, told to every rank; then errors and `into` may have
 * changed, as momenta may.
 */
export interface Sums {
  /** into += scale · Σ x, through a codec on the way up and on the way down. */
  sum(x: Floats, options: SumOptions): Promise<void>;

  /** into += scale · Σ x, written once by units that the ranks agree on first, and added exactly. */
  sumOfFields(x: Floats, options: SumOfFieldsOptions): Promise<void>;

  /** into += scale · Σ q, the levels of l1 or linf as whole numbers, exactly. */
  sumOfLevels(x: Floats, options: SumOfLevelsOptions): Promise<void>;

  /** sign(Σ q): what Lion Cub makes of its levels. */
  signOfLevels(x: Floats, options: LevelsOptions): Promise<Ternary>;

  /** into += the mean of x, compressed both ways, where what was not said waits in the errors for the next time. */
  meanErrorCompensated(x: Floats, options: ErrorCompensation): Promise<void>;

  /** into += the mean of the few elements that each rank sends of its x. */
  sparse(x: Floats, options: SparseOptions): Promise<void>;
}

export type SumRequest = { done(): void; failed(error: unknown): void } & (
  | { kind: "owners"; delivery: Delivery }
  | { kind: "sparse"; x: Floats; options: SparseOptions }
  | ({ kind: "fields" } & FieldsRequest)
);

/** The methods; what cannot be right is refused before anything is sent. */
export function sumsOf(group: Group, ask: (request: SumRequest) => void): Sums {
  const deliver = (delivery: Delivery): Promise<void> =>
    new Promise((done, failed) => ask({ kind: "owners", delivery, done, failed }));
  return {
    sum: async (x, options) => deliver(summed(group, x, options)),
    async sumOfFields(x, options) {
      checkFields("sumOfFields", group, { x, options });
      await new Promise<void>((done, failed) => ask({ kind: "fields", x, options, done, failed }));
    },
    sumOfLevels: async (x, options) => deliver(levelsSummed(group, x, options)),
    async signOfLevels(x, options) {
      const { delivery, result } = levelsVoted(group, x, options);
      await deliver(delivery);
      return result();
    },
    meanErrorCompensated: async (x, options) => deliver(errorCompensated(group, x, options)),
    async sparse(x, options) {
      checkSparse(x, options);
      await new Promise<void>((done, failed) => ask({ kind: "sparse", x, options, done, failed }));
    },
  };
}

/** Requests of one kind in one message; what hands their results out. */
export async function carrySums(
  group: Group,
  requests: readonly SumRequest[],
  { note, gather, sent }: { note: number; gather: Group; sent: () => void },
): Promise<(() => void)[]> {
  const deliveries = requests.flatMap((request) => (request.kind === "owners" ? [request.delivery] : []));
  const vectors = requests.flatMap((request) => (request.kind === "sparse" ? [request] : []));
  const fields = requests.flatMap((request) => (request.kind === "fields" ? [request] : []));
  if (fields.length > 0) await fieldsTogether(group, fields, note, gather, sent);
  if (deliveries.length > 0) await byOwners(group, deliveries, note, gather, sent);
  if (vectors.length > 0) await sparseTogether(group, vectors, note, sent);
  return requests.map(({ done }) => done);
}
