/** The dataset of GLUE's files, for the registry: a folder with train.tsv and dev.tsv. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { flag, positiveInteger, text, v } from "@terse/options";
import { DataError } from "../data-error.ts";
import type { SampledEntry } from "../dataset.ts";
import { tsvRows } from "../documents/tsv.ts";
import { tokenizerFiles } from "../tokenizers/tokenizer-files.ts";
import { bertTokens, openTokenizer } from "../tokenizers/tokenizers.ts";
import { type LabelledText, LabelledTextSamples } from "./labelled-text-samples.ts";

const options = v.object({
  path: text, // a folder with train.tsv and, to validate on, another file
  validation: v.optional(text, "dev.tsv"), // its name: dev_matched.tsv for MNLI
  header: v.optional(flag, true), // whether the first line names the columns; else a column's name is its number, from 1
  tokenizer: v.optional(text, "bytes"), // bytes, gpt2, or the path of a tokenizer.json
  sentence: v.optional(text, "sentence"), // the column of the text
  second: v.optional(text), // the column of the second text, for pairs
  label: v.optional(text, "label"), // the column of the label
  classes: v.optional(positiveInteger, 2), // labels are 0 … classes − 1
  labels: v.optional(v.array(text)), // the labels of a file that has words, in the order of their classes: entailment, neutral, …
  blockSize: v.optional(positiveInteger), // tokens a row; the model's context if absent
});
type Options = v.InferOutput<typeof options>;

export const labelledTextEntry: SampledEntry = {
  options,
  fields: ["tokens", "segments", "mask", "labels"],
  processorFiles: ({ tokenizer }: Options) => tokenizerFiles(tokenizer, { bert: true }),
  facts: ({ tokenizer, blockSize, classes, labels }: Options) => ({
    vocabulary: bertTokens(tokenizer).vocabulary,
    length: blockSize,
    classes: labels?.length ?? classes,
  }),
  async samples({ path, ...given }: Options, { length }) {
    const tokenizer = await openTokenizer(given.tokenizer);
    const blockSize = given.blockSize ?? length!;
    const columns = [given.label, given.sentence, ...(given.second === undefined ? [] : [given.second])];
    if (blockSize < columns.length + 2)
      throw new DataError(
        `data.blockSize is ${blockSize}, too few tokens for a row; set it to ${columns.length + 2} or more.`,
      );
    const classOf = classesBy(given);
    const hash = createHash("sha256").update(`${blockSize} ${given.labels?.join("/") ?? given.classes}`);
    const read = async (file: string) => {
      const texts: LabelledText[] = [];
      for await (const { values, number } of tsvRows(file, columns, given)) {
        const [label, ...sentences] = values as [string, ...string[]];
        const tokens = await Promise.all(
          sentences.map(async (sentence) => Int32Array.from(await tokenizer.encode(sentence))),
        );
        hash.update(`${label} ${tokens.map((each) => each.join()).join(" ")}\n`);
        texts.push({ sentences: tokens, label: classOf(label, `${file}, line ${number}`) });
      }
      return texts;
    };
    const [train, dev] = [join(path, "train.tsv"), join(path, given.validation)];
    const training = await read(train);
    if (training.length === 0) throw new DataError(`${train} has no rows; give one or more to train on.`);
    const validation = existsSync(dev) ? await read(dev) : [];
    const special = bertTokens(given.tokenizer);
    const fingerprint = hash.digest("hex");
    return new LabelledTextSamples({ source: path, training, validation, fingerprint, blockSize, special });
  },
};

/** The class of a label, which is a number or a word. */
function classesBy({ labels, classes }: Pick<Options, "labels" | "classes">): (label: string, where: string) => number {
  const known = labels && new Map(labels.map((label, i) => [label, i]));
  return (label, where) => {
    const found = known ? known.get(label) : /^\d+$/.test(label) ? Number(label) : undefined;
    if (found !== undefined && (known || found < classes)) return found;
    const expected = labels
      ? `data.labels are ${labels.join(", ")}`
      : `the labels of ${classes} classes are 0 to ${classes - 1}`;
    throw new DataError(
      `${where} has label ${label}, and ${expected}; correct it, or set ${labels ? "data.labels" : "data.classes, or data.labels for words"}.`,
    );
  };
}
