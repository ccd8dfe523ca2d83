import type { NativeFailure } from "@terse/native-collectives";
import { CollectiveError, RankLostError } from "./errors.ts";

interface FailingGroup {
  /** World ranks. */
  readonly members: readonly number[];
  /** " (in a group of the world's ranks 1, 3)" */
  readonly where: string;
  /** Ends everything pending. */
  abort(why: string): void;
  /** Reports the error to the other ranks. `certain` is false where another rank may be the cause. */
  report(error: Error, certain: boolean): Promise<void>;
}

/** The error that ends a group: the first one here, or the root cause where another rank reports it in time. */
export class Failure {
  #error: Error | undefined;
  #explanation: Promise<Error> | undefined;
  readonly #group: FailingGroup;

  constructor(group: FailingGroup) {
    this.#group = group;
  }

  get error(): Error | undefined {
    return this.#error;
  }

  /** Ends the group here with `error`, unless it has failed before. */
  fail(error: Error): void {
    if (this.#error) return;
    this.#error = error;
    this.#group.abort(error.message);
  }

  /** Ends the group with an error that is made here, on every rank. */
  end(reason: CollectiveError["reason"], message: string, options?: ErrorOptions): void {
    if (this.#error) return;
    const error = new CollectiveError(reason, message, options);
    this.fail(error);
    void this.#group.report(error, true);
  }

  /** The error that every pending and later call rejects with, if `native` is what one of them has met. */
  explain(native: NativeFailure): Promise<Error> {
    this.#explanation ??= (async () => {
      if (!this.#error) {
        const { members, where } = this.#group;
        const error =
          native.reason === "lost"
            ? new RankLostError(members[native.peer]!, native.message)
            : new CollectiveError(reasonOf(native), `${native.message}${where}`);
        await this.#group.report(error, native.reason !== "transport");
        this.fail(error);
      }
      const failure = this.#error!;
      if (failure.cause === undefined && failure.message !== native.message) failure.cause = native;
      return failure;
    })();
    return this.#explanation;
  }

  /** Awaits something that all ranks do. A rejection ends the group. */
  async ifRejected<T>(wait: () => Promise<T>): Promise<T> {
    try {
      return await wait();
    } catch (error) {
      if (!this.#error) {
        const failure = failureOf(error as Error);
        this.fail(failure);
        await this.#group.report(failure, true);
      }
      throw this.#error;
    }
  }
}

const reasonOf = ({ reason }: NativeFailure): CollectiveError["reason"] =>
  reason === "argument" || reason === "cancelled" || reason === "lost" ? "closed" : reason;

/** The group's error where its ranks could not open a group that is split from it. */
function failureOf(error: Error): Error {
  if (error instanceof CollectiveError || error instanceof RankLostError) return error;
  const native = (error.cause ?? error) as Partial<NativeFailure>;
  const reason = native.reason ? reasonOf(native as NativeFailure) : "timeout";
  return new CollectiveError(reason, error.message, { cause: error });
}
