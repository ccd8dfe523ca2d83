/** What a scheme works with besides its vectors: the groups that carry them, and this rank's refusal. */
import type { Group } from "@terse/collectives";
import { enterQueue, type QueuedGroup } from "./collective-queue.ts";
import { noteOf, type RefusalReason } from "./refusal.ts";
import { type Scratch, scratchOf } from "./scratch.ts";

export class ExchangeContext {
  /** Carries vectors up, to the ranks that reduce them. */
  readonly up: QueuedGroup;
  /** Carries results down, to all ranks: a second group of the same ranks, so that it runs beside the next exchange's `up`; or `up` itself. */
  readonly down: QueuedGroup;
  /** Why this rank will not take the step. The headers of its messages tell the others. */
  readonly refusal: RefusalReason | undefined;
  readonly #more: "nothing" | "down" | "both";

  /** `more`: what will be called after the scheme that this context is for. */
  constructor(
    { up, down }: { up: QueuedGroup; down: QueuedGroup },
    refusal: RefusalReason | undefined,
    more: "nothing" | "down" | "both" = "nothing",
  ) {
    this.up = up;
    this.down = down;
    this.refusal = refusal;
    this.#more = more;
  }

  get rank(): number {
    return this.up.rank;
  }

  get size(): number {
    return this.up.size;
  }

  get scratch(): Scratch {
    return scratchOf(this.up.group);
  }

  /** The refusal as the number that a header carries; 0 for none. */
  get note(): number {
    return this.refusal === undefined ? 0 : noteOf(this.refusal);
  }

  /** The last collective on `up` has been called: the next exchange may begin. */
  upCalled(): void {
    if (this.up !== this.down && this.#more !== "both") this.up.leave();
  }

  /** The last collective at all has been called. */
  allCalled(): void {
    this.upCalled();
    if (this.#more !== "nothing") return;
    this.up.leave();
    this.down.leave();
  }
}

/** For one call of a scheme by itself. */
export interface CallOptions {
  /** Why this rank will not take the step; all ranks then throw the same StepRefusedError. */
  readonly refusal?: RefusalReason | undefined;
  /** A second group of the same ranks, which results go over. */
  readonly down?: Group | undefined;
}

/** Carries something over a group, in the group's queue. */
export async function carryOver<T>(
  group: Group,
  { refusal, down = group }: CallOptions,
  carry: (context: ExchangeContext) => Promise<T>,
): Promise<T> {
  const up = enterQueue(group);
  const places = { up, down: down === group ? up : enterQueue(down) };
  try {
    return await carry(new ExchangeContext(places, refusal));
  } finally {
    places.up.leave();
    places.down.leave();
  }
}
