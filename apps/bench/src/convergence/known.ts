/** What is known of a suite's other methods: measured by this process, or recorded. */
import type { Measurement } from "../measurement.ts";
import { recordedLines } from "../papers/recorded.ts";
import type { RecordedLine } from "../recording.ts";
import type { Settings } from "./search.ts";
import { chosenIn } from "./settings.ts";

export class Known {
  readonly #suite: string;
  readonly measured: Measurement[] = [];

  constructor(suite: string) {
    this.#suite = suite;
  }

  async *remember(measurements: AsyncGenerator<Measurement>): AsyncGenerator<Measurement> {
    for await (const measurement of measurements) {
      this.measured.push(measurement);
      yield measurement;
    }
  }

  /** The recorded runs; none with overrides, because the record is of the recipe without any. */
  recorded(given: readonly string[]): RecordedLine[] {
    return given.length > 0 ? [] : recordedLines(this.#suite);
  }

  value(name: string, metric: string, given: readonly string[]): number | undefined {
    const is = (one: Measurement) => one.case === name && one.metric === metric;
    return (this.measured.findLast(is) ?? this.recorded(given).find(is))?.value;
  }

  /** The settings that the search of `owner` has found. Throws where they are not known. */
  settings(owner: string, taker: string, given: readonly string[]): Settings {
    const chosen = chosenIn((metric) => this.value(`${owner}, seed 1`, metric, given));
    const isMeasured = this.value(`${owner}, seed 1`, "validation_loss", given) !== undefined;
    const isSearched = chosen["lr"] !== undefined || given.length > 0; // a rate that is given is not searched
    if (!isMeasured || !isSearched)
      throw new Error(
        `${taker} takes the settings of ${owner}, whose search has not been measured with this recipe: measure both, --settings ${owner},${taker}`,
      );
    return chosen;
  }
}
