/**
 * What the ranks tell each other with each round of local steps: signals, losses, and who waits for whom. It is one
 * message, which travels beside the round, and is read where the round is used. Messages of their own would make ranks
 * wait for each other between two rounds.
 *
 * Sent by a rank: an all-gather of 48 bytes a round.
 */
import type { Group } from "@terse/collectives";
import { type MeasuredRanks, measuredRanks, type RankMeasures, rowOf } from "./measures/ranks.ts";

/** What a rank knows when a round leaves. */
export interface OwnFacts extends RankMeasures {
  readonly step: number; // that the round leaves in, whose loss this is
  readonly drift: number; // ‖θ̄ − θ‖
  readonly signal: number; // that asks it to stop; 0: none
}

/** What all ranks know when a round is used. */
export interface Facts extends MeasuredRanks {
  readonly step: number; // of the losses
  readonly measured: MeasuredRanks["measured"] & Readonly<Record<"local/drift" | "ranks/drift", unknown>>;
  readonly signal: number; // of any rank
}

export class RoundFacts {
  readonly #group: Group;
  #arrived: Facts | undefined;
  #latest: Facts | undefined;

  constructor(group: Group) {
    this.#group = group;
  }

  /** A round leaves. Resolves when the ranks' facts have come. */
  async exchange({ step, drift, signal, ...measures }: OwnFacts): Promise<void> {
    const mine = Float64Array.of(...rowOf(measures), drift, signal);
    const rows = Array.from({ length: this.#group.size }, () => new Float64Array(mine.length));
    rows[this.#group.rank]!.set(mine);
    await this.#group.allGather(rows);
    const [drifts, signals] = [-2, -1].map((column) => rows.map((row) => row.at(column)!)) as [number[], number[]];
    const { loss, measured } = measuredRanks(rows);
    const mean = drifts.reduce((sum, each) => sum + each, 0) / drifts.length;
    this.#arrived = {
      step,
      loss,
      measured: { ...measured, "local/drift": mean, "ranks/drift": drifts },
      signal: Math.max(...signals),
    };
  }

  /**
   * The round is used: from now on its facts count, on every rank in the same step. Where it left before the run went
   * on from a save, which has no facts, the ranks tell each other `instead`.
   */
  async use(instead: () => OwnFacts): Promise<void> {
    if (!this.#arrived) await this.exchange(instead());
    this.#latest = this.#arrived;
    this.#arrived = undefined;
  }

  get latest(): Facts | undefined {
    return this.#latest;
  }
}
