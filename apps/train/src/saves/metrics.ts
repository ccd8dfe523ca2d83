/** metrics.jsonl of a run: one line of JSON for each logged step. A disk that is full for a while loses no line. */
import { join } from "node:path";
import { atomicWriteText, mayExist } from "@terse/checkpoint";
import { AppendedFile } from "../appended-file.ts";
import { readMetrics } from "../results/read-metrics.ts";

/** What grows from line to line of a run. */
export interface Sums {
  readonly elapsed_seconds?: number;
  readonly total_bytes?: number;
}

export class Metrics implements Disposable {
  /** The sums of the lines that `cutAt` has kept. */
  sums: Sums = {};
  readonly #folder: string;
  readonly #path: string;
  readonly #file: AppendedFile;

  /** `say` prints what cannot be written now. */
  constructor(folder: string, say: (text: string) => void = () => {}) {
    this.#folder = folder;
    this.#path = join(folder, "metrics.jsonl");
    this.#file = new AppendedFile({ path: this.#path, piece: "line", say });
  }

  /**
   * Removes the lines of steps from `step` on, which are taken again, and what is no line of metrics: a process may
   * have died in the middle of one. Keeps what a run that ended at `step` measured of its network. Resolves to a
   * sentence about the broken lines, if there are any.
   */
  async cutAt(step: number): Promise<string | undefined> {
    if (!mayExist(this.#path)) return undefined;
    let problem: string | undefined;
    const lines = await readMetrics(this.#folder, (words) => {
      problem = words;
    });
    const kept = lines.filter((line) => line.step < step || (line.step === step && line["network"] !== undefined));
    this.sums = (kept.findLast(({ total_bytes }) => total_bytes !== undefined) ?? {}) as Sums;
    await atomicWriteText(this.#path, kept.map((line) => `${JSON.stringify(line)}\n`).join(""));
    return problem;
  }

  /** Never throws. */
  log(line: object): void {
    this.#file.append(`${JSON.stringify(line)}\n`);
  }

  [Symbol.dispose](): void {
    this.#file[Symbol.dispose]();
  }
}
