/**
 * The part of a dataset that the name of a file or folder stands for. The words are those of Hugging Face's datasets,
 * as whole words between "-", "._", blanks and digits: stories-valid.txt, wiki.test.raw, train-00000-of-00004.parquet,
 * val2017/. Of several words the last one counts. https://huggingface.co/docs/datasets/repository_structure
 */
import { basename } from "node:path";

export type Split = "training" | "validation" | "test";

const splits: ReadonlyMap<string, Split> = new Map([
  ...["train", "training"].map((word) => [word, "training"] as const),
  ...["validation", "valid", "dev", "val"].map((word) => [word, "validation"] as const),
  ...["test", "testing", "eval", "evaluation"].map((word) => [word, "test"] as const),
]);

/** The split that one name means, without folders and in any capitals; undefined where it has none of the words. */
export function splitOfName(name: string): Split | undefined {
  const words = name.toLowerCase().split(/[-._ 0-9]+/);
  return words.map((word) => splits.get(word)).findLast((split) => split !== undefined);
}

/**
 * The split of a path below the folder of the data: that of the innermost folder whose name has such a word, else that
 * of the file's own name.
 */
export function splitOfPath(path: string): Split | undefined {
  const folders = path.split(/[/\\]/).slice(0, -1);
  return folders.map(splitOfName).findLast((split) => split !== undefined) ?? splitOfName(basename(path));
}

export interface Parts<T> {
  readonly training: readonly T[]; // those of no split too
  readonly heldOut: readonly T[];
  /** The split that is held out by its name: the validation split, else the test split. */
  readonly heldOutSplit: "validation" | "test" | undefined;
  /** The test split, where there is a validation split beside it. */
  readonly leftOut: readonly T[];
}

/** Divides paths: those to train on, those held out, and those left for a test after the run. */
export function partsBySplit<T>(all: readonly T[], splitOf: (each: T) => Split | undefined): Parts<T> {
  const of = (wanted: Split) => all.filter((each) => (splitOf(each) ?? "training") === wanted);
  const [training, validation, test] = [of("training"), of("validation"), of("test")];
  if (validation.length > 0) return { training, heldOut: validation, heldOutSplit: "validation", leftOut: test };
  return { training, heldOut: test, heldOutSplit: test.length > 0 ? "test" : undefined, leftOut: [] };
}
