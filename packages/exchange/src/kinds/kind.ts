import type { Group, NativeBuffer } from "@terse/collectives";
import type { ChosenSchemes } from "../chosen-schemes.ts";
import type { Cost } from "../cost.ts";
import type { ExchangeContext } from "../exchange-context.ts";

/** What a kind works with besides a request. */
export interface KindResources {
  readonly group: Group;
  readonly schemes: ChosenSchemes;
  /** f32 vectors that are neighbours in this memory are averaged as one. */
  readonly memory: NativeBuffer | undefined;
}

/**
 * One kind of exchange, from a request to its result, and what it costs. Each file of this folder has one, or a few
 * that share most of what they do.
 */
export interface Kind<X, Options, Part, R, M> {
  /** Its name among the operations of an exchange. */
  readonly name: string;
  /**
   * What happens to the memory of x, and of the buffers among the options, until the request is done. It stays, even if
   * a tensor is disposed. With "host", a GPU's memory is replaced by copies on the host, because codecs read and write
   * them. With "replaced" too, and x is written where the options have no `into`.
   */
  readonly memory: "host" | "replaced" | "stays" | "own";
  /**
   * Buffers among the options that, like x, are touched by the codec among the options alone. All of them stay on a
   * device where it runs.
   */
  readonly ofCodec?: readonly string[];
  /** Checks a request and lays it out. RangeError, before anything is sent. */
  ask(x: X, options: Options, resources: KindResources): Part;
  /** Requests of a round with the same key travel together; all those of one kind unless given. */
  key?(part: Part, resources: KindResources): string;
  /** Carries them, by stages (run-stages.ts). */
  carry(parts: readonly Part[], context: ExchangeContext, resources: KindResources): Promise<void>;
  /** After the mean has arrived, the ranks may send their notes over `down`, to find the rank that refused. */
  readonly notesMayFollow?: boolean;
  /** The result of one request, when they have been carried. */
  result(part: Part): R;
  /** The cost of all messages of one round, at least one, one after the other. */
  cost(messages: readonly M[], ranks: number, rank: number, schemes: ChosenSchemes): readonly Cost[];
}

export const nothing = (): void => {};
