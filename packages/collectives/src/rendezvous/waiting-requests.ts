import { milliseconds } from "../milliseconds.ts";
import { textOfPeer } from "../text-of-peer.ts";
import { listOfRanks } from "./list-of-ranks.ts";
import { type FromServer, lineLimit, type Request } from "./protocol.ts";

type CollectiveRequest = Extract<Request, { do: "allGather" | "allToAll" | "leave" }>;

/** An allGather, allToAll or leave that not all members have called yet. */
interface PendingCall {
  readonly kind: CollectiveRequest["do"];
  readonly members: readonly number[];
  readonly callers: Map<number, { id: number; value: unknown }>;
  readonly timer: NodeJS.Timeout;
  bytes: number; // of the callers' lines
}

interface PendingGet {
  readonly rank: number;
  readonly id: number;
  readonly timer: NodeJS.Timeout;
}

interface Ranks {
  answer(rank: number, line: FromServer): void;
  /** Whether it has said bye. */
  hasLeft(rank: number): boolean;
}

/**
 * The values that ranks have set, and the requests of ranks that wait for other ranks. Each waits until its deadline.
 */
export class WaitingRequests {
  readonly #deadlineSeconds: number;
  readonly #ranks: Ranks;
  readonly #values = new Map<string, unknown>();
  readonly #gets = new Map<string, Set<PendingGet>>();
  readonly #calls = new Map<string, PendingCall>();
  #unref = false; // its timers do not keep Node alive

  constructor(deadlineSeconds: number, ranks: Ranks) {
    this.#deadlineSeconds = deadlineSeconds;
    this.#ranks = ranks;
  }

  set(key: string, value: unknown): void {
    this.#values.set(key, value);
    for (const { rank, id, timer } of this.#gets.get(key) ?? []) {
      clearTimeout(timer);
      this.#ranks.answer(rank, { id, value });
    }
    this.#gets.delete(key);
  }

  get(rank: number, { key, id }: Extract<Request, { do: "get" }>): void {
    if (this.#values.has(key)) {
      this.#ranks.answer(rank, { id, value: this.#values.get(key) });
      return;
    }
    const timer = this.#timer(() => {
      waiting.delete(pending);
      if (waiting.size === 0) this.#gets.delete(key);
      const error = `no rank has set ${textOfPeer(key)} within ${this.#deadlineSeconds} s`;
      this.#ranks.answer(rank, { id, error, missing: [] });
    });
    const pending = { rank, id, timer };
    const waiting = this.#gets.get(key) ?? new Set();
    this.#gets.set(key, waiting.add(pending));
  }

  /**
   * A call that all members make. Returns what is wrong with this one, of so many bytes; undefined where nothing is.
   */
  collect(rank: number, line: CollectiveRequest, bytes: number): string | undefined {
    const { members } = line;
    const name = line.do === "leave" ? line.group : line.key;
    const key = line.do === "leave" ? `${name}/leave` : name;
    if (line.do === "leave")
      for (const member of members)
        if (member !== rank) this.#ranks.answer(member, { left: line.group, rank, value: line.value });

    let call = this.#calls.get(key);
    if (!call) {
      const timer = this.#timer(() => this.#expire(key));
      call = { kind: line.do, members, callers: new Map(), timer, bytes: 0 };
      this.#calls.set(key, call);
    }
    if (call.kind !== line.do || call.members.join() !== members.join())
      return `its ${line.do} of ${textOfPeer(key)} does not agree with that of another rank`;
    call.bytes += bytes;
    if (line.do === "allGather" && call.bytes > lineLimit)
      return `the values of ${textOfPeer(key)} are longer than ${lineLimit} bytes together`;
    const { callers } = call;
    callers.set(rank, { id: line.id, value: line.do === "allToAll" ? line.values : line.value });
    if (callers.size < members.length) {
      this.#cancelIfLeft(key);
      return undefined;
    }

    clearTimeout(call.timer);
    this.#calls.delete(key);
    const values = members.map((member) => callers.get(member)!.value);
    members.forEach((member, place) => {
      const answer = line.do === "allToAll" ? values.map((each) => (each as unknown[])[place]) : values;
      this.#ranks.answer(member, { id: callers.get(member)!.id, value: line.do === "leave" ? null : answer });
    });
    return undefined;
  }

  /** A rank has left the world: it will make no call that others wait for. */
  cancelLeft(): void {
    for (const key of this.#calls.keys()) this.#cancelIfLeft(key);
  }

  clear(): void {
    for (const { timer } of [...this.#calls.values(), ...[...this.#gets.values()].flatMap((each) => [...each])])
      clearTimeout(timer);
  }

  unref(): void {
    this.#unref = true;
  }

  #cancelIfLeft(key: string): void {
    const { callers, members } = this.#calls.get(key)!;
    const left = members.filter((member) => !callers.has(member) && this.#ranks.hasLeft(member));
    if (left.length === 0) return;
    this.#cancel(
      key,
      `${listOfRanks(left)} left the world before ${textOfPeer(key)}; check why it ended so early`,
      left,
    );
  }

  #expire(key: string): void {
    const { callers, members } = this.#calls.get(key)!;
    const missing = members.filter((member) => !callers.has(member));
    const late = `${listOfRanks(missing)} did not reach ${textOfPeer(key)} within ${this.#deadlineSeconds} s`;
    this.#cancel(key, `${late}; check what it does, or raise deadlineSeconds`, missing);
  }

  #cancel(key: string, error: string, missing: number[]): void {
    const { callers, timer } = this.#calls.get(key)!;
    clearTimeout(timer);
    this.#calls.delete(key);
    for (const [rank, { id }] of callers) this.#ranks.answer(rank, { id, error, missing });
  }

  #timer(expired: () => void): NodeJS.Timeout {
    const timer = setTimeout(expired, milliseconds(this.#deadlineSeconds));
    if (this.#unref) timer.unref();
    return timer;
  }
}
