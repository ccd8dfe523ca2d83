const warned = new Set<string>();

/** Emits a Node process warning, each message once per process. */
export function warnOnce(message: string): void {
  if (warned.has(message)) return;
  warned.add(message);
  process.emitWarning(message, "TerseWarning");
}
