/**
 * Which files of a data path are text, and how each of them is read.
 *
 * A file without a zero byte in its first 8 KiB is text, as git and grep define it. The ending of its name, in either
 * case and without that of gzip or zstd, tells its form. Some forms have columns, of which one has the texts. Where a
 * folder has files with columns, only these are read; otherwise its plain texts are.
 */
import { basename, extname, relative } from "node:path";
import { beginningOf } from "../content/content-of-file.ts";
import { arrow, encodingOf, noTextBecause } from "../content/encoding.ts";
import { unpackedName } from "../content/packing.ts";
import { DataError } from "../data-error.ts";
import { filesAt, type LeftOutFile, type SizedFile } from "../files-at.ts";
import { fileGroup, type Inventory, leftOutGroups } from "../inventory.ts";
import { partsBySplit, splitOfPath } from "../split-names.ts";

export type Form = "plain" | "jsonl" | "json" | "csv" | "tsv" | "parquet";

const forms: Readonly<Record<string, Form>> = {
  ".jsonl": "jsonl",
  ".jsonlines": "jsonl",
  ".ndjson": "jsonl",
  ".json": "json",
  ".csv": "csv",
  ".tsv": "tsv",
  ".parquet": "parquet",
};

export interface TextFile extends SizedFile {
  readonly form: Form;
  readonly isPacked: boolean;
}

export interface TextFiles {
  readonly training: readonly TextFile[]; // one or more
  readonly heldOut: readonly TextFile[]; // by their names
  readonly inventory: Inventory;
  /** The column to read; undefined where the bytes of the files are read as they are. */
  readonly column: string | undefined;
  /** What the user should know of how the files are read, a line each. */
  readonly remarks: readonly string[];
}

/**
 * How files are read: as "bytes" unless a column is named; as "texts", by default of the column "text"; or as "rows" of
 * objects.
 */
export type ReadAs = "bytes" | "texts" | "rows";

const defaultColumn = "text";

/** The files at a path that are read as texts: to train on, and held out. Throws `DataError`. */
export async function textFiles(path: string, readAs: ReadAs, column?: string): Promise<TextFiles> {
  const { isFolder, files, leftOut } = await filesAt(path);
  const looked: InspectedFile[] = [];
  for (const file of files) looked.push(await lookInto(file));
  const asBytes = readAs === "bytes" && column === undefined;
  if (readAs === "rows") {
    if (!isFolder && !hasRows(looked[0]!.file) && looked[0]!.problem === undefined)
      throw new DataError(`${path} is no .jsonl, .json or .parquet file of rows; name one, or a folder of them.`);
    for (const [i, each] of looked.entries())
      if (!hasRows(each.file)) looked[i] = { ...each, problem: each.problem ?? noRows };
  }
  return isFolder ? ofFolder(path, looked, leftOut, asBytes, column) : ofFile(looked[0]!, asBytes, column);
}

/** Forms whose rows are objects, which may have lists in them. */
const hasRows = ({ form }: TextFile) => form === "jsonl" || form === "json" || form === "parquet";
const noRows = "no .jsonl, .json or .parquet";

function ofFile(
  { file, isText, isUtf16, problem }: InspectedFile,
  asBytes: boolean,
  column: string | undefined,
): TextFiles {
  const { path, form, isPacked } = file;
  const raw = asBytes && form !== "parquet";
  if (!isText && isTokens(path)) throw tokensInstead(path);
  // Any file is read as bytes, except a packed one.
  if (problem !== undefined && (!raw || isPacked)) throw new DataError(`${path} is ${problem}.`);
  return {
    training: [file],
    heldOut: [],
    inventory: { training: fileGroup(path, [file]), leftOut: [] },
    column: raw ? undefined : (column ?? defaultColumn),
    remarks: [
      ...(raw ? remarksOnRaw([file]) : []),
      ...(raw && problem !== undefined ? [`data: ${path} is ${problem}; its bytes are read as they are`] : []),
      ...(raw && isUtf16
        ? [`data: ${path} is UTF-16, and its bytes are read as they are; iconv -f UTF-16 -t UTF-8 makes half as many`]
        : []),
    ],
  };
}

function ofFolder(
  path: string,
  looked: readonly InspectedFile[],
  leftOut: readonly LeftOutFile[],
  asBytes: boolean,
  column: string | undefined,
): TextFiles {
  const left = [...leftOut];
  const [usable, descriptions]: [TextFile[], TextFile[]] = [[], []];
  const description = looked.some(({ problem }) => problem === arrow) ? ofSavedDataset : ofDataset;
  for (const { file, problem, isUtf16 } of looked) {
    const why = problem ?? (asBytes && isUtf16 ? "UTF-16, not read as bytes: convert it with iconv" : undefined);
    if (why !== undefined) left.push({ ...file, why });
    else (description.test(basename(file.path)) ? descriptions : usable).push(file);
  }
  for (const file of descriptions) left.push({ ...file, why: "a description of the dataset" });
  const ofForm = (...wanted: readonly Form[]) => usable.filter(({ form }) => wanted.includes(form));
  // A .json may be anything, package.json as well as data: it is read where a column is named, or where there is no
  // other text.
  const withColumns = ofForm("jsonl", "csv", "tsv", "parquet", ...(column === undefined ? [] : ["json" as const]));
  const plain = ofForm("plain");
  const texts = usable.filter(({ form }) => form !== "parquet");
  const raw = asBytes && texts.length > 0;
  const taken = raw
    ? texts
    : withColumns.length > 0
      ? withColumns
      : plain.length > 0
        ? texts.map((file) => ({ ...file, form: "plain" as const }))
        : usable;
  if (taken.length === 0) throw noText(path, left);
  const paths = new Set(taken.map((file) => file.path));
  const beside = raw ? "not read beside text" : "not read beside files with columns";
  for (const file of usable) if (!paths.has(file.path)) left.push({ ...file, why: beside });

  const isProgram = bytesOf(taken.filter((file) => programs.test(file.path))) > bytesOf(taken) / 2;
  const { training, heldOut, heldOutSplit, ...parts } = partsBySplit(taken, (file) =>
    isProgram ? undefined : splitOfPath(relative(path, unpackedName(file.path))),
  );
  if (training.length === 0)
    throw new DataError(
      `${path} has only held-out files (${relative(path, heldOut[0]!.path)} is one by its name); add the files to train on, or name a file itself.`,
    );
  for (const file of parts.leftOut) left.push({ ...file, why: "the test split" });
  return {
    training,
    heldOut,
    inventory: {
      training: fileGroup(path, training),
      ...(heldOutSplit && { heldOut: { ...fileGroup(path, heldOut), split: heldOutSplit } }),
      leftOut: leftOutGroups(path, left),
    },
    column: raw ? undefined : (column ?? defaultColumn),
    remarks: raw ? remarksOnRaw(training) : [],
  };
}

/** Files of Hugging Face's datasets that say what is in the other files; with Arrow's also `state.json`. */
const ofDataset = /^dataset_(infos?|dict)\.json$/;
const ofSavedDataset = /^(state|dataset_(infos?|dict))\.json$/;

const bytesOf = (files: readonly SizedFile[]) => files.reduce((sum, { size }) => sum + size, 0);

/** Names of program sources. In a folder of them, words such as test are topics, and hold nothing out. */
const programs =
  /\.([cm]?[jt]sx?|py[ix]?|ipynb|[ch]|cc|cpp|cxx|hh|hpp|cuh?|java|kts?|go|rs|rb|php|cs|fs|swift|scala|sh|pl|lua|jl|sql|hs|ml|clj|exs?|erl|vue|svelte|s?css|html?)$/i;

interface InspectedFile {
  readonly file: TextFile;
  readonly isText: boolean;
  readonly isUtf16: boolean;
  /** The reason for which it is not read. */
  readonly problem?: string | undefined;
}

/** Looks into a file: whether it is text, and why it is not read. Throws `DataError`. */
async function lookInto(file: SizedFile): Promise<InspectedFile> {
  const { head, isPacked, problem } = await beginningOf(file.path);
  const form = forms[extname(unpackedName(file.path)).toLowerCase()] ?? "plain";
  const found = { file: { ...file, form, isPacked }, isUtf16: encodingOf(head).encoding !== "utf-8" };
  if (form === "parquet" && problem === undefined)
    return { ...found, isText: false, problem: isPacked ? "parquet that is packed once more: unpack it" : undefined };
  const because = problem ?? noTextBecause(head);
  return { ...found, isText: because === undefined, problem: because };
}

function remarksOnRaw(files: readonly TextFile[]): string[] {
  const structured = files.find(({ form }) => form !== "plain");
  return structured === undefined
    ? []
    : [
        `data: ${structured.path} is read as it is, with its keys and separators; data.column: text reads its texts alone`,
      ];
}

const isTokens = (path: string) => extname(path).toLowerCase() === ".bin";

const tokensInstead = (path: string) =>
  new DataError(
    `${path} is no text; files of tokens are read with data.name: tokens, or masked-text for models that predict masked tokens.`,
  );

function noText(path: string, left: readonly LeftOutFile[]): DataError {
  if (left.some((file) => isTokens(file.path))) return tokensInstead(path);
  const noRowsIn = left.find(({ why }) => why === noRows);
  if (noRowsIn)
    return new DataError(
      `There is no .jsonl, .json or .parquet file of rows in ${path} or the folders below it (${relative(path, noRowsIn.path)} is none); name one, or a folder of them.`,
    );
  const [first] = left;
  const found = first === undefined ? "" : ` (${relative(path, first.path)} is ${first.why})`;
  return new DataError(
    `There is no text file in ${path} or the folders below it${found}; name a folder with text in it.`,
  );
}

/** Whether the texts at `path` are in files with columns, of which `column` names one. Throws `DataError`. */
export const hasColumns = async (path: string, column: string): Promise<boolean> =>
  (await textFiles(path, "texts", column)).training.some(({ form }) => form !== "plain");
