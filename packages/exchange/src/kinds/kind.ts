import type { Group, NativeBuffer } from "@terse/collectives";
import type { ChosenSchemes } from "../chosen-schemes.ts";
import type { Cost } from "../cost.ts";
import type { ExchangeContext } from "../exchange-context.ts";

/** What a kind works with besides a request. */
export interface Around {
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
   * What happens to x and to the buffers among the options until the request is done: their memory stays; and ("host")
   * where it is a GPU's, copies on the host stand for it, because codecs read and write them.
   */
  readonly memory: "host" | "stays" | "own";
  /** Checks a request and lays it out. RangeError, before anything is sent. */
  ask(x: X, options: Options, around: Around): Part;
  /** The requests of a round whose keys are the same travel together; those of one kind unless given. */
  key?(part: Part, around: Around): string;
  /** Carries them, by stages (run-stages.ts). */
  carry(parts: readonly Part[], context: ExchangeContext, around: Around): Promise<void>;
  /** After the mean has arrived, the ranks may send their notes over `down`, to find the rank that refused. */
  readonly notesMayFollow?: boolean;
  /** The result of one request, when they have been carried. */
  result(part: Part): R;
  /** The cost of all its messages of one round, those that travel together one after the other. */
  cost(messages: readonly M[], ranks: number, rank: number, schemes: ChosenSchemes): readonly Cost[];
}

export const nothing = (): void => {};
