/**
 * Standard output may have no reader any more, as in `… | head -1`, or be on a full disk. A program that `goesOn` does
 * so without it. Another one ends with the code of shells, and says why where nobody asked for it.
 */
import { print } from "./print.ts";

export function watchOutput({ goesOn = false } = {}): void {
  let told = false;
  for (const stream of [process.stdout, process.stderr])
    stream.on("error", ({ code, message }: NodeJS.ErrnoException) => {
      const hasReader = code !== "EPIPE";
      if (hasReader && stream === process.stdout && !told)
        print(
          goesOn
            ? `standard output cannot be written, and what is printed is lost: ${message}`
            : `error: standard output cannot be written: ${message}; free some space, or write it elsewhere`,
          process.stderr,
        );
      told ||= hasReader;
      if (!goesOn) process.exit(hasReader ? 1 : 141);
    });
}
