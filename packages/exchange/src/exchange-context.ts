/** What a scheme needs besides its vectors: the groups that carry them, and this rank's refusal. */
import type { QueuedGroup } from "./collective-queue.ts";
import { noteOf, type RefusalReason } from "./refusal.ts";
import { type Scratch, scratchOf } from "./scratch.ts";
import type { Watch } from "./watch.ts";

export class ExchangeContext {
  /** Carries vectors up, to the ranks that reduce them. */
  readonly up: QueuedGroup;
  /**
   * Carries results down, to all ranks: a second group of the same ranks, so that it runs beside the next exchange's
   * `up`; or `up` itself.
   */
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
