import { DataError } from "../data-error.ts";
import { isText, textFiles } from "./text-files.ts";

/** How a path is read where the options name no column, and what the user should know of it, a line each. */
export interface TextForm {
  /** Read this column; else the bytes of the files as they are. */
  readonly column?: string | undefined;
  readonly remarks: readonly string[];
}

const withColumns = [".jsonl", ".ndjson", ".tsv"];
const noText = [".parquet", ".bin"];

/** Parquet is no text, so its column is read, where a folder has no text beside it. Throws `DataError`. */
export async function textForm(path: string): Promise<TextForm> {
  const texts = await textFiles(path).catch((error: unknown) => {
    if (error instanceof DataError) return [];
    throw error;
  });
  const all = await textFiles(path, [...withColumns, ...noText], { binary: true }).catch(() => []); // textFiles says why
  const ending = (files: typeof all, ...endings: string[]) =>
    files.filter((file) => endings.some((each) => file.path.endsWith(each)));
  const isFile = all.length === 1 && all[0]!.path === path;
  if (ending(all, ".parquet").length > 0 && (isFile || texts.length === 0)) return { column: "text", remarks: [] };
  if (isFile ? path.endsWith(".bin") && !(await isText(path)) : texts.length === 0 && ending(all, ".bin").length > 0)
    throw new DataError(
      `${path} is no text; files of tokens are read with data.name: tokens, or masked-text for models that predict masked tokens.`,
    );
  const [raw, left] = [ending(texts, ...withColumns), isFile ? [] : ending(all, ...noText)];
  return {
    remarks: [
      ...(raw.length > 0
        ? [
            `data: ${raw[0]!.path} is read as it is, with its keys and separators; data.column: text reads its texts alone`,
          ]
        : []),
      ...(left.length > 0
        ? [
            `data: ${left[0]!.path} is no text and is not read; name it itself, or its folder, without the texts beside it`,
          ]
        : []),
    ],
  };
}
