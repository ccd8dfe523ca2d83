/** Opens every file that a user names, or that lies in a user's folder: reading a pipe or a device may never end. */
import { closeSync, constants, fstatSync, openSync, type Stats, statSync } from "node:fs";
import { DataError, unreadable } from "./data-error.ts";

/** Windows lacks these flags. */
const { O_NONBLOCK = 0, O_NOCTTY = 0 } = constants as Partial<typeof constants>;

export interface OpenedFile {
  readonly descriptor: number;
  readonly status: Stats;
}

/** Opens a file to read. Throws `DataError` where it cannot be opened, or is no regular file. */
export function openRegularFile(path: string): OpenedFile {
  try {
    return openRegular(path);
  } catch (error) {
    throw error instanceof NotRegularFile
      ? new DataError(`${path} is ${error.message}; copy its content into a file and name that.`)
      : unreadable(path, error);
  }
}

/**
 * Opens a regular file, for a caller that words its own errors. Throws `NotRegularFile`, or the error of `openSync`.
 */
export function openRegular(path: string): OpenedFile {
  let descriptor: number | undefined;
  try {
    refuseOther(statSync(path)); // before it is opened: to open a device may do something
    // A pipe that has taken the file's place since then does not block either.
    descriptor = openSync(path, constants.O_RDONLY | O_NONBLOCK | O_NOCTTY);
    const status = fstatSync(descriptor);
    refuseOther(status);
    return { descriptor, status };
  } catch (error) {
    if (descriptor !== undefined) closeSync(descriptor);
    throw error;
  }
}

/** Thrown for anything but a regular file. The message says what it is: "a named pipe and no regular file". */
export class NotRegularFile extends Error {
  override readonly name = "NotRegularFile";
}

function refuseOther(status: Stats): void {
  if (status.isFile()) return;
  const what = status.isDirectory() ? "a folder" : status.isFIFO() ? "a named pipe" : "a device or socket";
  throw new NotRegularFile(`${what} and no regular file`);
}
