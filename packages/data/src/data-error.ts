/** The text that a run was given cannot be used; the message is one sentence with the remedy. */
export class DataError extends Error {
  override readonly name = "DataError";
}

/** An error of the file system in words that fit after "cannot read x: ". */
export function reasonOf(error: unknown): string {
  switch ((error as NodeJS.ErrnoException).code) {
    case "ENOENT":
      return "it does not exist";
    case "EACCES":
    case "EPERM":
      return "permission denied";
    case "ELOOP":
      return "its symbolic links lead in a circle";
    case "ENOTDIR":
      return "a part of the path is a file, not a folder";
    case "EMFILE":
    case "ENFILE":
      return "too many files are open";
    default:
      return error instanceof Error ? error.message : String(error);
  }
}
