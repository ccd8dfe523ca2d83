/** A file of JSON that somebody else wrote. */
import { readFileSync, statSync } from "node:fs";
import { DataError, reasonOf } from "../data-error.ts";

const mostBytes = 256 << 20; // the largest known tokenizer.json has 34 MB

/** Its text, and what it says. Throws `DataError`, with what the file is and the remedy where it cannot be read. */
export function jsonFile(
  path: string,
  what: string,
  remedy: string,
): { readonly text: string; readonly json: unknown } {
  let text: string;
  try {
    const found = statSync(path);
    if (!found.isFile()) throw new Error("it is no regular file");
    if (found.size > mostBytes) throw new Error(`it has ${found.size} bytes, and ${mostBytes} is the most`);
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new DataError(`Cannot read ${what} ${path}: ${reasonOf(error)}; ${remedy}.`);
  }
  try {
    return { text, json: JSON.parse(text) };
  } catch (error) {
    throw new DataError(`${path} is not JSON, or was cut short: ${(error as Error).message}; fetch it again.`);
  }
}
