/**
 * Rows of T tokens, and of the token after each: the sources are cut into stretches of T, none across two sources. The
 * first epoch cuts at the multiples of T. Each later one shifts all cuts by a number of its own below T, so that a
 * token is not always at the same place of its row.
 */
import { createHash } from "node:crypto";
import { DataError } from "../data-error.ts";
import { RandomNumbers } from "../random.ts";
import type { Arrays, Row, SampleFacts, Samples } from "../samples.ts";
import { readChecked, type TokenSource } from "./token-source.ts";

interface TokenInput extends Pick<SampleFacts, "source" | "prompt" | "remarks" | "inventory"> {
  readonly training: readonly TokenSource[];
  readonly validation: readonly TokenSource[];
  readonly blockSize: number; // T
  readonly vocabulary: number;
  readonly seed: number; // of the shifts
  readonly fingerprint: string; // of the sources
  readonly unit?: string; // "token" if absent
}

export class TokenSamples implements Samples {
  readonly facts: SampleFacts;
  readonly #input: TokenInput;

  /** The samples of tokens. Throws `DataError` where there are too few. */
  constructor(input: TokenInput) {
    const { source, training, validation, blockSize, fingerprint, unit = "token", prompt, remarks, inventory } = input;
    this.#input = input;
    const sum = (sources: readonly TokenSource[], count: (source: TokenSource) => number) =>
      sources.reduce((total, each) => total + count(each), 0);
    this.facts = {
      source,
      unit,
      trainingUnits: sum(training, ({ length }) => length),
      validationUnits: sum(validation, ({ length }) => length),
      item: "token",
      itemsPerRow: blockSize,
      trainingSamples: sum(training, (each) => this.#shifted(each)),
      validationSamples: sum(validation, (each) => this.#unshifted(each)),
      // Earlier versions cut in another way. Another fingerprint makes their saves be refused.
      fingerprint: createHash("sha256").update(`${fingerprint} ${blockSize} shifted`).digest("hex"),
      prompt: prompt?.replaceAll(/^\ufffd+|\ufffd+$/g, ""), // letters that the cut leaves in part
      remarks,
      inventory,
    };
    const { trainingUnits, validationUnits, trainingSamples, validationSamples } = this.facts;
    for (const [samples, units, what] of [
      [trainingSamples, trainingUnits, "train"],
      [validationSamples, validationUnits, "validate"],
    ] as const)
      if (samples === 0 && (what === "train" ? training.length > 0 : units > 0)) throw tooShort(what, units);

    function tooShort(what: "train" | "validate", units: number): DataError {
      const { heldOut } = inventory ?? {};
      const [where, more] =
        what === "train" || training.length === 0
          ? ["", ""]
          : heldOut
            ? [`, in ${heldOut.names.join(", ")}, which the name says to hold out`, ", another name"]
            : ["", ", a larger data.validationFraction (0 for none)"];
      return new DataError(
        `${source} has ${units} ${unit}s to ${what} on${where}, but one row needs ${blockSize + 1} (data.blockSize ${blockSize} and the ${unit} after it); give more text${more} or a smaller block.`,
      );
    }
  }

  /** Rows without a shift. The last token of a row needs a next token. */
  #unshifted({ length }: TokenSource): number {
    return Math.max(0, Math.floor((length - 1) / this.#input.blockSize));
  }

  /** The rows that fit with every shift; one for a source that is shorter than two rows. */
  #shifted(source: TokenSource): number {
    return Math.max(Math.floor(source.length / this.#input.blockSize) - 1, Math.min(1, this.#unshifted(source)));
  }

  training(rows: readonly Row[]): Promise<Arrays> {
    const { training, blockSize, seed } = this.#input;
    return this.#batch(
      rows.map(({ sample, position }) => {
        const epoch = Math.floor(position / this.facts.trainingSamples);
        const shift = epoch === 0 ? 0 : new RandomNumbers(seed, epoch, "shift").below(blockSize);
        const [source, inside] = placeOf(sample, training, (each) => this.#shifted(each));
        // Less than T − 1 only in a source of one row.
        const room = source.length - 1 - blockSize * this.#shifted(source);
        return [source, inside * blockSize + Math.min(shift, room)] as const;
      }),
    );
  }

  validation(samples: readonly number[]): Promise<Arrays> {
    const { validation, blockSize } = this.#input;
    return this.#batch(
      samples.map((sample) => {
        const [source, inside] = placeOf(sample, validation, (each) => this.#unshifted(each));
        return [source, inside * blockSize] as const;
      }),
    );
  }

  async #batch(starts: readonly (readonly [TokenSource, number])[]): Promise<Arrays> {
    const { blockSize, vocabulary } = this.#input;
    const [tokens, next] = [0, 0].map(() => new BigInt64Array(starts.length * blockSize)) as [
      BigInt64Array,
      BigInt64Array,
    ];
    // Writes the low 32 bits of each 64-bit token. Assumes a little-endian machine, as the wire and file formats do.
    const [tokenWords, nextWords] = [new Uint32Array(tokens.buffer), new Uint32Array(next.buffer)];
    await Promise.all(
      starts.map(async ([source, start], row) => {
        const read = await readChecked(source, start, blockSize + 1, vocabulary);
        for (let t = 0, at = 2 * row * blockSize; t < blockSize; t++, at += 2) {
          tokenWords[at] = read[t]!;
          nextWords[at] = read[t + 1]!;
        }
      }),
    );
    const shape = [starts.length, blockSize];
    return { tokens: { data: tokens, shape }, next: { data: next, shape } };
  }

  async close(): Promise<void> {
    for (const source of [...this.#input.training, ...this.#input.validation]) await source.close?.();
  }
}

/** The source of a sample, and the sample's number in it. */
function placeOf(sample: number, sources: readonly TokenSource[], rowsIn: (source: TokenSource) => number) {
  let [i, inside] = [0, sample];
  for (let rows = rowsIn(sources[i]!); inside >= rows; rows = rowsIn(sources[i]!)) {
    inside -= rows;
    i++;
  }
  return [sources[i]!, inside] as const;
}
