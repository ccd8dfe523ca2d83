/**
 * The state of an algorithm, by kind. The kind says how a tensor is cut into buckets, saved, and carried to another
 * number of ranks (saved-state.ts does all three).
 *
 *   kind         what it is, and how it is saved              in a run with another number of ranks
 *
 *   elements     one value for each element of the            the mean of the old ranks' values: it keeps what they
 *                parameters; cut and saved with them          share, and conserves the mean of worker errors
 *   replicated   tensors of any shape, the same on every      the same
 *                rank; saved with the vector's first
 *                parameter
 *   owned        values of the elements that this rank owns,  the shares of all old ranks, joined and cut anew, which
 *                such as a server error; saved with the       conserves every value. Between one rank and several: see
 *                range                                        `alone`
 *   shards       one of several equal slices of a matrix,     the mean over the ranks that had the same slice; the
 *                one for each rank along the weight axis;     slices are joined and cut anew
 *                saved with its place
 *   scalars      numbers, the same on every rank; saved as    the same
 *                numbers
 *
 * Two kinds are never saved, and empty after a restore:
 *
 *   unsettled    what the last messages have sent of an error, by the error's name. The next step subtracts it, or a
 *                save before it
 *   derived      what follows from the other kinds, and takes long to compute
 */
import type { Tensor } from "@terse/tensor";

/** The state of an algorithm for one vector, by kind: the table above says how each is saved and restored. */
export interface State {
  readonly elements?: Readonly<Record<string, Tensor>>;
  readonly replicated?: Readonly<Record<string, Tensor>>;
  readonly owned?: Readonly<Record<string, OwnedShare>>;
  readonly shards?: Readonly<Record<string, Shard>>;
  readonly scalars?: Record<string, number | number[]>;
  readonly unsettled?: Record<string, SentSigns | undefined>;
  readonly derived?: Record<string, unknown>;
}

/** The part of an error that was sent: a magnitude with each element's sign, and nothing of held elements. */
export interface SentSigns {
  readonly magnitude: number;
  readonly hold: Uint8Array | undefined; // one bit an element
}

/** Slice `index` of `count` equal ones of a matrix. */
export interface Shard {
  readonly values: Tensor; // (m / count, n) of rows, (m, n / count) of columns
  readonly of: "rows" | "columns";
  readonly index: number;
  readonly count: number;
}

/**
 * f32 values of the elements [begin, begin + values.length) of a vector. The shares of all ranks make up the vector.
 */
export interface OwnedShare {
  readonly begin: number;
  readonly values: Tensor;
  /**
   * For values that a single rank does not have: the `elements` to which it adds those of several ranks. Several ranks
   * begin with zeros after a single one. So the mean of the ranks' elements, plus the values, is conserved.
   */
  readonly alone?: string;
}
