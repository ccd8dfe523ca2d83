/** What a scheme needs besides its vectors: the groups that carry them, and this rank's refusal. */
import type { Group } from "@terse/collectives";
import { enterQueue, type QueuedGroup } from "./collective-queue.ts";
import { noteOf, type RefusalReason } from "./refusal.ts";
import { type Scratch, scratchOf } from "./scratch.ts";
import type { Watch } from "./watch.ts";

export class ExchangeContext {
  /** Carries vectors up, to the ranks that reduce them. */
  readonly up: QueuedGroup;
  /** Carries results down, to all ranks: a second group of the same ranks, so that it runs beside the next exchange's `up`; or `up` itself. */
  readonly down: QueuedGroup;
  /** Why this rank will not take the step. The headers of its messages carry the reason to the other ranks. */
  readonly refusal: RefusalReason | undefined;
  readonly watch: Watch | undefined;
  readonly #callsLater: "none" | "down" | "both";

  /** `callsLater`: the groups on which other schemes of the same round will still call collectives. */
  constructor(
    { up, down }: { up: QueuedGroup; down: QueuedGroup },
    refusal: RefusalReason | undefined,
    callsLater: "none" | "down" | "both" = "none",
    watch?: Watch,
  ) {
    this.up = up;
    this.down = down;
    this.refusal = refusal;
    this.#callsLater = callsLater;
    this.watch = watch;
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

  /** The scheme has called its last collective on `up`: the next exchange may begin. */
  upCalled(): void {
    if (this.up !== this.down && this.#callsLater !== "both") this.up.leave();
  }

  /** The scheme has called its last collective on either group. */
  allCalled(): void {
    this.upCalled();
    if (this.#callsLater !== "none") return;
    this.up.leave();
    this.down.leave();
  }
}

/** Options of a scheme that is called by itself, without an exchange. */
export interface CallOptions {
  /** Why this rank will not take the step; all ranks then throw the same StepRefusedError. */
  readonly refusal?: RefusalReason | undefined;
  /** A second group of the same ranks, for results. */
  readonly down?: Group | undefined;
}

/** Enters the queues of the groups, and runs a scheme there. */
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
