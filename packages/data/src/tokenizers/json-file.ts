/** A file of JSON that somebody else wrote. */
import { closeSync, existsSync, readFileSync } from "node:fs";
import { DataError, unreadable } from "../data-error.ts";
import { openRegularFile } from "../regular-file.ts";

// The largest known tokenizer.json has 34 MB, and half a million lists. Parsed, a byte may take 13 and a list 100.
const mostBytes = 100 << 20;
const mostParts = 1 << 22;

/** Its text, and what it says. Throws `DataError`. */
export function jsonFile(path: string): { readonly text: string; readonly json: unknown } {
  const { descriptor, status } = openRegularFile(path);
  let text: string;
  try {
    if (status.size > mostBytes) throw new Error(`it has ${status.size} bytes, and ${mostBytes} is the most`);
    const bytes = readFileSync(descriptor);
    let parts = 0;
    for (const byte of bytes) if (byte === 0x5b || byte === 0x7b) parts++; // [ and {
    if (parts > mostParts) throw new Error(`it has ${parts} lists and objects, and ${mostParts} is the most`);
    text = bytes.toString();
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

/** What a file of JSON says; undefined where there is none. Throws `DataError`. */
export const jsonIfThere = (path: string): unknown => (existsSync(path) ? jsonFile(path).json : undefined);
