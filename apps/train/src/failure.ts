/** What a person reads when a command fails: one sentence; the stack only when asked for. */

export function sentence(error: unknown): string {
  if (process.env["TERSE_DEBUG"] && error instanceof Error) return error.stack ?? error.message;
  return error instanceof Error ? error.message : String(error);
}

/** Says what failed, on standard error, or to the launcher when it listens; returns the exit code. */
export function reportFailure(error: unknown): number {
  const message = sentence(error);
  const name = error instanceof Error ? error.name : "Error";
  if (process.send && process.connected) process.send({ failed: { name, message } });
  else process.stderr.write(`error: ${message}\n`);
  return 1;
}
