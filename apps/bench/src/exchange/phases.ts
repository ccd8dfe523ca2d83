/**
 * The phases of a 1-bit exchange on one rank. This thread encodes, votes and decodes; the wire phase is the time in
 * which a message is on the wire, which mostly overlaps with them. Measured by wrapping the group, so the scheme has no
 * code for it.
 */
import type { Group } from "@terse/collectives";

/** Milliseconds of one exchange. */
export interface Phases {
  /** Floats to signs. */
  readonly encode: number;
  /** A message was on the wire, also while this thread worked. */
  readonly wire: number;
  /** Counting the votes of this rank's chunks. */
  readonly vote: number;
  /** Signs to floats. */
  readonly decode: number;
  /** The whole exchange; the time besides encode, vote and decode is waiting for the wire. */
  readonly total: number;
}

export class PhaseClock {
  /** A wrapped group for a vote that calls all-to-all and then all-gather for each chunk. */
  readonly group: Group;
  readonly #began = performance.now();
  #encode = 0;
  #vote = 0;
  #decode = 0;
  #wire = 0;
  #underWay = 0;
  #wireSince = 0;
  #lastWorked = 0; // when this thread last finished some work
  readonly #arrived: number[] = []; // time of arrival by chunk
  #voted = 0; // chunks

  constructor(group: Group) {
    this.group = new Proxy(group, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        if (name !== "allToAll" && name !== "allGather") return value.bind(target);
        return (...given: unknown[]) => {
          if (name === "allGather") this.#votedFor(this.#voted++);
          return this.#onWire(value.apply(target, given), name === "allToAll");
        };
      },
    });
  }

  encode(work: () => void): void {
    this.#encode += this.#worked(work);
  }

  decode(work: () => void): void {
    this.#decode += this.#worked(work);
  }

  get phases(): Phases {
    const total = performance.now() - this.#began;
    return { encode: this.#encode, wire: this.#wire, vote: this.#vote, decode: this.#decode, total };
  }

  #worked(work: () => void): number {
    const began = performance.now();
    work();
    this.#lastWorked = performance.now();
    return this.#lastWorked - began;
  }

  /** The votes of a chunk are counted from their arrival, when this thread is free, until the result is sent. */
  #votedFor(chunk: number): void {
    const now = performance.now();
    this.#vote += now - Math.max(this.#arrived[chunk]!, this.#lastWorked);
    this.#lastWorked = now;
  }

  async #onWire<T>(operation: Promise<T>, carriesVotes: boolean): Promise<T> {
    if (this.#underWay++ === 0) this.#wireSince = performance.now();
    try {
      return await operation;
    } finally {
      const now = performance.now();
      if (carriesVotes) this.#arrived.push(now);
      if (--this.#underWay === 0) this.#wire += now - this.#wireSince;
    }
  }
}
