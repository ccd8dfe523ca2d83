/** One sentence for the user when a command fails, or a line for each option; with TERSE_DEBUG the stack too. */
import { inWords } from "@terse/checkpoint";
import { linesOfError, printText } from "@terse/options";
import { hasLauncher, tellLauncher } from "./to-launcher.ts";

export function sentence(thrown: unknown): string {
  const error = firstOf(thrown);
  if (process.env["TERSE_DEBUG"] && error instanceof Error) return error.stack ?? error.message;
  return linesOfError(inWords(error)).join("\n");
}

/** The first error, where closing things after it has failed too. */
export function firstOf(error: unknown): unknown {
  return error instanceof SuppressedError ? firstOf(error.suppressed) : error;
}

/** Reports an error to the launcher, or on standard error if there is none; returns the exit code. */
export function reportFailure(thrown: unknown): number {
  const error = firstOf(thrown);
  const message = sentence(error);
  const name = error instanceof Error ? error.name : "Error";
  if (hasLauncher()) tellLauncher({ failed: { name, message } });
  else printText(`error: ${message}`, process.stderr);
  return 1;
}
