/**
 * The order in which exchanges call a group's collectives. Several exchanges are under way at the same time. Each calls
 * its next collective when its own data has arrived, and that moment differs between ranks. But all ranks must call the
 * collectives of a group in the same order. So every exchange has a place in the group's queue: its calls start when
 * the exchange before it has made its last one. The program decides in which order exchanges enter, not the clock, so
 * it is the same on every rank.
 */
import type { BufferLike, Collectives, Group, OperationOptions, PointToPoint, Reduction } from "@terse/collectives";
import type { Watch } from "./watch.ts";

const lastPlaces = new WeakMap<Group, QueuedGroup>();

/** The next place in the queue of a group. */
export function enterQueue(group: Group, watch?: Watch): QueuedGroup {
  const place = new QueuedGroup(group, lastPlaces.get(group), watch);
  lastPlaces.set(group, place);
  return place;
}

/**
 * A group as one exchange sees it. All calls keep their order, and none is made before the place is the first of the
 * queue.
 */
export class QueuedGroup implements Collectives, PointToPoint {
  /**
   * The group itself, for `abort`, the counters, and as a key of maps. Operations between ranks go through this class.
   */
  readonly group: Group;
  readonly rank: number;
  readonly size: number;
  readonly #watch: Watch | undefined;
  readonly #begins = Promise.withResolvers<void>();
  #isFirst = false;
  #waiting: (() => void)[] = []; // calls, in order; at last the step that makes the next place the first
  #leaves = false;
  #hasLeft = false;
  #next: QueuedGroup | undefined;

  constructor(group: Group, before: QueuedGroup | undefined, watch: Watch | undefined) {
    this.group = group;
    this.#watch = watch;
    this.rank = group.rank;
    this.size = group.size;
    if (before === undefined || before.#hasLeft) this.#begin();
    else before.#next = this;
  }

  /**
   * Resolves when this place is the first of the queue, for an exchange whose collectives go over groups of its own.
   */
  get begins(): Promise<void> {
    return this.#begins.promise;
  }

  /** Whether a call would still wait for the exchanges before this one. */
  get waits(): boolean {
    return !this.#isFirst;
  }

  /**
   * The exchange has made its last call. A place may leave while it waits: its calls are still made, before those of
   * the next place.
   */
  leave(): void {
    if (this.#leaves) return;
    this.#leaves = true;
    this.#whenFirst(() => {
      this.#hasLeft = true;
      if (this.#next) this.#next.#begin();
    });
  }

  allReduce(x: BufferLike, op?: Reduction, options?: OperationOptions & { packed?: boolean }): Promise<void> {
    return this.#call(() => this.group.allReduce(x, op, options));
  }

  reduceScatter(parts: readonly BufferLike[], op?: Reduction, options?: OperationOptions): Promise<void> {
    return this.#call(() => this.group.reduceScatter(parts, op, options));
  }

  allGather(parts: readonly BufferLike[], options?: OperationOptions): Promise<void> {
    return this.#call(() => this.group.allGather(parts, options));
  }

  allToAll(
    outgoing: readonly BufferLike[],
    incoming: readonly BufferLike[],
    options?: OperationOptions & { note?: number; even?: boolean },
  ): Promise<number[]> {
    return this.#call(() => this.group.allToAll(outgoing, incoming, options));
  }

  broadcast(x: BufferLike, root: number, options?: OperationOptions): Promise<void> {
    return this.#call(() => this.group.broadcast(x, root, options));
  }

  gather(x: BufferLike, root: number, parts?: readonly BufferLike[], options?: OperationOptions): Promise<void> {
    return this.#call(() => this.group.gather(x, root, parts, options));
  }

  scatter(x: BufferLike, root: number, parts?: readonly BufferLike[], options?: OperationOptions): Promise<void> {
    return this.#call(() => this.group.scatter(x, root, parts, options));
  }

  send(x: BufferLike, to: number, options?: OperationOptions): Promise<void> {
    return this.#call(() => this.group.send(x, to, options));
  }

  recv(x: BufferLike, from: number, options?: OperationOptions): Promise<void> {
    return this.#call(() => this.group.recv(x, from, options));
  }

  barrier(options?: OperationOptions): Promise<void> {
    return this.#call(() => this.group.barrier(options));
  }

  split(color: number | undefined, key?: number): Promise<Group | undefined> {
    return this.#call(() => this.group.split(color, key));
  }

  #call<T>(operation: () => Promise<T>): Promise<T> {
    return new Promise((resolve) => this.#whenFirst(() => resolve(this.#watched(operation))));
  }

  #watched<T>(operation: () => Promise<T>): Promise<T> {
    if (!this.#watch) return operation();
    const began = performance.now();
    const ended = () => this.#watch!.saw("wire", began, performance.now());
    const result = operation();
    result.then(ended, ended);
    return result;
  }

  #whenFirst(action: () => void): void {
    if (this.#isFirst) action();
    else this.#waiting.push(action);
  }

  /** Makes all waiting calls before any other code can make a new one. */
  #begin(): void {
    this.#isFirst = true;
    this.#begins.resolve();
    for (const action of this.#waiting) action();
    this.#waiting = [];
  }
}
