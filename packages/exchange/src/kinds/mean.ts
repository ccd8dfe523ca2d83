/**
 * The mean of vectors over the ranks, sent in the type of the chosen scheme (means/). All means of a round travel
 * together, and vectors that are neighbours in memory as one.
 */
import type { BufferLike } from "@terse/collectives";
import { adjacent } from "../means/adjacent.ts";
import { throwRefusal } from "../refusal.ts";
import { type Kind, nothing } from "./kind.ts";

export interface MeanOptions {
  /**
   * Whether the mean, the same on every rank, may be used. If not, all ranks throw a StepRefusedError and no result is
   * handed out.
   */
  readonly accept?: (() => boolean) | undefined;
}

interface Part extends MeanOptions {
  readonly x: BufferLike;
}

/** `offset`: the first element in the exchange's `memory`; vectors that are neighbours there are averaged as one. */
export interface MeanMessage {
  readonly kind: "mean";
  readonly n: number;
  readonly offset?: number | undefined;
}

/** x ← mean over ranks of x. */
export const mean: Kind<BufferLike, MeanOptions, Part, void, MeanMessage> = {
  name: "mean",
  memory: "stays",
  ask: (x, { accept }) => ({ x, accept }),
  async carry(parts, context, { schemes, memory }) {
    const vectors = parts.map(({ x }) => x);
    await schemes.means.carry(adjacent(vectors, memory), context);
    const accepted = parts.map(({ accept }) => accept?.() ?? true);
    if (accepted.includes(false)) await throwRefusal(context.down, context.note);
  },
  notesMayFollow: true,
  result: nothing,
  cost: (messages, ranks, rank, { means }) => [means.cost(joinedMeans(messages), ranks, rank)],
};

/** The lengths of the vectors that are averaged. Neighbours count as one vector. */
export function joinedMeans(messages: readonly MeanMessage[]): number[] {
  const joined: number[] = [];
  let end: number | undefined; // offset + n of the vector before
  for (const { n, offset } of messages) {
    if (offset !== undefined && offset === end) joined[joined.length - 1]! += n;
    else joined.push(n);
    end = offset === undefined ? undefined : offset + n;
  }
  return joined;
}
