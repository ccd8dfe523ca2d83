/** Rows of T tokens and of the tokens after each: the sources cut into stretches of T, none across two sources. */
import { DataError } from "../data-error.ts";
import type { Arrays, Row, SampleFacts, Samples } from "../samples.ts";
import { readChecked, type TokenSource } from "./token-source.ts";

interface Given {
  readonly source: string;
  readonly training: readonly TokenSource[];
  readonly validation: readonly TokenSource[];
  readonly blockSize: number; // T
  readonly vocabulary: number;
  readonly fingerprint: string;
  readonly prompt?: string | undefined;
}

export class TokenSamples implements Samples {
  readonly facts: SampleFacts;
  readonly #given: Given;

  /** Throws `DataError` where there are too few tokens. */
  constructor(given: Given) {
    const { source, training, validation, blockSize, fingerprint, prompt } = given;
    this.#given = given;
    const sum = (sources: readonly TokenSource[], count: (source: TokenSource) => number) =>
      sources.reduce((total, each) => total + count(each), 0);
    this.facts = {
      source,
      unit: "token",
      trainingUnits: sum(training, ({ length }) => length),
      validationUnits: sum(validation, ({ length }) => length),
      item: "token",
      itemsPerRow: blockSize,
      trainingSamples: sum(training, (each) => this.#rowsIn(each)),
      validationSamples: sum(validation, (each) => this.#rowsIn(each)),
      fingerprint,
      prompt,
    };
    const { trainingUnits, validationUnits, trainingSamples, validationSamples } = this.facts;
    for (const [samples, units, what] of [
      [trainingSamples, trainingUnits, "train"],
      [validationSamples, validationUnits, "validate"],
    ] as const)
      if (samples === 0 && (what === "train" || units > 0))
        throw new DataError(
          `${source} has ${units} tokens to ${what} on, but one row needs ${blockSize + 1} (data.blockSize ${blockSize} and the token after it); give more text or a smaller block.`,
        );
  }

  /** The last token of a row needs a next token. */
  #rowsIn({ length }: TokenSource): number {
    return Math.max(0, Math.floor((length - 1) / this.#given.blockSize));
  }

  training(rows: readonly Row[]): Promise<Arrays> {
    return this.#batch(
      this.#given.training,
      rows.map(({ sample }) => sample),
    );
  }

  validation(samples: readonly number[]): Promise<Arrays> {
    return this.#batch(this.#given.validation, samples);
  }

  async #batch(sources: readonly TokenSource[], samples: readonly number[]): Promise<Arrays> {
    const { blockSize } = this.#given;
    const [tokens, next] = [0, 0].map(() => new BigInt64Array(samples.length * blockSize)) as [
      BigInt64Array,
      BigInt64Array,
    ];
    // Writes the low 32 bits of each 64-bit token. Assumes a little-endian machine, as the wire and file formats do.
    const [tokenWords, nextWords] = [new Uint32Array(tokens.buffer), new Uint32Array(next.buffer)];
    await Promise.all(
      samples.map(async (sample, row) => {
        const read = await this.#row(sources, sample);
        for (let t = 0, at = 2 * row * blockSize; t < blockSize; t++, at += 2) {
          tokenWords[at] = read[t]!;
          nextWords[at] = read[t + 1]!;
        }
      }),
    );
    const shape = [samples.length, blockSize];
    return { tokens: { data: tokens, shape }, next: { data: next, shape } };
  }

  /** T + 1 tokens. */
  async #row(sources: readonly TokenSource[], sample: number): Promise<Uint16Array | Uint32Array> {
    const { blockSize, vocabulary } = this.#given;
    let [i, inside] = [0, sample];
    for (let rows = this.#rowsIn(sources[i]!); inside >= rows; rows = this.#rowsIn(sources[i]!)) {
      inside -= rows;
      i++;
    }
    const source = sources[i]!;
    return readChecked(source, inside * blockSize, blockSize + 1, vocabulary);
  }

  async close(): Promise<void> {
    for (const source of [...this.#given.training, ...this.#given.validation]) await source.close?.();
  }
}
