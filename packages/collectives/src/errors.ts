/** `device`: a rank's own GPU, or the library that drives it. */
export type FailureReason = "transport" | "mismatch" | "timeout" | "aborted" | "device" | "closed";

/** An operation that cannot finish, and the end of its group. `cause` is what this rank's own transport saw, where that is more. */
export class CollectiveError extends Error {
  override name = "CollectiveError";
  readonly reason: FailureReason;

  constructor(reason: FailureReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** A rank is gone: its process ended, its host is not reachable, or it has stopped. */
export class RankLostError extends Error {
  override name = "RankLostError";
  /** The lost rank, in the world that `joinWorld` made. */
  readonly rank: number;

  constructor(rank: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.rank = rank;
  }
}

/** Ranks did not come together: one is missing, or was refused. */
export class RendezvousError extends Error {
  override name = "RendezvousError";
  /** The ranks that did not arrive, when that is the reason. */
  readonly missing: readonly number[];

  constructor(message: string, missing: readonly number[] = [], options?: ErrorOptions) {
    super(message, options);
    this.missing = missing;
  }
}
