/**
 * Why an operation cannot finish:
 *
 *   transport   the connection or its library failed
 *   mismatch    the ranks called different operations, or with different sizes or types
 *   timeout     a rank did not take part in time
 *   aborted     a rank called `abort`
 *   device      an error of a rank's GPU, or of its library
 *   closed      the group was closed
 */
export type FailureReason = "transport" | "mismatch" | "timeout" | "aborted" | "device" | "closed";

/** An operation cannot finish, which ends its group. `cause` is this rank's own error where that differs. */
export class CollectiveError extends Error {
  override name = "CollectiveError";
  readonly reason: FailureReason;

  constructor(reason: FailureReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** A rank is lost: its process ended or is stopped, or its machine is not reachable. */
export class RankLostError extends Error {
  override name = "RankLostError";
  /** The lost rank, in the world that `joinWorld` made. */
  readonly rank: number;

  constructor(rank: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.rank = rank;
  }
}

/** A world cannot be joined: a rank is missing or was refused, or something that it needs is missing. */
export class RendezvousError extends Error {
  override name = "RendezvousError";
  /** The ranks that did not connect, where that is the reason. */
  readonly missing: readonly number[];

  constructor(message: string, missing: readonly number[] = [], options?: ErrorOptions) {
    super(message, options);
    this.missing = missing;
  }
}
