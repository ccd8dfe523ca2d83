/** What one file of this folder defines: how the learning rate goes on after the warm-up. */
import type { v } from "@terse/options";

export interface Schedule<Options extends object> {
  /** Its keys in a recipe's `schedule` section, besides `name` and `warmup`. */
  readonly options: v.GenericSchema<object, Options> & { readonly entries: v.ObjectEntries };
  /** The share of the highest learning rate in step t, from 0, of the n steps after the warm-up. */
  share(t: number, n: number, options: Options): number;
  /** The share in step t of a warm-up of n steps. Unless given it grows in equal steps: (t + 1)/n. */
  warmupShare?(t: number, n: number, options: Options): number;
}
