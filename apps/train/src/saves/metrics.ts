/** metrics.jsonl of a run: one line of JSON for each logged step. A disk that is full for a while loses no line. */
import { appendFileSync, existsSync, readFileSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { atomicWriteText } from "@terse/checkpoint";
import { parseMetrics } from "../advice/read-metrics.ts";

/** What grows from line to line of a run. */
export interface Sums {
  readonly elapsed_seconds?: number;
  readonly total_bytes?: number;
}

export class Metrics {
  /** Of the lines that `cutAt` has kept. */
  sums: Sums = {};
  readonly #path: string;
  #waiting = ""; // lines that could not be written yet

  constructor(folder: string) {
    this.#path = join(folder, "metrics.jsonl");
  }

  /**
   * Removes the lines of steps from `step` on, which are taken again, and what is no line: a process may have died in the middle of one.
   * Resolves to a sentence about that, if there is any. What a run that ended at `step` has measured of its network stays.
   */
  async cutAt(step: number): Promise<string | undefined> {
    if (!existsSync(this.#path)) return undefined;
    const { lines, problem } = parseMetrics(readFileSync(this.#path, "utf8"));
    const kept = lines.filter((line) => line.step < step || (line.step === step && line["network"] !== undefined));
    this.sums = (kept.findLast(({ total_bytes }) => total_bytes !== undefined) ?? {}) as Sums;
    await atomicWriteText(this.#path, kept.map((line) => `${JSON.stringify(line)}\n`).join(""));
    return problem;
  }

  log(line: object): void {
    this.#waiting += `${JSON.stringify(line)}\n`;
    const size = existsSync(this.#path) ? statSync(this.#path).size : 0;
    try {
      appendFileSync(this.#path, this.#waiting);
      this.#waiting = "";
    } catch {
      if (existsSync(this.#path)) truncateSync(this.#path, size); // a part of a line may have been written
    }
  }
}
