/**
 * Rows of T tokens: a sentence to classify, or a pair. [CLS] first [SEP], or [CLS] first [SEP] second [SEP], then
 * padding.
 */
import { listedSamples } from "../listed-samples.ts";
import type { Arrays, SampleFacts, Samples } from "../samples.ts";
import type { BertTokens } from "../tokenizers/tokenizers.ts";

export interface LabelledText {
  readonly sentences: readonly Int32Array[]; // one or two, as tokens
  readonly label: number;
}

interface LabelledTextInput
  extends Pick<SampleFacts, "source" | "fingerprint" | "classNames" | "inventory" | "remarks"> {
  readonly training: readonly LabelledText[];
  readonly validation: readonly LabelledText[];
  readonly blockSize: number; // T
  readonly special: BertTokens;
}

export function labelledTextSamples(input: LabelledTextInput): Samples {
  const { training, validation, blockSize: T, special, ...given } = input;
  const [trainingUnits, validationUnits] = [training.length, validation.length];
  const facts = { ...given, unit: "text", trainingUnits, validationUnits, item: "text", itemsPerRow: 1 };
  return listedSamples(facts, { training, validation, batchOf });

  function batchOf(texts: readonly LabelledText[]): Arrays {
    const [tokens, segments, mask] = [special.pad, 0, 0].map((value) =>
      new BigInt64Array(texts.length * T).fill(BigInt(value)),
    ) as [BigInt64Array, BigInt64Array, BigInt64Array];
    for (const [row, { sentences }] of texts.entries()) {
      let at = row * T;
      const put = (token: number, segment: number) => {
        tokens[at] = BigInt(token);
        segments[at] = BigInt(segment);
        mask[at++] = 1n;
      };
      put(special.classify, 0);
      for (const [segment, sentence] of shortened(sentences, T - 1 - sentences.length).entries()) {
        for (const token of sentence) put(token, segment);
        put(special.separate, segment);
      }
    }
    const shape = [texts.length, T];
    const labels = BigInt64Array.from(texts, ({ label }) => BigInt(label));
    return {
      tokens: { data: tokens, shape },
      segments: { data: segments, shape },
      mask: { data: mask, shape },
      labels: { data: labels, shape: [texts.length] },
    };
  }
}

/** At most `room` tokens in all: the longer sentence loses tokens at its end first. */
function shortened(sentences: readonly Int32Array[], room: number): readonly Int32Array[] {
  const lengths = sentences.map(({ length }) => length);
  while (lengths.reduce((a, b) => a + b, 0) > room) lengths[lengths.indexOf(Math.max(...lengths))]!--;
  return sentences.map((sentence, i) => sentence.subarray(0, lengths[i]));
}
