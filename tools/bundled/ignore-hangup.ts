/** Ignores SIGHUP where `nohup` does: Node forgets it, so `./terse` says it in a variable. */
export function ignoreHangup(): void {
  if (process.env["TERSE_IGNORES_HANGUP"]) process.on("SIGHUP", () => {});
}
