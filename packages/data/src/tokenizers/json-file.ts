/** A file of JSON that somebody else wrote. */
import { closeSync, readFileSync } from "node:fs";
import { DataError, unreadable } from "../data-error.ts";
import { openRegularFile } from "../regular-file.ts";

const mostBytes = 256 << 20; // the largest known tokenizer.json has 34 MB

/** Its text, and what it says. Throws `DataError`. */
export function jsonFile(path: string): { readonly text: string; readonly json: unknown } {
  const { descriptor, status } = openRegularFile(path);
  let text: string;
  try {
    if (status.size > mostBytes) throw new Error(`it has ${status.size} bytes, and ${mostBytes} is the most`);
    text = readFileSync(descriptor, "utf8");
  } catch (error) {
    throw unreadable(path, error);
  } finally {
    closeSync(descriptor);
  }
  try {
    return { text, json: JSON.parse(text) };
  } catch (error) {
    throw new DataError(`${path} is not JSON, or was cut short: ${(error as Error).message}; fetch it again.`);
  }
}
