import { constants } from "node:os";
import { endSignals } from "../packages/options/src/end-signals.ts";

const pending = new Set<() => void>();
let listening = false;

/** Runs `cleanUp` (synchronously) when the process ends, unless the returned function was called before. */
export function onEnd(cleanUp: () => void): () => void {
  if (!listening) {
    listening = true;
    process.on("exit", runAll);
    for (const signal of endSignals) {
      process.on(signal, () => process.exit(128 + constants.signals[signal]));
    }
  }
  pending.add(cleanUp);
  return () => void pending.delete(cleanUp);
}

function runAll(): void {
  // Latest first: a running tool is ended before the folder that it fills is removed.
  for (const cleanUp of [...pending].reverse()) {
    pending.delete(cleanUp);
    try {
      cleanUp();
    } catch {
      // the other clean-ups run all the same
    }
  }
}
