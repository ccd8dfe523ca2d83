/**
 * Where the time of a 1-bit exchange goes, on one rank: encode, vote and decode are this thread's work, and the wire is at work while a
 * message is under way, mostly beside them. Seen from around the scheme, which knows nothing of it.
 */
import type { Group } from "@terse/collectives";

/** Milliseconds of one exchange. */
export interface Phases {
  /** Floats to signs. */
  readonly encode: number;
  /** A message was under way, whatever else was done meanwhile. */
  readonly wire: number;
  /** Counting the ballots of this rank's words. */
  readonly vote: number;
  /** Signs to floats. */
  readonly decode: number;
  /** Everything. What encode, vote and decode leave of it is waiting for the wire. */
  readonly total: number;
}

export class PhaseClock {
  /** The group, for a vote that goes all-to-all and then all-gather, chunk by chunk. */
  readonly group: Group;
  readonly #began = performance.now();
  #encode = 0;
  #vote = 0;
  #decode = 0;
  #wire = 0;
  #underWay = 0;
  #wireSince = 0;
  #lastWorked = 0; // when this thread was last done with something of its own
  readonly #arrived: number[] = []; // when, by chunk
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

  /** A chunk's ballots are counted from when they are there, and this thread is free, until their outcome leaves. */
  #votedFor(chunk: number): void {
    const now = performance.now();
    this.#vote += now - Math.max(this.#arrived[chunk]!, this.#lastWorked);
    this.#lastWorked = now;
  }

  async #onWire<T>(operation: Promise<T>, ballots: boolean): Promise<T> {
    if (this.#underWay++ === 0) this.#wireSince = performance.now();
    try {
      return await operation;
    } finally {
      const now = performance.now();
      if (ballots) this.#arrived.push(now);
      if (--this.#underWay === 0) this.#wire += now - this.#wireSince;
    }
  }
}
