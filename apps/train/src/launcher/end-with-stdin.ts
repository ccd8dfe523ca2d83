/** The variable that tells a launcher to end with its standard input. */
export const endsWithStdin = "TERSE_ENDS_WITH_STDIN";

/**
 * A launcher that another program has started with this variable gets SIGTERM when that program is gone, however that
 * was: the program holds the other end of its standard input.
 */
export function endWithStdin(): void {
  if (!process.env[endsWithStdin]) return;
  process.stdin.on("error", () => {}).on("close", () => process.kill(process.pid, "SIGTERM"));
  process.stdin.resume().unref();
}
