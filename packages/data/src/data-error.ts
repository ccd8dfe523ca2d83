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

/** The words for a file system error, to follow "Cannot read x: ". */
export function reasonOf(error: unknown): string {
  const { code, path } = error as NodeJS.ErrnoException;
  switch (code) {
    case "ENOENT":
      return path?.includes("\ufffd") ? notUtf8 : "it does not exist"; // Node replaces what it cannot decode
    case "EACCES":
    case "EPERM":
      return "permission denied";
    case "ELOOP":
      return "its symbolic links form a cycle";
    case "ENOTDIR":
      return "a part of the path is a file, not a folder";
    case "EMFILE":
    case "ENFILE":
      return "too many files are open";
    case "EEXIST":
      return "a file has the name of this folder, or of one above it";
    case "ENOSPC":
      return "no space is left on its disk";
    case "EDQUOT":
      return "your disk quota is used up";
    case "EROFS":
      return "its disk is read-only";
    case "ENAMETOOLONG":
      return "a name in the path is too long";
    case "ESTALE":
    case "ENOTCONN":
    case "EHOSTDOWN":
    case "ETIMEDOUT":
      return "the server of its disk is away";
    case "EIO":
      return "the disk reports an error";
    default:
      return error instanceof Error ? error.message : String(error);
  }
}

/** What a library says of a file of others, which may have put a long text into it. */
export const shortened = (words: string): string => (words.length > 500 ? `${words.slice(0, 500)}…` : words);
