import { DataError } from "../data-error.ts";

/** The ids as numbers. Throws `DataError` for one that is not below `vocabulary`; `isNone`: "is not a byte". */
export function checkedIds(ids: Iterable<number | bigint>, vocabulary: number, isNone: string): number[] {
  const numbers = Array.from(ids, Number);
  const wrong = numbers.findIndex((id) => !Number.isInteger(id) || id < 0 || id >= vocabulary);
  if (wrong < 0) return numbers;
  throw new DataError(
    `Token ${numbers[wrong]} at position ${wrong} ${isNone}; give integers from 0 to ${vocabulary - 1}.`,
  );
}
