/**
 * Rows of T tokens for BERT: [CLS] first part [SEP] second part [SEP], some tokens masked. The text is cut into
 * stretches of T − 3 tokens. The first part is the first half of a stretch. The second part is its second half or, in
 * half of the rows, that of another stretch.
 */
import { DataError } from "../data-error.ts";
import { RandomNumbers } from "../random.ts";
import type { Arrays, Row, SampleFacts, Samples } from "../samples.ts";
import type { BertTokens } from "../tokenizers/tokenizers.ts";
import { readChecked, type TokenSource } from "../tokens/token-source.ts";
import { maskTokens } from "./masking.ts";

interface MaskedTextInput extends Pick<SampleFacts, "source" | "fingerprint" | "inventory" | "remarks"> {
  readonly training: TokenSource;
  readonly validation: TokenSource;
  readonly blockSize: number; // T
  readonly special: BertTokens;
  readonly vocabulary: number; // of the tokenizer, without tokens that were added
  readonly maskFraction: number;
  readonly seed: number;
}

export class MaskedTextSamples implements Samples {
  readonly facts: SampleFacts;
  readonly #input: MaskedTextInput;

  /** The samples of tokens. Throws `DataError` where there are too few. */
  constructor(input: MaskedTextInput) {
    const { source, training, validation, fingerprint, blockSize, inventory, remarks } = input;
    if (blockSize < 5)
      throw new DataError(
        `data.blockSize is ${blockSize}, and a row of two sentences has 5 tokens or more; set it to 5 or more.`,
      );
    this.#input = input;
    const rowsIn = ({ length }: TokenSource) => Math.floor(length / (blockSize - 3));
    this.facts = {
      source,
      unit: "token",
      trainingUnits: training.length,
      validationUnits: validation.length,
      item: "token",
      itemsPerRow: blockSize,
      trainingSamples: rowsIn(training),
      validationSamples: rowsIn(validation),
      fingerprint,
      inventory,
      remarks,
    };
    const { trainingUnits, validationUnits, trainingSamples, validationSamples } = this.facts;
    for (const [samples, units, what] of [
      [trainingSamples, trainingUnits, "train"],
      [validationSamples, validationUnits, "validate"],
    ] as const)
      if (samples < 2 && (units > 0 || (what === "train" && validationUnits === 0)))
        throw new DataError(
          `${source} has ${units} tokens to ${what} on, and at least two rows of ${blockSize - 3} (data.blockSize − 3) are needed; give more text or a smaller block.`,
        );
  }

  training(rows: readonly Row[]): Promise<Arrays> {
    return this.#batch(this.#input.training, this.facts.trainingSamples, rows, this.#input.seed);
  }

  validation(samples: readonly number[]): Promise<Arrays> {
    const rows = samples.map((sample) => ({ sample, position: sample }));
    return this.#batch(this.#input.validation, this.facts.validationSamples, rows, 0);
  }

  async #batch(source: TokenSource, count: number, rows: readonly Row[], seed: number): Promise<Arrays> {
    const { blockSize: T, special, maskFraction, vocabulary } = this.#input;
    const shape = [rows.length, T];
    const fields = { tokens: [] as Int32Array[], segments: [] as Int32Array[], labels: [] as Int32Array[] };
    const nextSentence = new BigInt64Array(rows.length);
    const n = T - 3;
    const half = Math.ceil(n / 2);
    for (const [row, { sample, position }] of rows.entries()) {
      const random = new RandomNumbers(seed, position, "masking");
      const follows = random.chance(0.5);
      const another = random.below(count - 1);
      const second = follows ? sample : another + (another >= sample ? 1 : 0);
      const first = await readChecked(source, sample * n, half, vocabulary);
      const last = await readChecked(source, second * n + half, n - half, vocabulary);
      const own = Int32Array.of(special.classify, ...first, special.separate, ...last, special.separate);
      const places = [...own.keys()].filter((place) => place !== 0 && place !== half + 1 && place !== T - 1);
      fields.labels.push(maskTokens(own, places, { fraction: maskFraction, mask: special.mask, vocabulary }, random));
      fields.tokens.push(own);
      fields.segments.push(Int32Array.from(own, (_, place) => (place < half + 2 ? 0 : 1)));
      nextSentence[row] = follows ? 0n : 1n;
    }
    const flat = (parts: readonly Int32Array[]) =>
      BigInt64Array.from(
        parts.flatMap((part) => [...part]),
        BigInt,
      );
    return {
      tokens: { data: flat(fields.tokens), shape },
      segments: { data: flat(fields.segments), shape },
      mask: { data: new BigInt64Array(rows.length * T).fill(1n), shape },
      labels: { data: flat(fields.labels), shape },
      nextSentence: { data: nextSentence, shape: [rows.length] },
    };
  }

  async close(): Promise<void> {
    for (const source of [this.#input.training, this.#input.validation]) await source.close?.();
  }
}
