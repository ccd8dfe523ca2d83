/** The data of a run cannot be used. The message says why and what to do. */
export class DataError extends Error {
  override readonly name = "DataError";
}

/** A file or folder of the data cannot be read. */
export function unreadable(path: string, error: unknown): DataError {
  const { code } = error as NodeJS.ErrnoException;
  const reason = reasonOf(error);
  const remedy =
    reason === notUtf8
      ? "rename it"
      : code === "EMFILE" || code === "ENFILE"
        ? "let this process open more of them (ulimit -n)"
        : "make it readable, or remove it from the data path";
  return new DataError(`Cannot read ${path}: ${reason}; ${remedy}.`);
}

const notUtf8 = "its name is not UTF-8";

const denied = "permission denied";
const tooManyOpen = "too many files are open";
const away = "the server of its disk is away";
const reasons: Readonly<Record<string, string>> = {
  ENOENT: "it does not exist",
  EACCES: denied,
  EPERM: denied,
  ELOOP: "its symbolic links form a cycle",
  ENOTDIR: "a part of the path is a file, not a folder",
  EMFILE: tooManyOpen,
  ENFILE: tooManyOpen,
  EEXIST: "a file has the name of this folder, or of one above it",
  ENOSPC: "no space is left on its disk",
  EDQUOT: "your disk quota is used up",
  EROFS: "its disk is read-only",
  ENAMETOOLONG: "a name in the path is too long",
  ESTALE: away,
  ENOTCONN: away,
  EHOSTDOWN: away,
  ETIMEDOUT: away,
  EIO: "the disk reports an error",
};

/** The words for a file system error, to follow "Cannot read x: ". */
export function reasonOf(error: unknown): string {
  const { code = "", path } = error as NodeJS.ErrnoException;
  if (code === "ENOENT" && path?.includes("\ufffd")) return notUtf8; // Node replaces what it cannot decode
  return reasons[code] ?? (error instanceof Error ? error.message : String(error));
}

/** What a library says of a file of others, which may have put a long text into it. */
export const shortened = (words: string): string => (words.length > 500 ? `${words.slice(0, 500)}…` : words);
