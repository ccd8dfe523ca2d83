/**
 * Rows of conversations. A sample is one row, or several that are packed into one; what an answer does not predict has
 * the next token −100, which a cross entropy ignores. Rows are padded at their end, to the longest of a batch.
 */
import { listedSamples } from "../listed-samples.ts";
import { notPredicted } from "../masked-text/masking.ts";
import type { Arrays, SampleFacts, Samples } from "../samples.ts";
import type { StoredRow } from "./stored-row.ts";

interface ChatInput extends Pick<SampleFacts, "source" | "fingerprint" | "prompt" | "ends" | "inventory" | "remarks"> {
  readonly training: readonly StoredRow[][]; // the rows of each sample
  readonly validation: readonly StoredRow[][];
  readonly pad: number; // the token at the end of shorter rows
  /** Whether places start anew at each row of a sample, which then sees itself alone. */
  readonly packed: boolean;
  close(): void;
}

export function chatSamples({ training, validation, pad, packed, close, ...given }: ChatInput): Samples {
  const tokensIn = (samples: ChatInput["training"]) => samples.reduce((sum, rows) => sum + lengthOf(rows), 0);
  const any = training.length > 0 ? training : validation;
  const facts = {
    ...given,
    unit: "token",
    trainingUnits: tokensIn(training),
    validationUnits: tokensIn(validation),
    item: "token",
    itemsPerRow: tokensIn(any) / any.length,
    targets: { training: Uint32Array.from(training, targetsOf), validation: Uint32Array.from(validation, targetsOf) },
  };
  return listedSamples(facts, { training, validation, batchOf, close });

  function batchOf(samples: ChatInput["training"]): Arrays {
    const T = Math.max(...samples.map(lengthOf));
    const shape = [samples.length, T];
    const filled = (value: number) => new BigInt64Array(samples.length * T).fill(BigInt(value));
    const [tokens, next, positions] = [filled(pad), filled(notPredicted), filled(0)] as const;
    for (const [i, rows] of samples.entries()) {
      let at = i * T;
      for (const row of rows) {
        const { ids, learned } = row.read();
        for (let t = 0; t < ids.length; t++, at++) {
          tokens[at] = BigInt(ids[t]!);
          positions[at] = BigInt(t);
          if (learned[t + 1]) next[at] = BigInt(ids[t + 1]!);
        }
      }
      for (let t = 0; at < (i + 1) * T; t++, at++) positions[at] = BigInt(t);
    }
    const fields = { tokens: { data: tokens, shape }, next: { data: next, shape } };
    return packed ? { ...fields, positions: { data: positions, shape } } : fields;
  }
}

const lengthOf = (rows: readonly StoredRow[]) => rows.reduce((sum, { length }) => sum + length, 0);

/** Tokens that are learned. */
export const targetsOf = (rows: readonly StoredRow[]): number => rows.reduce((sum, { targets }) => sum + targets, 0);
