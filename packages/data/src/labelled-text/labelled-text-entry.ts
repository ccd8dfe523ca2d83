/** The dataset of labelled texts, for the registry: a folder with train.tsv and dev.tsv, as GLUE has them. */
import { createHash } from "node:crypto";
import { basename } from "node:path";
import { flag, positiveInteger, text, v } from "@terse/options";
import { DataError } from "../data-error.ts";
import type { SampledEntry } from "../dataset.ts";
import { someNames } from "../documents/some-names.ts";
import type { TableRow } from "../documents/table.ts";
import { SkippedRows } from "../documents/table.ts";
import { tableFile } from "../documents/table-file.ts";
import type { SizedFile } from "../files-at.ts";
import { inTurn } from "../in-turn.ts";
import { withPassedOver } from "../inventory.ts";
import { tokenizerFiles } from "../tokenizers/tokenizer-files.ts";
import { bertTokens, openTokenizer } from "../tokenizers/tokenizers.ts";
import { largestInMemory } from "../tokens/largest-in-memory.ts";
import { labelledFiles } from "./labelled-files.ts";
import { type LabelledText, labelledTextSamples } from "./labelled-text-samples.ts";

const options = v.object({
  path: text, // a folder with train.tsv and, to validate on, another file; or a .tsv or .csv to train on
  // The name of the file to validate on: dev_matched.tsv for MNLI. If absent dev.tsv, or the one named as that split.
  validation: v.optional(text),
  // Whether the first line names the columns; else a column's name is its number, from 1.
  header: v.optional(flag, true),
  tokenizer: v.optional(text, "bytes"), // bytes, gpt2, or the path of a tokenizer.json
  sentence: v.optional(text, "sentence"), // the column of the text
  second: v.optional(text), // the column of the second text, for pairs
  label: v.optional(text, "label"), // the column of the label
  classes: v.optional(positiveInteger, 2), // labels are 0 … classes − 1
  // The labels of a file that has words, in the order of their classes: entailment, neutral, …
  labels: v.optional(v.array(text)),
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
  inventory: async ({ path, validation }: Options) => (await labelledFiles(path, validation)).inventory,
  async samples({ path, ...given }: Options, { length, holdOutAll = false }) {
    const tokenizer = await openTokenizer(given.tokenizer);
    const blockSize = given.blockSize ?? length!;
    const columns = [given.label, given.sentence, ...(given.second === undefined ? [] : [given.second])];
    if (blockSize < columns.length + 2)
      throw new DataError(
        `data.blockSize is ${blockSize}, too few tokens for a row; set it to ${columns.length + 2} or more.`,
      );
    const classOf = classesBy(given);
    const hash = createHash("sha256").update(`${blockSize} ${given.labels?.join("/") ?? given.classes}`);
    const passed = new SkippedRows();
    const encoded = async ({ values, number }: TableRow) => {
      const [label, ...sentences] = values as [string, ...string[]];
      const ids = await Promise.all(sentences.map((sentence) => tokenizer.encode(sentence)));
      return { label, tokens: ids.map((each) => Int32Array.from(each)), number };
    };
    const read = async (files: readonly SizedFile[]) => {
      const texts: LabelledText[] = [];
      for (const file of files) {
        const rows = tableFile(file.path, columns, { ...given, passOver: passed.add });
        for await (const { label, tokens, number } of inTurn(rows, encoded, ({ values }) => values.join("").length)) {
          hash.update(`${label} ${tokens.map((each) => each.join()).join(" ")}\n`);
          texts.push({ sentences: tokens, label: classOf(label, `${file.path}, line ${number}`) });
        }
      }
      return texts;
    };
    const files = await labelledFiles(path, given.validation);
    const size = [...files.training, ...files.validation].reduce((sum, file) => sum + file.size, 0);
    if (size > largestInMemory())
      throw new DataError(`The texts at ${path} have ${size} bytes, too many for memory; give fewer.`);
    const rows = await read(files.training);
    if (rows.length === 0) throw new DataError(`${files.training[0]!.path} has no rows; give one or more to train on.`);
    const isWhole = holdOutAll && files.validation.length === 0;
    const training = isWhole ? [] : rows;
    const validation = isWhole ? rows : await read(files.validation);
    const inventory = withPassedOver(
      files.inventory,
      passed.words((file) => basename(file)),
    );
    const special = bertTokens(given.tokenizer);
    const fingerprint = hash.digest("hex");
    return labelledTextSamples({
      source: path,
      training,
      validation,
      fingerprint,
      blockSize,
      special,
      classNames: given.labels,
      inventory,
      remarks: remarkOnLabels(training),
    });
  },
};

function remarkOnLabels(texts: readonly LabelledText[]): string[] {
  const labels = new Set(texts.map(({ label }) => label));
  return labels.size === 1
    ? [`data: all ${texts.length} texts to train on have the label ${[...labels]}: there is nothing to learn`]
    : [];
}

/** The class of a label, which is a number or a word. */
function classesBy({ labels, classes }: Pick<Options, "labels" | "classes">): (label: string, where: string) => number {
  const known = labels && new Map(labels.map((label, i) => [label, i]));
  return (label, where) => {
    const found = known ? known.get(label) : /^\d+$/.test(label) ? Number(label) : undefined;
    if (found !== undefined && (known || found < classes)) return found;
    const expected = labels
      ? `data.labels are ${labels.join(", ")}`
      : `the labels of ${classes} classes are 0 to ${classes - 1}`;
    if (/^[+-]?\d*\.\d+$/.test(label))
      throw new DataError(
        `${where} has the score ${label} as its label, and labels are classes here: scores such as STS-B's (regression) are not learned; name a column of classes with data.label, or list these with data.labels if they are classes.`,
      );
    throw new DataError(
      `${where} has label ${someNames([label])}, and ${expected}; correct it, or set ${labels ? "data.labels" : "data.classes, or data.labels for words and other numbers"}.`,
    );
  };
}
