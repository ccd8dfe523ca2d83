import { constants } from "node:os";

type Signal = "SIGINT" | "SIGTERM" | "SIGHUP";
const pending = new Set<() => void>();
let listening = false;

/** Runs `cleanUp` (synchronously) when the process ends before the returned function has withdrawn it. */
export function onEnd(cleanUp: () => void): () => void {
  if (!listening) {
    listening = true;
    process.on("exit", runAll);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] satisfies Signal[]) {
      process.on(signal, () => process.exit(128 + constants.signals[signal]));
    }
  }
  pending.add(cleanUp);
  return () => void pending.delete(cleanUp);
}

function runAll(): void {
  // Latest first: a running tool ends before the folder that it fills goes.
  for (const cleanUp of [...pending].reverse()) {
    pending.delete(cleanUp);
    try {
      cleanUp();
    } catch {
      // the others still have their turn
    }
  }
}
