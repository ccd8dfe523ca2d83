/** SIGINT, SIGTERM, SIGHUP, or an output that nobody reads: the ranks agree after which step they stop and save. */
import { constants } from "node:os";
import type { Group } from "@terse/collectives";
import { endSignals } from "@terse/options";

/** Seconds between the messages in which the ranks agree; where steps take longer, every step has one. */
const interval = 1;
/** The same where they do not wait for the answer before the next message. */
const intervalBetweenRounds = 5;
/** A second signal ends the process, unless it comes at once: a terminal and a launcher both send the first one. */
const sameSignalMs = 1000;
/**
 * A signal so soon after another is the same one: a shell and the kernel both send SIGHUP when a terminal is closed,
 * `timeout` sends its signal to the process and to its group, and systemd SIGHUP after SIGTERM.
 */
const burstMs = 250;

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
export type Signal = (typeof signals)[number];
const reasons = [...signals, "SIGPIPE"] as const;
export type Reason = (typeof reasons)[number];

/** Calls `hear` with each signal to this process, once for several that come together, until it is disposed. */
export function onSignals(hear: (signal: Signal) => void): Disposable {
  let before = Number.NEGATIVE_INFINITY;
  const heard = (signal: Signal) => {
    const time = performance.now();
    if (time - before < burstMs) return;
    before = time;
    hear(signal);
  };
  for (const signal of endSignals) process.on(signal, heard);
  return {
    [Symbol.dispose]() {
      for (const signal of endSignals) process.off(signal, heard);
    },
  };
}

export class Interruption implements Disposable {
  readonly #group: Group;
  readonly #hearing: Disposable;
  readonly #onFirst: (reason: Reason) => void;
  #asked: { reason: Reason; time: number } | undefined;
  #checked: { readonly step: number; readonly time: number };
  #next = 0; // the step before which the ranks agree again
  #answer: Promise<{ reason: Reason | undefined; steps: number }> | undefined; // and how many steps take an interval

  /** `step`: the first of this process. `onFirst` is called at once, on the rank that got the signal. */
  constructor(group: Group, step: number, onFirst: (reason: Reason) => void) {
    this.#group = group;
    this.#checked = { step, time: performance.now() };
    this.#onFirst = onFirst;
    this.#hearing = onSignals((signal) => this.#ask(signal));
    process.stdout.on("error", this.#pipe);
    if (process.stdout.errored) this.#pipe(process.stdout.errored);
  }

  /** Called before a step on every rank. Resolves to why all ranks stop now, if they do. */
  async before(step: number): Promise<Reason | undefined> {
    if (step < this.#next) return undefined;
    const { reason, seconds } = await this.#agree();
    this.#next = step + Math.max(1, Math.floor((interval * (step - this.#checked.step)) / seconds));
    this.#checked = { step, time: performance.now() };
    return reason;
  }

  /**
   * As `before`, for ranks that meet in few steps: they use the answer to a message where they send the next one. So a
   * rank waits only for one that is a whole interval behind, and all stop before the same step.
   */
  async between(step: number, seconds = intervalBetweenRounds): Promise<Reason | undefined> {
    if (step < this.#next) return undefined;
    const { reason, steps } = (await this.#answer) ?? { reason: undefined, steps: 1 };
    if (reason) return reason;
    const since = step - this.#checked.step;
    this.#answer = this.#agree().then(({ reason, seconds: passed }) => ({
      reason,
      steps: Math.max(1, Math.floor((seconds * since) / passed)),
    }));
    this.#answer.catch(() => {}); // the next call throws it
    this.#next = step + steps;
    this.#checked = { step, time: performance.now() };
    return undefined;
  }

  /** The signal of this rank as a number; 0: none. */
  get asked(): number {
    return this.#asked === undefined ? 0 : constants.signals[this.#asked.reason];
  }

  /** As `before`, but asks the ranks each time. Called between steps. */
  async agreed(): Promise<Reason | undefined> {
    return (await this.#agree()).reason;
  }

  /** A reason that any rank has, and the most seconds that a rank has counted since the last time. */
  async #agree(): Promise<{ reason: Reason | undefined; seconds: number }> {
    const seen = Float64Array.of(this.asked, (performance.now() - this.#checked.time) / 1000);
    if (this.#group.size > 1) await this.#group.allReduce(seen, "max");
    const [signal, seconds] = seen as unknown as [number, number];
    return { reason: reasonOf(signal), seconds };
  }

  #ask(reason: Reason): void {
    const time = performance.now();
    if (this.#asked === undefined) {
      this.#asked = { reason, time };
      this.#onFirst(reason);
    } else if (time - this.#asked.time > sameSignalMs && reason !== "SIGPIPE") process.exit(exitCodeOf(reason));
  }

  readonly #pipe = ({ code }: NodeJS.ErrnoException) => {
    if (code === "EPIPE") this.#ask("SIGPIPE");
  };

  [Symbol.dispose](): void {
    this.#hearing[Symbol.dispose]();
    process.stdout.off("error", this.#pipe);
  }
}

/** The reason with this number; undefined for 0. */
export const reasonOf = (signal: number): Reason | undefined =>
  reasons.find((name) => constants.signals[name] === signal);

/** The exit code of a process that a signal ended, as shells count it. */
export const exitCodeOf = (reason: Reason) => 128 + constants.signals[reason];

/** Whether ranks that were interrupted end with this code. */
export const isInterruption = (code: number | undefined): code is number =>
  reasons.some((reason) => exitCodeOf(reason) === code);
