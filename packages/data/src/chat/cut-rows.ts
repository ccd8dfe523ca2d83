import { countText } from "./count-text.ts";
import type { StoredRow } from "./stored-row.ts";

/** Cuts rows at their end, as TRL does, and counts those that are cut, and those of whose answer nothing is left. */
export class RowCutter {
  #cut = 0;
  #cutBeforeAnswer = 0;

  /** undefined where nothing is learned of the first `most` tokens. */
  cut(row: StoredRow, most: number): StoredRow | undefined {
    if (row.length <= most) return row;
    const cut = row.part(0, most);
    if (cut.targets === 0) {
      this.#cutBeforeAnswer++;
      return undefined;
    }
    this.#cut++;
    return cut;
  }

  /** A line for the user, where rows were cut. */
  remarks(most: number): string[] {
    const cut = this.#cut;
    const words = cut === 1 ? "is cut at its" : "are cut at their";
    return cut > 0 ? [`data: ${countText(cut, "row")} of more than ${most} tokens ${words} end`] : [];
  }

  passedOver(most: number): string[] {
    const count = this.#cutBeforeAnswer;
    return count > 0 ? [`${countText(count, "row")} whose answer begins after ${most} tokens`] : [];
  }
}
