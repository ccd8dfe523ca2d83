/** Node forgets which signals were ignored when it was started, so `./terse` says it in a variable. */
const ignoresHangup = Boolean(process.env["TERSE_IGNORES_HANGUP"]);

/** The signals that end a program. SIGHUP is none of them under `nohup`, which ignores it. */
export const endSignals = ignoresHangup ? (["SIGINT", "SIGTERM"] as const) : (["SIGINT", "SIGTERM", "SIGHUP"] as const);

/** Ignores SIGHUP where `nohup` does. Called once, at the start of a program. */
export function ignoreHangup(): void {
  if (ignoresHangup) process.on("SIGHUP", () => {});
}
