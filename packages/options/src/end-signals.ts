/**
 * The signals that end a program. SIGHUP is none of them under `nohup`: Node forgets what was ignored when it was
 * started, so `./terse` says it in a variable.
 */
export const endSignals = process.env["TERSE_IGNORES_HANGUP"]
  ? (["SIGINT", "SIGTERM"] as const)
  : (["SIGINT", "SIGTERM", "SIGHUP"] as const);
